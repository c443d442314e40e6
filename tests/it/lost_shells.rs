//! A model is told when its shell was closed under it: the next command there runs in a new one.

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
        runs("again", "basename $PWD"),
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

async fn told_once(daemon: &Daemon, session: &mut Session, why: &str) {
    let text = result(daemon, session, "again").await;
    assert!(
        text.starts_with("<the earlier shell build was closed"),
        "{text}"
    );
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("\nsub\n"), "{text}");
    let text = result(daemon, session, "more").await;
    assert!(text.starts_with("more"), "{text}");
}

#[tokio::test]
async fn the_first_command_after_a_restart_says_that_its_shell_is_a_new_one() {
    let mut daemon = daemon("3600").await;
    let mut session = daemon.client().create(json!({})).await;
    let first = result(&daemon, &mut session, "go").await;
    assert!(!first.contains("the earlier shell"), "{first}");
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    told_once(&daemon, &mut session, "daemon was stopped").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_first_command_after_an_unattended_time_says_that_its_shell_is_a_new_one() {
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
    told_once(&daemon, &mut session, "no user was there").await;
    daemon.finish().await;
}
