//! Compaction: a summary takes the place of the conversation, and the session goes on.

use loopd_tests::script::Recorded;
use loopd_tests::{Commits, Daemon, Gate, Script, Turn};
use serde_json::{Value, json};

use super::window;

const COMPACT: &str = "session.history.compact";
const ABORT: &str = "session.history.abortManualCompaction";
const CANCEL: &str = "session.history.cancelBackgroundCompaction";

/// What the model is asked for a summary with.
const ASKED: &str =
    "Please create a detailed summary of the conversation so far. The history is being compacted";

fn asks_for_summary(request: &Recorded) -> bool {
    request.last_user_text().starts_with(ASKED)
}

fn all(request: &Recorded) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

/// A model that answers with long texts, and with a short summary when it is asked for one.
async fn talking() -> Script {
    Script::answering(|request| {
        if asks_for_summary(request) {
            return Turn::any().says("<overview>They talked about towns.</overview>");
        }
        Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)))
    })
    .await
}

#[tokio::test]
async fn a_client_compacts_the_conversation() {
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    let refused = session.refused(COMPACT, json!({})).await;
    assert!(
        refused.message.contains("nothing to compact"),
        "{refused:?}"
    );
    session.ask("first question").await;
    session.ask("second question").await;
    let before = daemon.script().last_request();
    let done = session
        .call(COMPACT, json!({"customInstructions": "dwell on the sea"}))
        .await;
    assert_eq!(done["success"], true, "{done}");
    assert_eq!(done["messagesRemoved"], 3, "{done}");
    assert!(done["tokensRemoved"].as_i64().unwrap() > 300, "{done}");
    assert!(done["summaryContent"].as_str().unwrap().contains("towns"));
    let window = &done["contextWindow"];
    assert_eq!(window["messagesLength"], 2, "{window}");
    assert!(window["currentTokens"].as_u64() >= window["conversationTokens"].as_u64());

    // The request for the summary begins as the last one did, and forbids tools.
    let asked = daemon.script().last_request();
    assert!(asked.last_user_text().contains("dwell on the sea"));
    let same = before.messages().len();
    assert_eq!(asked.messages()[..same], before.messages()[..]);
    assert_eq!(asked.body["tools"], before.body["tools"]);
    assert_eq!(asked.body["tool_choice"], "none");
    let start = session.next("session.compaction_start").await;
    assert_eq!(start["data"]["trigger"], "manual");
    let complete = session.next("session.compaction_complete").await;
    assert_eq!(complete["data"]["customInstructions"], "dwell on the sea");
    let used = &complete["data"]["compactionTokensUsed"];
    assert!(used["inputTokens"].as_u64().unwrap() > 0, "{used}");

    session.ask("third question").await;
    let last = daemon.script().last_request();
    let text = all(&last);
    assert_eq!(last.messages().len(), 3, "{text}");
    for kept in [
        "first question",
        "second question",
        "They talked about towns",
        "third question",
    ] {
        assert!(text.contains(kept), "{kept} is not in {text}");
    }
    assert!(!text.contains("a town by the sea"), "{text}");
    // Everything is in the log all the same.
    let stored = Value::from(session.messages().await).to_string();
    assert!(stored.contains("a town by the sea"));
    assert_eq!(daemon.state(&session.id).await.compaction.count, 1);
    daemon.finish().await;
}

#[tokio::test]
async fn slash_commands_compact_and_show_the_context() {
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    let invoke = |name: &str, input: &str| {
        let params = json!({"name": name, "input": input});
        session.start("session.commands.invoke", params)
    };
    let nothing = invoke("context", "").await.unwrap();
    assert!(
        nothing["text"]
            .as_str()
            .unwrap()
            .contains("Nothing was sent"),
        "{nothing}"
    );
    session.ask("a question").await;
    let invoke = |name: &str, input: &str| {
        let params = json!({"name": name, "input": input});
        session.start("session.commands.invoke", params)
    };
    let done = invoke("compact", "names only").await.unwrap();
    assert!(
        done["text"].as_str().unwrap().contains("was compacted"),
        "{done}"
    );
    let asked = daemon.script().last_request();
    assert!(asked.last_user_text().contains("names only"));
    let context = invoke("context", "").await.unwrap();
    let text = context["text"].as_str().unwrap();
    assert!(
        text.contains("compacted 1 times") && text.contains('░'),
        "{text}"
    );
    daemon.finish().await;
}

