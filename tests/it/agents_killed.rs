//! What the next daemon makes of agents when the last one was killed at the worst moment: their
//! logs are cut where the crash would have cut them, and given to another daemon.

use loopd_proto::id::Seq;
use loopd_store::{Batch, StoredEvent};
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

const ANSWER: &str = "it is forty-two";

/// A parent whose agent is waited for or not, and is told more once it has answered in the background.
async fn first_daemon(mode: &'static str) -> Daemon {
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("find the number") {
            return Turn::any().says(ANSWER);
        }
        let last = request.last_user_text();
        let results = request.last_results();
        let start = json!({"description": "a number", "prompt": "find the number", "name": "finder",
                           "mode": mode});
        let again = json!({"agent_id": "finder", "message": "and find its square"});
        match results.first() {
            Some(_) => Turn::any().says("well"),
            None if last.contains("go") && !last.contains("finder") => {
                Turn::any().calls([call("t1", "task", start)])
            }
            None if request.messages().len() < 8 => {
                Turn::any().calls([call("t2", "write_agent", again)])
            }
            None => Turn::any().says("thanks"),
        }
    });
    let script = script.await;
    Daemon::builder().script(script).yolo().start().await
}

/// A model that thanks for everything.
async fn second_daemon() -> Daemon {
    let script = Script::answering(|_| Turn::any().says("thanks")).await;
    Daemon::builder().script(script).yolo().start().await
}

/// Where a log is cut: before its so-manieth event of a kind, or not at all.
type Cut<'a> = Option<(&'a str, usize)>;

fn kept(events: &[StoredEvent], cut: Cut<'_>) -> Vec<StoredEvent> {
    let Some((kind, number)) = cut else {
        return events.to_vec();
    };
    let found = events.iter().enumerate();
    let mut found = found.filter(|(_, event)| &*event.kind == kind);
    let end = found.nth(number - 1).expect(kind).0;
    events[..end].to_vec()
}

/// Gives the second daemon the logs as a crash of the first would have left them.
async fn crash(first: &Daemon, second: &Daemon, parent: Cut<'_>, agent: Cut<'_>) {
    let store = &first.app.services.store;
    for record in store.list().await.unwrap() {
        let (record, events) = store.load(&record.id).await.unwrap().unwrap();
        let cut = if record.agent.is_some() {
            agent
        } else {
            parent
        };
        let batch = Batch {
            events: kept(&events, cut),
            record,
            after: Seq::START,
        };
        second.app.services.store.append(batch).await.unwrap();
    }
}

/// What the model of the second daemon is told when somebody comes back.
async fn told(second: &Daemon, id: &str) -> Vec<Value> {
    let params = json!({"continuePendingWork": true});
    let mut session = second.client().resume(id, params).await;
    session.next("session.idle").await;
    let events = session.messages().await.into_iter();
    let notes: Vec<Value> = events
        .filter(|event| event["type"] == "system.notification")
        .collect();
    let sent = second.script().last_request();
    for note in &notes {
        let text = note["data"]["content"].as_str().unwrap();
        let sent = sent.messages().iter();
        let with_it = sent.filter(|message| message.to_string().contains("<task_id>finder"));
        assert_eq!(with_it.count(), notes.len(), "not sent once: {text}");
    }
    notes
}

