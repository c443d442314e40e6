//! A model is told when its shell was closed under it, before a command runs in a new one: the first
//! command there is not run.

use loopd_tests::{Daemon, Script, Session, Turn, call, within};
use serde_json::json;
use std::time::Duration;

fn runs(prompt: &str, command: &str) -> Turn {
    let command = json!({"command": command, "shellId": "build"});
    Turn::user(prompt).calls([call("c", "bash", command)])
}

async fn daemon(unattended: &str) -> Daemon {
    let script = Script::play([
        runs("go", "mkdir sub; cd sub"),
        Turn::any().says("done"),
        Turn::user("again").calls([
            call(
                "c",
                "bash",
                json!({"command": "touch one", "shellId": "build"}),
            ),
            call(
                "d",
                "bash",
                json!({"command": "touch two", "shellId": "build"}),
            ),
        ]),
        Turn::any().says("done"),
        runs("more", "echo more"),
        Turn::any().says("done"),
    ])
    .await;
    let builder = Daemon::builder().script(script).yolo();
    builder
        .env("LOOPD_UNATTENDED_TIMEOUT", unattended)
        .start()
        .await
}

/// Returns what the model read of its command.
async fn result(daemon: &Daemon, session: &mut Session, prompt: &str) -> String {
    session.ask(prompt).await;
    let results = daemon.script().requests().last().unwrap().last_results();
    results.into_iter().next().unwrap()
}

/// Neither command of the next message runs; the one after it does.
async fn told_first(daemon: &Daemon, session: &mut Session, why: &str) {
    session.ask("again").await;
    let results = daemon.script().requests().last().unwrap().last_results();
    assert_eq!(results.len(), 2);
    for text in results {
        assert!(text.contains("The command was not run."), "{text}");
        assert!(text.contains(why), "{text}");
        let place = daemon.work().display().to_string();
        assert!(text.contains(&place), "{text}");
    }
    assert!(!daemon.file("one").exists() && !daemon.file("two").exists());
    let text = result(daemon, session, "more").await;
    assert!(text.starts_with("more"), "{text}");
}

#[tokio::test]
async fn the_first_command_after_a_restart_is_not_run_in_a_new_shell() {
    let mut daemon = daemon("3600").await;
    let mut session = daemon.client().create(json!({})).await;
    let first = result(&daemon, &mut session, "go").await;
    assert!(!first.contains("the earlier shell"), "{first}");
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    told_first(&daemon, &mut session, "daemon was stopped").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_first_command_after_an_unattended_time_is_not_run_in_a_new_shell() {
    let daemon = daemon("0").await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    result(&daemon, &mut session, "go").await;
    client.vanish().await;
    let keep_alive = &daemon.app.services.keep_alive;
    let hour = Duration::from_secs(3600);
    within(
        "the shell to be closed",
        keep_alive.idle_for(Duration::ZERO, hour),
    )
    .await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    told_first(&daemon, &mut session, "no user was there").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_was_asked_about_before_the_restart_is_not_run_in_a_new_shell() {
    let script = Script::play([
        runs("go", "mkdir sub; cd sub"),
        Turn::any().says("done"),
        runs("again", "touch elsewhere"),
        Turn::any().says("done"),
    ])
    .await;
    let mut daemon = Daemon::builder().script(script).start().await;
    let client = daemon.client();
    let mut session = client.create(json!({"requestPermission": true})).await;
    let yes = || json!({"kind": "approve-once"});
    session.send("go").await;
    let (request, _) = session.permission().await;
    assert!(session.decide(&request, yes()).await);
    session.next("session.idle").await;
    session.send("again").await;
    session.permission().await;
    daemon.restart().await;
    let resume = json!({"requestPermission": true, "continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, resume).await;
    let (request, _) = session.permission().await;
    assert!(session.decide(&request, yes()).await);
    let told = session.next("tool.execution_complete").await;
    assert_eq!(told["data"]["error"]["code"], "shell_gone", "{told}");
    session.next("session.idle").await;
    assert!(!daemon.file("elsewhere").exists());
    daemon.finish().await;
}