/// The options of a session that compacts early: from so many tokens on, of a window of 100,000.
fn early(background: f64, blocking: f64) -> Value {
    let mut options = window(100_000);
    options["infiniteSessions"] = json!({
        "enabled": true,
        "backgroundCompactionThreshold": background,
        "bufferExhaustionThreshold": blocking,
    });
    options
}

#[tokio::test]
async fn the_session_goes_on_while_a_summary_is_made() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any()
                .says("<overview>towns</overview>")
                .held_by(&held);
        }
        Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)))
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(early(0.001, 0.9)).await;
    session.ask("first question").await;
    // The compaction begins with this call.
    session.ask("second question").await;
    gate.reached().await;
    session.ask("third question").await;
    assert_eq!(session.count("session.compaction_complete"), 0);
    gate.open();
    let complete = session.next("session.compaction_complete").await;
    assert_eq!(complete["data"]["success"], true, "{complete}");
    assert_eq!(complete["data"]["trigger"], "threshold");
    session.ask("fourth question").await;
    let last = daemon.script().last_request();
    let text = all(&last);
    // What came after the cut is there as it was.
    assert!(text.contains("towns"), "{text}");
    assert_eq!(last.messages().len(), 2 + 5, "{text}");
    assert_eq!(text.matches("well, a town").count(), 2, "{text}");
    // There is no next one before the conversation has grown.
    assert_eq!(session.count("session.compaction_start"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn each_kind_of_compaction_is_stopped_by_its_own_method() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any().says("too late").held_by(&held);
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    session.ask("a question").await;
    let compacting = session.start(COMPACT, json!({}));
    gate.reached().await;
    let second = session.refused(COMPACT, json!({})).await;
    assert!(second.message.contains("running already"), "{second:?}");
    assert_eq!(
        session.call(CANCEL, json!({})).await,
        json!({"cancelled": false})
    );
    assert_eq!(
        session.call(ABORT, json!({})).await,
        json!({"aborted": true})
    );
    let done = compacting.await.unwrap();
    assert_eq!(done["success"], false, "{done}");
    assert_eq!(done["error"], "It was cancelled.");
    assert_eq!(
        session.call(ABORT, json!({})).await,
        json!({"aborted": false})
    );
    session.ask("another question").await;
    let text = all(&daemon.script().last_request());
    assert!(text.contains("well") && !text.contains("summar"), "{text}");
    gate.open();
    daemon.finish().await;
}

/// A model that says that the request is too long for these calls.
async fn too_long_at(calls: &'static [usize]) -> Script {
    let mut seen = 0;
    Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any().says("<overview>towns</overview>");
        }
        seen += 1;
        if calls.contains(&seen) {
            let turn =
                Turn::any().fails(400, "This model's maximum context length is 8192 tokens.");
            return turn.with_code("context_length_exceeded");
        }
        Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)))
    })
    .await
}