#[tokio::test]
async fn an_answer_that_was_on_its_way_to_the_parent_arrives() {
    let first = first_daemon("background").await;
    let mut session = first.client().create(json!({})).await;
    session.ask("go").await;
    let second = second_daemon().await;
    crash(
        &first,
        &second,
        Some(("loopd.task_answered", 1)),
        Some(("loopd.queued", 2)),
    )
    .await;
    let notes = told(&second, &session.id).await;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["data"]["kind"]["type"], "agent_idle");
    let content = notes[0]["data"]["content"].as_str().unwrap();
    assert!(content.contains(ANSWER), "{content}");
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn an_answer_that_a_call_waited_for_is_not_lost_with_the_call() {
    let first = first_daemon("sync").await;
    let mut session = first.client().create(json!({})).await;
    session.ask("go").await;
    assert_eq!(session.count("system.notification"), 0, "the call told it");
    let second = second_daemon().await;
    crash(&first, &second, Some(("tool.execution_complete", 1)), None).await;
    let notes = told(&second, &session.id).await;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["data"]["kind"]["type"], "agent_completed");
    let content = notes[0]["data"]["content"].as_str().unwrap();
    assert!(content.contains(ANSWER), "{content}");
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn what_an_agent_said_before_is_no_answer_to_what_it_never_heard() {
    let first = first_daemon("background").await;
    let mut session = first.client().create(json!({})).await;
    session.ask("go").await;
    let second = second_daemon().await;
    crash(
        &first,
        &second,
        Some(("loopd.task_answered", 2)),
        Some(("loopd.queued", 2)),
    )
    .await;
    let notes = told(&second, &session.id).await;
    assert_eq!(notes.len(), 2, "the answer, and that it was interrupted");
    assert_eq!(notes[1]["data"]["kind"]["status"], "failed");
    let content = notes[1]["data"]["content"].as_str().unwrap();
    assert!(content.contains("because the daemon stopped"), "{content}");
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn one_that_never_heard_its_task_hears_it_with_the_next_message() {
    let first = first_daemon("background").await;
    let mut session = first.client().create(json!({})).await;
    session.ask("go").await;
    let second = second_daemon().await;
    crash(
        &first,
        &second,
        Some(("loopd.task_answered", 1)),
        Some(("loopd.queued", 1)),
    )
    .await;
    let notes = told(&second, &session.id).await;
    assert_eq!(notes[0]["data"]["kind"]["status"], "failed");
    let mut session = second.client().resume(&session.id, json!({})).await;
    let message = json!({"id": "finder", "message": "begin at last"});
    session.call("session.tasks.sendMessage", message).await;
    session.next("session.idle").await;
    let asked = second.script().requests().into_iter();
    let mut agents = asked.filter(|request| request.last_user_text().contains("begin at last"));
    let text = agents.next().unwrap().last_user_text();
    assert!(text.contains("find the number"), "{text}");
    second.finish().await;
    first.finish().await;
}

/// A daemon whose model has sub-agents that run a command.
async fn asking_daemon() -> Daemon {
    let script = Script::answering(|request| {
        // It has read one message only: what it was asked first.
        if request.last_user_text().contains("help me") && request.last_results().is_empty() {
            return Turn::any().calls([call("b", "bash", json!({"command": "echo hi"}))]);
        }
        Turn::any().says("well")
    });
    Daemon::with(script.await).await
}

#[tokio::test]
async fn the_open_question_of_an_agent_that_goes_on_is_shown_to_everyone() {
    let (first, second) = (asking_daemon().await, asking_daemon().await);
    let offer = || json!({"requestPermission": true});
    let mut session = first.client().create(offer()).await;
    let helper = json!({"agentType": "general-purpose", "prompt": "help me", "name": "helper"});
    session.call("session.tasks.startAgent", helper).await;
    let asked = session.next("permission.requested").await;
    crash(&first, &second, None, None).await;
    let mut session = second.client().resume(&session.id, offer()).await;
    let message = json!({"id": "helper", "message": "go on"});
    session.call("session.tasks.sendMessage", message).await;
    assert_eq!(session.next("permission.requested").await, asked);
    let mut late = second.client().resume(&session.id, offer()).await;
    assert_eq!(late.next("permission.requested").await, asked);
    let request = asked["data"]["requestId"].as_str().unwrap();
    let pending = late.call("session.permissions.pendingRequests", json!({}));
    assert_eq!(pending.await["items"][0]["requestId"], request);
    assert!(late.decide(request, json!({"kind": "approve-once"})).await);
    let read = json!({"id": "helper", "wait": 60});
    let read = session.call("loopd.taskRead", read).await;
    assert_eq!(read["turns"][0]["response"], "well", "{read}");
    second.finish().await;
    first.finish().await;
}
