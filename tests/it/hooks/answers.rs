//! Answers of hooks in words of both formats, and in words of neither: what is not understood is told by
//! name, and what wants something taken out of a result never lets it through.

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::support::{
    HookApp, HookReply, bash, end_of, hooked, offer, one_call, warning, with_files, without_hooks,
    write_hooks,
};

const KEPT_BACK: &str = "The output is kept back.";

/// A hook of a file that answers this.
fn saying(kind: &str, answer: &Value) -> Value {
    let print = format!("cat <<'END'\n{answer}\nEND");
    json!({kind: [{"bash": print}]})
}

/// The same in Claude's format.
fn saying_claude(kind: &str, answer: &Value) -> Value {
    let print = format!("cat <<'END'\n{answer}\nEND");
    json!({kind: [{"hooks": [{"type": "command", "command": print}]}]})
}

/// Runs a command whose output is a secret, with a hook that answers this. Returns what the model got.
async fn reviewed(hooks: Value) -> (Daemon, Session, String) {
    let turns = [
        Turn::user("go").calls([bash("c", "echo 'the se''cret'")]),
        Turn::any().says("done"),
    ];
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.ask("go").await;
    let events = session.messages().await;
    let complete = events
        .iter()
        .find(|it| it["type"] == "tool.execution_complete");
    let complete = complete.unwrap()["data"].clone();
    let raw = daemon.script().last_request().raw.clone();
    let result = complete["result"]["content"].as_str();
    let result = result.or(complete["error"]["message"].as_str()).unwrap();
    let seen = format!("{result}\n{raw}");
    (daemon, session, seen)
}