#[tokio::test]
async fn a_request_that_is_too_long_is_sent_again_after_a_compaction() {
    let daemon = Daemon::with(too_long_at(&[3]).await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    session.ask("first question").await;
    session.ask("second question").await;
    session.ask("third question").await;
    let events = session.events();
    let mut events = events.iter();
    let complete = events.find(|event| event["type"] == "session.compaction_complete");
    let complete = complete.unwrap();
    assert_eq!(complete["data"]["trigger"], "context_limit_retry");
    let text = all(&daemon.script().last_request());
    assert!(
        text.contains("<overview>towns") && text.contains("third question"),
        "{text}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_that_stays_too_long_ends_the_turn_with_a_clear_error() {
    let daemon = Daemon::with(too_long_at(&[3, 4]).await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    session.ask("first question").await;
    session.ask("second question").await;
    session.send("third question").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "context_limit");
    let message = error["data"]["message"].as_str().unwrap();
    assert!(message.contains("not compacted again"), "{message}");
    assert_eq!(session.count("session.compaction_start"), 1);
    // The session can be used: the next message is answered.
    session.ask("fourth question").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_ends_the_wait_and_leaves_the_conversation_as_it_was() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut seen = 0;
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any().says("late").held_by(&held);
        }
        seen += 1;
        if seen == 2 {
            return Turn::any()
                .fails(400, "prompt is too long")
                .with_code("context_length_exceeded");
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    session.ask("first question").await;
    session.send("second question").await;
    gate.reached().await;
    // Somebody steers and aborts meanwhile.
    session
        .call(
            "session.send",
            json!({"prompt": "steered", "mode": "immediate"}),
        )
        .await;
    session.call("session.abort", json!({})).await;
    let complete = session.next("session.compaction_complete").await;
    assert_eq!(complete["data"]["success"], false, "{complete}");
    session.next("session.idle").await;
    gate.open();
    session.ask("third question").await;
    let text = all(&daemon.script().last_request());
    assert!(
        text.contains("first question") && text.contains("well"),
        "{text}"
    );
    assert!(!text.contains("late"), "{text}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_conversation_of_which_nothing_fits_is_not_summarised() {
    let daemon = Daemon::with(talking().await).await;
    // The system message and the tools take nearly all of it.
    let mut options = window(2_000);
    options["infiniteSessions"] = json!({"enabled": false});
    let mut session = daemon.client().create(options).await;
    session.ask("first question").await;
    let done = session.call(COMPACT, json!({})).await;
    assert_eq!(done["success"], false, "{done}");
    let error = done["error"].as_str().unwrap();
    assert!(error.contains("leave next to no room"), "{done}");
    session.ask("second question").await;
    let request = daemon.script().last_request();
    assert!(all(&request).contains("a town by the sea"));
    assert_eq!(request.messages().len(), 4);
    daemon.finish().await;
}

#[tokio::test]
async fn a_summary_that_cannot_be_made_changes_nothing() {
    let script = Script::answering(|request| {
        if asks_for_summary(request) {
            return Turn::any().fails(400, "no summaries today");
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    session.ask("first question").await;
    let done = session.call(COMPACT, json!({})).await;
    assert_eq!(done["success"], false, "{done}");
    assert!(
        done["error"]
            .as_str()
            .unwrap()
            .contains("no summaries today"),
        "{done}"
    );
    let complete = session.next("session.compaction_complete").await;
    assert_eq!(complete["data"]["statusCode"], 400, "{complete}");
    session.ask("second question").await;
    assert_eq!(daemon.script().last_request().messages().len(), 4);
    daemon.finish().await;
}

#[tokio::test]
async fn wherever_the_daemon_is_killed_the_history_is_as_before_or_compacted() {
    use loopd_store::Batch;
    let commits = Commits::default();
    let builder = Daemon::builder().script(talking().await);
    let daemon = builder.commits(&commits).start().await;
    let mut session = daemon.client().create(early(0.001, 0.9)).await;
    for number in 1..=9 {
        session.ask(&format!("question {number}")).await;
    }
    session.call(COMPACT, json!({})).await;
    session.ask("the last question").await;
    let id = loopd_proto::id::SessionId::from(session.id.as_str());
    let store = &daemon.app.services.store;
    let (record, events) = store.load(&id).await.unwrap().unwrap();
    // Each commit is all or nothing, so that these are the states that a kill can leave behind.
    let mut ends = Vec::new();
    let mut end = 0;
    for kinds in commits.kinds() {
        end += kinds.len();
        ends.push(end.min(events.len()));
    }
    ends.dedup();
    let is = |kind: &str, at: usize| &*events[at - 1].kind == kind;
    let compacted: Vec<usize> = (1..=events.len())
        .filter(|at| is("loopd.compacted", *at))
        .collect();
    assert_eq!(compacted.len(), 2, "one by itself, one by hand");
    // The two events of an end are never apart.
    for at in &compacted {
        assert!(
            !ends.contains(at),
            "a kill could come between the events of an end"
        );
    }
    let first = (1..=events.len())
        .find(|at| is("session.compaction_start", *at))
        .unwrap();
    let points: Vec<usize> = ends.into_iter().filter(|end| *end + 8 >= first).collect();
    assert!(points.len() >= 20, "{} points", points.len());
    for point in points {
        let script = Script::answering(|request| {
            Turn::any().says(&format!("{} messages", request.messages().len()))
        });
        let other = Daemon::with(script.await).await;
        let batch = Batch {
            record: record.clone(),
            after: loopd_proto::id::Seq::START,
            events: events[..point].to_vec(),
        };
        other.app.services.store.append(batch).await.unwrap();
        let mut resumed = other.client().resume(&session.id, json!({})).await;
        let state = other.state(&session.id).await;
        assert!(state.compaction.running.is_none(), "after event {point}");
        let done = compacted.iter().filter(|at| **at <= point).count();
        assert_eq!(state.compaction.count, done as u64, "after event {point}");
        resumed.ask("and now?").await;
        let text = all(&other.script().last_request());
        let summaries = text.matches("<overview>They talked").count();
        assert_eq!(
            summaries,
            usize::from(done > 0),
            "after event {point}: {text}"
        );
        assert!(text.contains("question 1"), "after event {point}: {text}");
        other.finish().await;
    }
    daemon.finish().await;
}
