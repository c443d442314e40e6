//! Commands that ignore signals: whoever stops one is answered when it is gone.

use std::path::Path;

use loopd_tests::{Daemon, Lifeline, Script, Turn, call};
use serde_json::json;

/// Ignores all polite signals.
fn stubborn(lifeline: &Lifeline) -> String {
    format!(
        "trap '' TERM INT HUP; echo $$ > pid; {}",
        lifeline.command()
    )
}

fn is_alive(work: &Path) -> bool {
    let pid = std::fs::read_to_string(work.join("pid")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn daemon(turns: Vec<Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_dead_when_its_kill_is_answered() {
    let daemon = daemon(Vec::new()).await;
    let session = daemon.client().create(json!({})).await;
    let lifeline = Lifeline::new(daemon.work());
    let params = json!({"command": stubborn(&lifeline)});
    let started = session.call("session.shell.exec", params).await;
    let command = lifeline.started().await;
    let interrupt = json!({"processId": started["processId"], "signal": "SIGINT"});
    let killed = session.call("session.shell.kill", interrupt).await;
    assert_eq!(killed["killed"], false);
    let reason = killed["reason"].as_str().unwrap();
    assert!(reason.contains("goes on"), "{reason}");
    assert!(is_alive(daemon.work()));
    let params = json!({"processId": started["processId"]});
    let killed = session.call("session.shell.kill", params.clone()).await;
    assert_eq!(killed, json!({"killed": true}));
    assert!(!is_alive(daemon.work()));
    command.ended().await;
    let killed = session.call("session.shell.kill", params).await;
    assert_eq!(killed, json!({"killed": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_of_a_user_is_dead_when_its_cancel_is_answered() {
    let daemon = daemon(Vec::new()).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let lifeline = Lifeline::new(daemon.work());
    let params = json!({"sessionId": session.id, "requestId": "r", "command": stubborn(&lifeline)});
    let running = client.pending("session.shell.executeUserRequested", params);
    let command = lifeline.started().await;
    let cancel = json!({"requestId": "r"});
    let cancelled = session
        .call("session.shell.cancelUserRequested", cancel)
        .await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    assert!(!is_alive(daemon.work()));
    command.ended().await;
    running.await.unwrap();
    daemon.finish().await;
}

#[tokio::test]
async fn a_background_command_is_dead_when_its_cancel_is_answered() {
    for backend in ["process", "terminal"] {
        let folder = tempfile::TempDir::new().unwrap();
        let lifeline = Lifeline::new(folder.path());
        let command = format!("cd {}; {}", folder.path().display(), stubborn(&lifeline));
        let arguments = json!({"command": command, "mode": "async", "shellId": "s"});
        let script = Script::play([
            Turn::user("go").calls([call("a", "bash", arguments)]),
            Turn::results(["shellId s"]).says("started"),
        ])
        .await;
        let daemon = Daemon::builder().script(script).yolo();
        let daemon = daemon.env("LOOPD_SHELL_BACKEND", backend).start().await;
        let mut session = daemon.client().create(json!({})).await;
        session.ask("go").await;
        let command = lifeline.started().await;
        let cancelled = session
            .call("session.tasks.cancel", json!({"id": "s"}))
            .await;
        assert_eq!(cancelled, json!({"cancelled": true}), "{backend}");
        assert!(!is_alive(folder.path()), "{backend}");
        command.ended().await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_named_shell_whose_command_ended_is_listed_as_idle() {
    let arguments = json!({"command": "echo hi", "shellId": "s"});
    let script = Script::play([
        Turn::user("go").calls([call("a", "bash", arguments)]),
        Turn::results(["hi"]).says("done"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo();
    let daemon = daemon.env("LOOPD_SHELL_BACKEND", "terminal").start().await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    let listed = client.call("loopd.processList", json!({})).await;
    let shell = listed["processes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|process| process["class"] == "session");
    assert_eq!(shell.unwrap()["state"], "idle", "{listed}");
    daemon.finish().await;
}