/// Returns the warnings of a kind that a client saw.
fn warnings(session: &Session, kind: &str) -> Vec<String> {
    let of_kind = session.events().into_iter();
    let of_kind = of_kind
        .filter(|event| event["type"] == "session.warning" && event["data"]["warningType"] == kind);
    of_kind
        .map(|event| event["data"]["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_output_that_a_hook_updates_is_what_the_model_reads() {
    for (answer, text) in [
        (json!({"updatedToolOutput": "masked"}), "masked"),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput":
                {"stdout": "masked out", "stderr": "", "interrupted": false}}}),
            "masked out",
        ),
        (
            json!({"hookSpecificOutput": {"updatedMCPToolOutput": [{"type": "text", "text": "masked"}]}}),
            "masked",
        ),
    ] {
        let (daemon, session, seen) = reviewed(saying_claude("PostToolUse", &answer)).await;
        assert!(
            seen.contains(text) && !seen.contains("the secret"),
            "{answer}: {seen}"
        );
        assert_eq!(warnings(&session, "hook_answer"), Vec::<String>::new());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_redaction_in_words_that_are_not_known_lets_nothing_through() {
    for (answer, told) in [
        (
            json!({"modifedResult": {"textResultForLlm": "x"}}),
            "`modifedResult`",
        ),
        (
            json!({"hookSpecificOutput": {"updated_tool_output": "x"}}),
            "`updatedToolOutput`",
        ),
        (json!({"suppressOutput": "yes"}), "`suppressOutput`"),
        (json!({"redactedText": "x"}), "`redactedText`"),
        (
            json!({"modifiedResult": {"resultType": "success", "text": "x"}}),
            "`text`, which is not known",
        ),
        (
            json!({"modifiedResult": {"textResultForLlm": "x", "resultType": "great"}}),
            "`resultType` of its `modifiedResult` is `great`",
        ),
        (
            json!({"modifiedResult": {"textResultForLlm": "x"}, "updatedToolOutput": "y"}),
            "in two ways",
        ),
    ] {
        let (daemon, session, seen) = reviewed(saying("postToolUse", &answer)).await;
        assert!(
            seen.contains(KEPT_BACK) && !seen.contains("the secret"),
            "{answer}: {seen}"
        );
        let mut all = warnings(&session, "hook_answer");
        all.extend(warnings(&session, "hook_failed"));
        let all = all.concat();
        for part in ["postToolUse hook", "test.json:", told] {
            assert!(all.contains(part), "{answer}: {all}");
        }
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_member_that_says_nothing_is_told_once_with_the_nearest_name() {
    let answer = json!({"aditionalContext": "more", "colour": "red"});
    let turns = [
        Turn::user("go").calls([bash("a", "echo one"), bash("b", "echo two")]),
        Turn::any().says("done"),
    ];
    let (daemon, mut session) = with_files(saying("postToolUse", &answer), turns).await;
    session.approve_all().await;
    session.ask("go").await;
    let told = warnings(&session, "hook_answer");
    assert_eq!(told.len(), 2, "{told:?}");
    for part in ["test.json:", "`aditionalContext`", "`additionalContext`"] {
        assert!(told.concat().contains(part), "{told:?}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_does_not_let_the_agent_continue_after_a_call_ends_the_run() {
    let answer = json!({"continue": false, "stopReason": "budget used up"});
    for (kind, name, made) in [
        ("PostToolUse", "postToolUse", bash("c", "true")),
        (
            "PostToolUseFailure",
            "postToolUseFailure",
            call("c", "view", json!({"path": "nowhere"})),
        ),
    ] {
        let turns = [
            Turn::user("go").calls([made]),
            Turn::user("more").says("ok"),
        ];
        let (daemon, mut session) = with_files(saying_claude(kind, &answer), turns).await;
        session.approve_all().await;
        session.send("go").await;
        let told = warning(&mut session, "hook_stopped").await;
        for part in [&format!("{name} hook"), "test.json:", "budget used up"] {
            assert!(told.contains(part), "{told}");
        }
        session.next("session.idle").await;
        assert_eq!(daemon.script().requests().len(), 1);
        session.ask("more").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_hook_that_stops_an_agent_after_a_call_ends_its_run_and_not_that_of_its_parent() {
    let task = json!({"description": "a part", "prompt": "level one", "name": "kid", "mode": "sync",
                      "agent_type": "general-purpose"});
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([call("t", "task", task)]),
                Turn::any().says("it stopped"),
            ],
        ),
        (
            "level one",
            vec![Turn::user("level one").calls([bash("c", "true")])],
        ),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let hooks =
        json!({"postToolUse": [{"bash": "echo '{\"continue\": false}'", "matcher": "bash"}]});
    write_hooks(&daemon, &hooks);
    let mut session = daemon.client().create(without_hooks()).await;
    session.ask("begin").await;
    assert_eq!(daemon.script().requests().len(), 3);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_start_that_must_not_continue_sends_no_prompt() {
    let (daemon, mut session) = hooked([]).await;
    let answer = json!({"continue": false, "stopReason": "no licence"});
    let _app = HookApp::saying(session.client(), "sessionStart", answer);
    session.send("go").await;
    let error = session.next("session.error").await;
    let message = error["data"]["message"].as_str().unwrap();
    for part in ["sessionStart hook", "no licence"] {
        assert!(message.contains(part), "{message}");
    }
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_prompt_that_a_hook_denies_in_other_words_is_not_sent() {
    for answer in [
        json!({"permissionDecision": "deny", "permissionDecisionReason": "secret"}),
        json!({"hookSpecificOutput": {"permissionDecision": "deny"}}),
        json!({"continue": "false"}),
        json!({"block": true}),
    ] {
        let (daemon, mut session) = with_files(saying("userPromptSubmitted", &answer), []).await;
        session.send("go").await;
        let told = warning(&mut session, "hook_answer").await;
        assert!(
            told.contains("userPromptSubmitted hook"),
            "{answer}: {told}"
        );
        let error = session.next("session.error").await;
        let message = error["data"]["message"].as_str().unwrap();
        assert!(
            message.contains("does not let this prompt through"),
            "{message}"
        );
        session.next("session.idle").await;
        assert_eq!(daemon.script().requests().len(), 0, "{answer}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_block_without_a_reason_adds_no_empty_lines() {
    let turns = [
        Turn::user("go").calls([bash("c", "echo one")]),
        Turn::any().says("done"),
    ];
    let hooks = saying("postToolUse", &json!({"decision": "block"}));
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    let text = end["result"]["content"].as_str().unwrap();
    assert!(
        text.ends_with("\n\nA hook objects to this result and gives no reason."),
        "{text:?}"
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_misspells_what_it_changes_denies() {
    for answer in [
        json!({"permissionDecision": "allow", "modifedArgs": {"command": "true"}}),
        json!({"permissionDecision": "allow", "hookSpecificOutput": {"updatedInpt": {}}}),
        json!({"additionalContext": "c", "hookSpecificOutput": {"permisionDecision": "deny"}}),
    ] {
        let calls = one_call(bash("c", "touch made"), "Denied by preToolUse hook");
        let (daemon, mut session) = with_files(saying("preToolUse", &answer), calls).await;
        session.approve_all().await;
        session.ask("go").await;
        assert!(!daemon.file("made").exists(), "{answer}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_decision_that_is_not_where_it_belongs_lets_no_call_run() {
    for answer in [
        json!({"permissionDecision": "deny"}),
        json!({"output": null, "decision": "block"}),
        json!([]),
        json!("deny"),
        json!({"output": "deny"}),
    ] {
        let calls = one_call(bash("c", "touch made"), "Denied by preToolUse hook");
        let (daemon, mut session) = hooked(calls).await;
        session.approve_all().await;
        let whole = answer.clone();
        let _app = HookApp::on(session.client(), move |kind, _| match kind {
            "preToolUse" => HookReply::Whole(whole.clone()),
            _ => HookReply::Nothing,
        });
        session.ask("go").await;
        assert!(!daemon.file("made").exists(), "{answer}");
        daemon.finish().await;
    }
    // A command says it in a line that looks like progress, or says nothing where it should decide.
    for printed in [
        r#"{"type":"progress","message":"m","permissionDecision":"deny"}"#,
        r#"{"permissionDecision":null}"#,
        "null",
    ] {
        let calls = one_call(bash("c", "touch made"), "Denied by preToolUse hook");
        let hook = json!({"preToolUse": [{"bash": format!("echo '{printed}'")}]});
        let (daemon, mut session) = with_files(hook, calls).await;
        session.approve_all().await;
        session.ask("go").await;
        assert!(!daemon.file("made").exists(), "{printed}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_client_is_told_of_members_that_say_nothing_too() {
    let turns = [
        Turn::user("go").calls([call("c", "report", json!({}))]),
        Turn::any().says("done"),
    ];
    let daemon = Daemon::playing(turns).await;
    let mut options = offer();
    options["tools"] = json!([{"name": "report", "skipPermission": true}]);
    let mut session = daemon.client().create(options).await;
    let answer = json!({"cleanupActions": [], "sumary": 1});
    let _app = HookApp::saying(session.client(), "postToolUse", answer);
    session.send("go").await;
    let asked = session.next("external_tool.requested").await;
    let id = &asked["data"]["requestId"];
    let result = json!({"requestId": id, "result": "fine"});
    session
        .call("session.tools.handlePendingToolCall", result)
        .await;
    let told = warning(&mut session, "hook_answer").await;
    assert!(told.contains("postToolUse hook of a client"), "{told}");
    session.next("session.idle").await;
    daemon.finish().await;
}
