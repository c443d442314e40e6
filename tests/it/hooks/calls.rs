//! What the hooks of one client may do about a tool call.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, end_of, hooked, offer, one_call, permit};

#[tokio::test]
async fn a_denied_call_does_not_run_and_everybody_is_told_why() {
    let denied = "Denied by preToolUse hook: not today";
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), denied)).await;
    session.approve_all().await;
    let deny = json!({"permissionDecision": "deny", "permissionDecisionReason": "not today"});
    let app = HookApp::saying(session.client(), "preToolUse", deny);
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    assert_eq!(end["success"], false);
    assert_eq!(end["error"]["code"], "denied");
    let told = "Denied by preToolUse hook a client's hook: not today";
    assert_eq!(end["error"]["message"], told);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    let asked = app.inputs("preToolUse");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["toolName"], "bash");
    assert_eq!(asked[0]["toolCallId"], "c");
    assert_eq!(asked[0]["toolArgs"]["command"], "touch made");
    assert_eq!(asked[0]["sessionId"], session.id);
    assert_eq!(app.inputs("postToolUse"), [Value::Null; 0]);
    // A hook that changed something is in the log.
    let stored = session.messages().await;
    let ends = stored.iter().filter(|event| event["type"] == "hook.end");
    assert_eq!(ends.count(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn an_allowed_call_asks_no_person() {
    let (daemon, mut session) = hooked(one_call(bash("c", "echo hi > made"), "")).await;
    let allow = json!({"permissionDecision": "allow"});
    let _app = HookApp::saying(session.client(), "preToolUse", allow);
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_can_want_a_person_although_everything_is_allowed() {
    let view = call("v", "view", json!({"path": "."}));
    for (call, kind) in [(bash("c", "echo hi"), "shell"), (view, "read")] {
        let (daemon, mut session) = hooked(one_call(call, "")).await;
        session.approve_all().await;
        let ask = json!({"permissionDecision": "ask", "permissionDecisionReason": "sure?"});
        let app = HookApp::saying(session.client(), "preToolUse", ask);
        session.send("go").await;
        let request = permit(&mut session).await;
        assert_eq!(request["kind"], kind);
        if kind == "shell" {
            let warning = "The preToolUse hook of a client asks: sure?";
            assert_eq!(request["warning"], warning);
        }
        session.next("session.idle").await;
        // A hook that answers permission requests may deny this one, too.
        assert_eq!(app.inputs("permissionRequest").len(), 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_person_who_refuses_what_a_hook_wants_asked_is_obeyed() {
    let (daemon, mut session) = hooked([Turn::user("go").calls([bash("c", "touch made")])]).await;
    session.approve_all().await;
    let ask = json!({"permissionDecision": "ask"});
    let _app = HookApp::saying(session.client(), "preToolUse", ask);
    session.send("go").await;
    let (id, _) = session.permission().await;
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn changed_arguments_are_what_is_asked_runs_and_is_remembered() {
    let turns = one_call(bash("c", "echo original > made"), "");
    let (daemon, mut session) = hooked(turns).await;
    let app = HookApp::on(session.client(), |kind, input| {
        let changed = json!({"command": "echo changed > made"});
        match kind {
            "preToolUse" if input["toolArgs"] != changed => {
                HookReply::Output(json!({ "modifiedArgs": changed }))
            }
            _ => HookReply::Nothing,
        }
    });
    session.send("go").await;
    let request = permit(&mut session).await;
    assert_eq!(request["fullCommandText"], "echo changed > made");
    session.next("session.idle").await;
    let made = std::fs::read_to_string(daemon.file("made")).unwrap();
    assert_eq!(made, "changed\n");
    let last = daemon.script().last_request();
    let calls = last.messages().iter().find(|it| it["role"] == "assistant");
    let sent = calls.unwrap()["tool_calls"][0]["function"]["arguments"].to_string();
    assert!(
        sent.contains("echo changed") && !sent.contains("original"),
        "{sent}"
    );
    let events = session.messages().await;
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    let said = of("assistant.message")["data"]["toolRequests"].to_string();
    assert!(said.contains("echo original > made"), "{said}");
    let started = &of("tool.execution_start")["data"]["arguments"]["command"];
    assert_eq!(started, "echo changed > made");
    // Who changed the call is not asked about its own change.
    assert_eq!(app.inputs("preToolUse").len(), 1);
    let reviewed = app.inputs("postToolUse");
    assert_eq!(reviewed[0]["toolArgs"]["command"], "echo changed > made");
    daemon.finish().await;
}

#[tokio::test]
async fn hooks_that_change_changed_arguments_again_deny() {
    let turns = one_call(
        bash("c", "touch made"),
        "hooks do not agree on the arguments",
    );
    let (daemon, mut session) = hooked(turns).await;
    session.approve_all().await;
    let other = daemon.client().resume(&session.id, offer()).await;
    let _one = HookApp::on(session.client(), wrap);
    let _other = HookApp::on(other.client(), wrap);
    session.ask("go").await;
    assert_eq!(std::fs::read_dir(daemon.work()).unwrap().count(), 0);
    daemon.finish().await;
}

/// Puts a word before every command.
fn wrap(kind: &str, input: &Value) -> HookReply {
    if kind != "preToolUse" {
        return HookReply::Nothing;
    }
    let command = input["toolArgs"]["command"].as_str().unwrap();
    let command = format!("nice {command}");
    HookReply::Output(json!({"modifiedArgs": {"command": command}}))
}

#[tokio::test]
async fn a_hook_may_wrap_every_command() {
    let turns = one_call(bash("c", "touch made"), "");
    let (daemon, mut session) = hooked(turns).await;
    session.approve_all().await;
    let _app = HookApp::on(session.client(), wrap);
    session.ask("go").await;
    assert!(daemon.file("made").exists());
    let started = session.messages().await;
    let started = started
        .iter()
        .find(|it| it["type"] == "tool.execution_start");
    assert_eq!(
        started.unwrap()["data"]["arguments"]["command"],
        "nice touch made"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_other_guards_see_the_call_as_it_runs() {
    let turns = one_call(bash("c", "touch made"), "not nice");
    let (daemon, mut session) = hooked(turns).await;
    session.approve_all().await;
    let other = daemon.client().resume(&session.id, offer()).await;
    let _one = HookApp::on(session.client(), wrap);
    let _other = HookApp::on(other.client(), |kind, input| {
        let command = input["toolArgs"]["command"].as_str().unwrap_or_default();
        if kind == "preToolUse" && command.starts_with("nice") {
            let denied =
                json!({"permissionDecision": "deny", "permissionDecisionReason": "not nice"});
            return HookReply::Output(denied);
        }
        HookReply::Nothing
    });
    session.ask("go").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_model_is_told_what_hooks_add_before_and_after_a_call() {
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("c", "echo hi")]),
        Turn::any().says("done"),
        Turn::user("more").says("yes"),
    ])
    .await;
    session.approve_all().await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "preToolUse" => HookReply::Output(json!({"additionalContext": "told before"})),
        "postToolUse" => HookReply::Output(json!({"additionalContext": "told after"})),
        _ => HookReply::Nothing,
    });
    session.ask("go").await;
    session.ask("more").await;
    for request in &daemon.script().requests()[1..] {
        let text = request.raw.as_str();
        assert_eq!(text.matches("told before").count(), 1, "{text}");
        assert_eq!(text.matches("told after").count(), 1, "{text}");
        let results = request.messages().iter().filter(|it| it["role"] == "tool");
        assert_eq!(results.count(), 1);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_result_can_be_replaced_or_kept_back() {
    let kept_back = "A hook keeps the output of this call back.";
    let table = [
        (
            json!({"modifiedResult": {"textResultForLlm": "another", "resultType": "success"}}),
            "another",
            true,
        ),
        (
            json!({"modifiedResult": {"textResultForLlm": "it failed", "resultType": "failure"}}),
            "it failed",
            false,
        ),
        (json!({"suppressOutput": true}), kept_back, true),
    ];
    for (output, told, success) in table {
        let (daemon, mut session) = hooked(one_call(bash("c", "echo original"), told)).await;
        session.approve_all().await;
        let app = HookApp::saying(session.client(), "postToolUse", output);
        session.send("go").await;
        let end = end_of(&mut session, "c").await;
        assert_eq!(end["success"], success, "{end}");
        session.next("session.idle").await;
        let seen = &app.inputs("postToolUse")[0]["toolResult"];
        let text = seen["textResultForLlm"].as_str().unwrap();
        assert!(text.contains("original"), "{text}");
        assert!(!daemon.script().last_request().raw.contains("<exited"));
        let stored = session.messages().await;
        let ends = stored
            .iter()
            .filter(|it| it["type"] == "tool.execution_complete");
        let ends: String = ends.map(ToString::to_string).collect();
        assert!(!ends.contains("original"), "{ends}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn the_result_of_a_clients_own_tool_is_reviewed_too() {
    let lookup = json!({"name": "lookup", "description": "Looks up", "skipPermission": true});
    let daemon = Daemon::playing(one_call(call("c", "lookup", json!({})), "another")).await;
    let mut offer = offer();
    offer["tools"] = json!([lookup]);
    let mut session = daemon.client().create(offer).await;
    let changed = json!({"modifiedResult": {"textResultForLlm": "another"}});
    let app = HookApp::saying(session.client(), "postToolUse", changed);
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    assert!(session.give(&request, json!({"result": "original"})).await);
    session.next("session.idle").await;
    assert_eq!(app.inputs("preToolUse").len(), 1);
    assert_eq!(app.inputs("postToolUse").len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_failed_call_gets_the_guidance_of_its_hook() {
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([call("c", "view", json!({"path": "missing"}))]),
        Turn::user("look elsewhere").says("done"),
    ])
    .await;
    session.approve_all().await;
    let guidance = json!({"additionalContext": "look elsewhere"});
    let app = HookApp::saying(session.client(), "postToolUseFailure", guidance);
    session.ask("go").await;
    let asked = app.inputs("postToolUseFailure");
    assert_eq!(asked.len(), 1);
    assert!(asked[0]["error"].as_str().unwrap().contains("missing"));
    assert_eq!(app.inputs("postToolUse"), [Value::Null; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_handler_that_fails_or_answers_nonsense_denies() {
    type Case = (fn() -> HookReply, &'static str);
    let table: [Case; 4] = [
        (|| HookReply::Fails("it crashed"), "it crashed"),
        (|| HookReply::Output(json!("deny")), "not one JSON object"),
        (
            || HookReply::Output(json!({"permissionDecision": "maybe"})),
            "`permissionDecision` is `maybe`",
        ),
        (
            || HookReply::Output(json!({"modifiedArgs": "rm"})),
            "`modifiedArgs` is not an object",
        ),
    ];
    for (reply, cause) in table {
        let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), cause)).await;
        session.approve_all().await;
        let _app = HookApp::on(session.client(), move |kind, _| match kind {
            "preToolUse" => reply(),
            _ => HookReply::Nothing,
        });
        session.send("go").await;
        let end = end_of(&mut session, "c").await;
        let message = end["error"]["message"].as_str().unwrap();
        for part in [cause, "a client's hook", "client_timeout"] {
            assert!(message.contains(part), "{message}");
        }
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn the_other_kinds_report_a_failure_and_the_session_goes_on() {
    let (daemon, mut session) = hooked(one_call(bash("c", "echo hi"), "hi")).await;
    session.approve_all().await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "preToolUse" | "permissionRequest" => HookReply::Nothing,
        _ => HookReply::Fails("broken"),
    });
    session.ask("go").await;
    let events = session.events();
    let warnings = events.iter().filter(|event| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "hook_failed"
    });
    let warnings: Vec<&str> = warnings
        .map(|event| event["data"]["message"].as_str().unwrap())
        .collect();
    for kind in [
        "sessionStart",
        "userPromptSubmitted",
        "postToolUse",
        "agentStop",
    ] {
        let expected = format!("The {kind} hook of a client failed: ");
        let told = warnings.iter().any(|it| it.starts_with(&expected));
        assert!(told, "{kind}: {warnings:?}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_while_a_hook_is_asked_ends_the_call() {
    let (daemon, mut session) = hooked([Turn::user("go").calls([bash("c", "touch made")])]).await;
    session.approve_all().await;
    let app = HookApp::on(session.client(), |kind, _| match kind {
        "preToolUse" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    session.send("go").await;
    app.asked("preToolUse", 1).await;
    session.call("session.abort", json!({})).await;
    let end = end_of(&mut session, "c").await;
    assert_eq!(end["success"], false);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
