//! The stories whose logs are kept: together they store nearly every kind of event that sessions
//! know. Detached commands are left out, because their logs name processes of the machine.
//!
//! A story plays in a daemon of its own; the session that people see is named after the story.

mod autopilot;
mod budgets;
mod changed_queue;
mod changed_rules;
mod context;
mod fleet;
mod hooks;
mod modes;
mod rewind;
mod skills;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use loopd_kernel::state::State;
use loopd_tests::{Daemon, Gate, Latch, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::recording::take;
use super::summary::Log;

/// The logs of all stories, by the name of the story.
pub(super) async fn play_all() -> Vec<(&'static str, Vec<Log>)> {
    let stories = [
        ("plain", plain().boxed_local()),
        ("permissions", permissions().boxed_local()),
        ("client-tools", client_tools().boxed_local()),
        ("questions", questions().boxed_local()),
        ("agents", agents().boxed_local()),
        ("abort", abort().boxed_local()),
        ("killed", killed().boxed_local()),
        ("recovered", recovered().boxed_local()),
        ("fork", fork().boxed_local()),
        ("queue", queue().boxed_local()),
        (
            "changed-queue",
            changed_queue::changed_queue().boxed_local(),
        ),
        (
            "late-permission",
            changed_queue::late_permission().boxed_local(),
        ),
        (
            "changed-rules",
            changed_rules::changed_rules().boxed_local(),
        ),
        ("autopilot", autopilot::autopilot().boxed_local()),
        ("plan-mode", modes::plan_mode().boxed_local()),
        ("rate-limited", modes::rate_limited().boxed_local()),
        ("hooks", hooks::hooks().boxed_local()),
        ("guard-absent", hooks::guard_absent().boxed_local()),
        ("guards-kept", hooks::guards_kept().boxed_local()),
        ("stop-limit", hooks::stop_limit().boxed_local()),
        ("vouched-hooks", hooks::vouched_hooks().boxed_local()),
        ("hook-stopped", hooks::hook_stopped().boxed_local()),
        ("provider-wait", budgets::provider_wait().boxed_local()),
        ("time-up", budgets::time_up().boxed_local()),
        ("fleet", fleet::fleet().boxed_local()),
        ("skills", skills::skills().boxed_local()),
        ("rewind", rewind::rewind().boxed_local()),
        ("pruned", context::pruned().boxed_local()),
        ("compacted", context::compacted().boxed_local()),
        ("refused", context::refused().boxed_local()),
        ("cleared", context::cleared().boxed_local()),
        ("settings", settings().boxed_local()),
        ("managed", managed().boxed_local()),
        ("shells", shells().boxed_local()),
    ];
    let (mut played, mut failed) = (Vec::new(), Vec::new());
    for (name, story) in stories {
        match AssertUnwindSafe(story).catch_unwind().await {
            Ok(logs) => played.push((name, logs)),
            Err(_) => failed.push(name),
        }
    }
    assert!(
        failed.is_empty(),
        "these stories cannot be played: {failed:?}"
    );
    played
}

async fn started(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    Daemon::with(Script::play(turns).await).await
}

/// A session with a short system message, so that its log is short.
async fn session(daemon: &Daemon, id: &str, more: Value) -> Session {
    let mut params = json!({
        "sessionId": id, "requestPermission": true,
        "systemMessage": {"mode": "replace", "content": "You are an agent in a test."},
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    daemon.client().create(params).await
}

async fn end(daemon: Daemon) -> Vec<Log> {
    let logs = take(&daemon).await;
    daemon.finish().await;
    logs
}

fn bash(id: &str, command: &str) -> loopd_tests::script::Call {
    call(
        id,
        "bash",
        json!({"command": command, "description": "a command"}),
    )
}

fn lookup() -> Value {
    json!([{"name": "lookup", "description": "Looks a word up", "skipPermission": true,
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}])
}

async fn plain() -> Vec<Log> {
    let daemon = started([
        Turn::user("hello").says("hi").charges(1_000),
        Turn::user("and again").fails(400, "no more today"),
        Turn::user("really").streams(["one ", "two"]),
    ])
    .await;
    let mut session = session(&daemon, "plain", json!({"streaming": true})).await;
    for prompt in ["hello", "and again", "really"] {
        session.ask(prompt).await;
    }
    session.destroy().await;
    let mut session = daemon.client().resume("plain", json!({})).await;
    session
        .call("session.log", json!({"message": "seen"}))
        .await;
    session.next("session.info").await;
    end(daemon).await
}

async fn permissions() -> Vec<Log> {
    let write = json!({"path": "<file>", "file_text": "one\ntwo\n"});
    let daemon = Daemon::with(
        Script::answering(move |request| {
            let path = request.messages().iter().find_map(|message| {
                let text = message["content"].as_str()?;
                Some(text.split("write ").nth(1)?.trim().to_owned())
            });
            let mut write = write.clone();
            write["path"] = path.unwrap_or_default().into();
            match (request.last_results().len(), request.last_user_text()) {
                (0, text) if text.contains("run") => {
                    Turn::any().calls([bash("yes", "echo yes"), bash("no", "echo no")])
                }
                (0, text) if text.contains("write") => {
                    Turn::any().calls([call("w", "create", write)])
                }
                _ => Turn::any().says("done"),
            }
        })
        .await,
    )
    .await;
    let mut session = session(&daemon, "permissions", json!({})).await;
    session.send("run").await;
    let (yes, _) = session.permission().await;
    let (no, _) = session.permission().await;
    assert!(session.decide(&yes, json!({"kind": "approve-once"})).await);
    let reject = json!({"kind": "reject", "feedback": "not that one"});
    assert!(session.decide(&no, reject).await);
    session.next("session.idle").await;
    let file = daemon.file("new.txt");
    session.send(&format!("write {}", file.display())).await;
    let (write, _) = session.permission().await;
    let decision = json!({"kind": "approve-for-session"});
    assert!(session.decide(&write, decision).await);
    session.next("session.idle").await;
    end(daemon).await
}

async fn client_tools() -> Vec<Log> {
    let word = |id: &str| call(id, "lookup", json!({"word": id}));
    let daemon = started([
        Turn::user("go").calls([word("found"), word("failed")]),
        Turn::any().says("ok"),
        Turn::user("wait").calls([word("answered"), word("open")]),
    ])
    .await;
    let mut session = session(&daemon, "client-tools", json!({"tools": lookup()})).await;
    session.send("go").await;
    let (found, _) = session.tool_call().await;
    let (failed, _) = session.tool_call().await;
    assert!(session.give(&found, json!({"result": "a curve"})).await);
    assert!(
        session
            .give(&failed, json!({"error": "no such word"}))
            .await
    );
    session.next("session.idle").await;
    session.send("wait").await;
    let (answered, _) = session.tool_call().await;
    session.tool_call().await;
    assert!(session.give(&answered, json!({"result": "a line"})).await);
    session.next("tool.execution_complete").await;
    end(daemon).await
}

async fn questions() -> Vec<Log> {
    let ask = |id: &str| {
        call(
            id,
            "ask_user",
            json!({"question": "Which?", "choices": ["a", "b"]}),
        )
    };
    let daemon = started([
        Turn::user("go").calls([ask("answered")]),
        Turn::any().says("a it is"),
        Turn::user("again").calls([ask("open")]),
    ])
    .await;
    let offer = json!({"requestUserInput": true, "requestElicitation": true});
    let mut session = session(&daemon, "questions", offer).await;
    session.send("go").await;
    let asked = session.client().request("userInput.request").await;
    asked.answer(json!({"answer": "a", "wasFreeform": false}));
    session.next("session.idle").await;
    let form = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
    let waiting = session.start("session.ui.elicitation", form);
    let request = session.next("elicitation.requested").await["data"]["requestId"].clone();
    let answer = json!({"requestId": request, "result": {"action": "decline"}});
    session
        .call("session.ui.handlePendingElicitation", answer)
        .await;
    waiting.await.unwrap();
    session.send("again").await;
    drop(session.client().request("userInput.request").await);
    session.next("user_input.requested").await;
    end(daemon).await
}

/// Waits until no agent works and the model knows what came of all.
async fn all_told(daemon: &Daemon) {
    let over = |state: &State| {
        let tasks = &state.tasks;
        !state.is_busy() && !tasks.has_agents_at_work() && tasks.undelivered().is_empty()
    };
    daemon.until("agents", "the agents to end", over).await;
}

async fn agents() -> Vec<Log> {
    let agent = |id: &str, prompt: &str, mode: &str| {
        let arguments = json!({"description": "a part of it", "prompt": prompt, "name": id,
                               "agent_type": "general-purpose", "mode": mode});
        call(id, "task", arguments)
    };
    let look = |id: &str| call(id, "lookup", json!({"word": "loop"}));
    let start = [
        agent("waited", "find one", "sync"),
        agent("beside", "find two", "background"),
        agent("fails", "find nothing", "background"),
    ];
    let script = Script::answering(move |request| {
        let (first, last) = (request.first_user_text(), request.last_user_text());
        let results = request.last_results().len();
        match (first.as_str(), results) {
            (text, _) if text.contains("nothing") => Turn::any().fails(400, "no such thing"),
            (_, 0) if last.contains("and more") => Turn::any().says("there is no more"),
            (text, 0) if text.contains("find") => Turn::any().calls([look("word")]),
            (text, _) if text.contains("find") => Turn::any().says("it is here"),
            (_, 0) if !last.contains("system_notification") => Turn::any().calls(start.clone()),
            _ => Turn::any().says("well"),
        }
    });
    let daemon = Daemon::with(script.await).await;
    let mut tools = lookup();
    tools[0]["skipPermission"] = false.into();
    let mut session = session(&daemon, "agents", json!({"tools": tools})).await;
    session.send("begin").await;
    for _ in 0..2 {
        let (request, _) = session.permission().await;
        assert!(
            session
                .decide(&request, json!({"kind": "approve-once"}))
                .await
        );
    }
    let mut asked = session.client().session("agents");
    for _ in 0..2 {
        let (request, _) = asked.tool_call().await;
        assert!(session.give(&request, json!({"result": "found"})).await);
    }
    all_told(&daemon).await;
    let more = json!({"id": "beside", "message": "and more"});
    session.call("session.tasks.sendMessage", more).await;
    all_told(&daemon).await;
    session
        .call("session.tasks.remove", json!({"id": "waited"}))
        .await;
    end(daemon).await
}

async fn abort() -> Vec<Log> {
    let gate = Gate::new();
    let daemon = started([
        Turn::user("go").says("never said").held_by(&gate),
        Turn::user("run").calls([bash("b", "echo hi")]),
    ])
    .await;
    let mut session = session(&daemon, "abort", json!({})).await;
    session.send("go").await;
    gate.reached().await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    session.send("run").await;
    session.permission().await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    gate.open();
    end(daemon).await
}

/// The log ends where a kill cut it: a command runs, a message waits.
async fn killed() -> Vec<Log> {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let script = Script::answering({
        let command = latch.wait();
        move |request| match request.last_results().len() {
            0 if request.last_user_text().contains("go") => {
                Turn::any().calls([bash("started", &command), call("asks", "lookup", json!({}))])
            }
            _ => Turn::any().says("done"),
        }
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = session(&daemon, "killed", json!({"tools": lookup()})).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    let started = |event: &Value| {
        event["type"] == "tool.execution_start" && event["data"]["toolCallId"] == "started"
    };
    let mut heard = session.client().session("killed");
    heard.next_where("the command to start", started).await;
    let (call, _) = session.client().session("killed").tool_call().await;
    session.send("and then").await;
    let logs = take(&daemon).await;
    let logs = logs.iter().map(|log| {
        let text = log
            .text()
            .replace(&folder.path().to_string_lossy().into_owned(), "/golden");
        Log::read(&log.name, &text)
    });
    let logs = logs.collect();
    session.give(&call, json!({"result": "late"})).await;
    latch.release("go").await;
    session.next("session.idle").await;
    daemon.finish().await;
    logs
}

async fn recovered() -> Vec<Log> {
    let gate = Gate::new();
    let mut daemon = started([
        Turn::user("go").says("never said").held_by(&gate),
        Turn::user("on").calls([bash("b", "echo hi")]),
        Turn::any().says("done"),
    ])
    .await;
    let first = session(&daemon, "recovered", json!({})).await;
    first.send("go").await;
    gate.reached().await;
    daemon.restart().await;
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().resume("recovered", offer.clone()).await;
    session.send("on").await;
    let (request, _) = session.permission().await;
    daemon.restart().await;
    let mut more = offer;
    more["continuePendingWork"] = true.into();
    let mut session = daemon.client().resume("recovered", more).await;
    assert_eq!(session.permission().await.0, request);
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    gate.open();
    end(daemon).await
}

async fn fork() -> Vec<Log> {
    let daemon = started([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let mut session = session(&daemon, "fork", json!({})).await;
    session.ask("one").await;
    let params = json!({"sessionId": "fork", "name": "The other way"});
    let forked = session.client().call("sessions.fork", params).await;
    let id = forked["sessionId"].as_str().unwrap();
    let mut other = daemon.client().resume(id, json!({})).await;
    other.ask("two").await;
    end(daemon).await
}

async fn queue() -> Vec<Log> {
    let (gate, last) = (Gate::new(), Gate::new());
    let script = Script::answering({
        let (gate, last) = (gate.clone(), last.clone());
        move |request| match request.last_user_text() {
            text if text.contains("one") => {
                let call = call("l", "lookup", json!({}));
                Turn::any().calls([call]).held_by(&gate)
            }
            text if text.contains("two") => Turn::any().says("2").held_by(&last),
            _ => Turn::any().says("steered"),
        }
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = session(&daemon, "queue", json!({"tools": lookup()})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    session.send("three").await;
    session.send("taken back").await;
    session
        .call("session.queue.removeMostRecent", json!({}))
        .await;
    let steer = json!({"prompt": "to the left", "mode": "immediate"});
    session.call("session.send", steer.clone()).await;
    gate.open();
    let (request, _) = session.tool_call().await;
    session.give(&request, json!({"result": "x"})).await;
    last.reached().await;
    session.call("session.send", steer).await;
    let logs = take(&daemon).await;
    session.call("session.queue.clear", json!({})).await;
    session.call("session.abort", json!({})).await;
    last.open();
    daemon.finish().await;
    logs
}

async fn settings() -> Vec<Log> {
    let daemon = started([Turn::user("hello").says("hi")]).await;
    let mut session = session(&daemon, "settings", json!({})).await;
    let folder = daemon.file("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let rules = json!([{"kind": "shell", "argument": "git status"}, {"kind": "read"}]);
    let denied = json!({"denied": [{"kind": "shell", "argument": "rm"}], "approved": []});
    let changes = [
        ("session.name.set", json!({"name": "ours"})),
        (
            "session.log",
            json!({"level": "warning", "message": "careful"}),
        ),
        ("session.mode.set", json!({"mode": "plan"})),
        (
            "session.model.switchTo",
            json!({"modelId": "scripted", "reasoningEffort": "low"}),
        ),
        (
            "session.model.setReasoningEffort",
            json!({"reasoningEffort": "high"}),
        ),
        ("session.permissions.configure", json!({"rules": denied})),
        (
            "session.permissions.modifyRules",
            json!({"scope": "session", "add": rules}),
        ),
        ("session.permissions.paths.add", json!({"path": folder})),
        (
            "session.permissions.setApproveAll",
            json!({"enabled": true}),
        ),
        (
            "session.options.update",
            json!({"excludedTools": ["bash"], "clientName": "mine"}),
        ),
        (
            "session.tools.updateSubagentSettings",
            json!({"subagents": {"maxDepth": 2}}),
        ),
        ("session.agent.select", json!({"name": "plan"})),
        ("session.plan.update", json!({"content": "1. Begin"})),
        (
            "session.workspaces.createFile",
            json!({"path": "a.md", "content": "a"}),
        ),
        (
            "session.metadata.setWorkingDirectory",
            json!({"workingDirectory": folder}),
        ),
        ("session.agent.deselect", json!({})),
    ];
    for (method, params) in changes {
        session.call(method, params).await;
    }
    session.ask("hello").await;
    end(daemon).await
}

async fn managed() -> Vec<Log> {
    let daemon = started([
        Turn::user("go").calls([bash("no", "curl example.com"), bash("yes", "git status")]),
        Turn::any().says("done"),
    ])
    .await;
    let rules = json!({
        "deny": ["Shell(curl *)"], "ask": ["Shell(git push *)"], "allow": ["Shell(git *)"],
        "disableBypassPermissionsMode": "disable",
    });
    let more = json!({"managedSettings": {"permissions": rules}});
    let mut session = session(&daemon, "managed", more).await;
    session.send("go").await;
    let asks_or_rests =
        |event: &Value| event["type"] == "permission.requested" || event["type"] == "session.idle";
    let next = session
        .next_where("a question or the end", asks_or_rests)
        .await;
    if let Some(request) = next["data"]["requestId"].as_str() {
        session
            .decide(request, json!({"kind": "approve-once"}))
            .await;
        session.next("session.idle").await;
    }
    end(daemon).await
}

async fn shells() -> Vec<Log> {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let background = |id: &str, command: &str| {
        let arguments = json!({"command": command, "mode": "async", "shellId": id,
                               "description": "Build it"});
        call(id, "bash", arguments)
    };
    let held = format!("{}; exit 3", latch.wait());
    let daemon = started([
        Turn::user("go").calls([background("fails", &held), background("stays", "cat")]),
        Turn::any().says("started"),
        Turn::any().says("it failed"),
    ])
    .await;
    let mut session = session(&daemon, "shells", json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    latch.release("x").await;
    session.next("system.notification").await;
    session.next("session.idle").await;
    let logs = take(&daemon).await;
    let own = folder.path().to_string_lossy().into_owned();
    let logs = logs
        .iter()
        .map(|log| Log::read(&log.name, &log.text().replace(&own, "/golden")));
    let logs = logs.collect();
    daemon.finish().await;
    logs
}
