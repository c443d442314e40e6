//! Hooks that keep an agent from stopping, and the transcript that they may read.

use loopd_tests::{Daemon, Script, Session, Turn};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, hooked, offer, warning};

fn block(reason: &str) -> HookReply {
    HookReply::Output(json!({"decision": "block", "reason": reason}))
}

#[tokio::test]
async fn a_stop_is_blocked_three_times_and_then_allowed() {
    let (daemon, mut session) = hooked([
        Turn::user("go").says("done"),
        Turn::user("do part 0").says("did 0"),
        Turn::user("do part 1").says("did 1"),
        Turn::user("do part 2").says("did 2"),
    ])
    .await;
    let app = HookApp::on(session.client(), |kind, input| {
        match (kind, input["stopBlocks"].as_u64()) {
            ("agentStop", Some(count @ 0..3)) => block(&format!("do part {count}")),
            _ => HookReply::Nothing,
        }
    });
    session.ask("go").await;
    assert_eq!(session.count("session.idle"), 1);
    let asked = app.inputs("agentStop");
    let counts: Vec<&Value> = asked.iter().map(|it| &it["stopBlocks"]).collect();
    assert_eq!(counts, [0, 1, 2, 3]);
    assert_eq!(asked[0]["stop_hook_active"], false);
    assert_eq!(asked[3]["stop_hook_active"], true);
    assert_eq!(asked[3]["response"], "did 2");
    daemon.finish().await;
}

#[tokio::test]
async fn a_stop_cannot_be_blocked_for_ever() {
    let script = Script::answering(|_| Turn::any().says("done")).await;
    let daemon = Daemon::with(script).await;
    let mut session = daemon.client().create(offer()).await;
    let output = json!({"decision": "block", "reason": "more"});
    let app = HookApp::saying(session.client(), "agentStop", output);
    session.send("go").await;
    let told = warning(&mut session, "stop_hook_limit").await;
    for part in ["8 times in a row", "stop_blocks", "config.toml"] {
        assert!(told.contains(part), "{told}");
    }
    session.next("session.idle").await;
    assert_eq!(app.inputs("agentStop").len(), 9);
    assert_eq!(daemon.script().requests().len(), 9);
    // The next prompt is counted anew.
    session.ask("again").await;
    assert_eq!(app.inputs("agentStop")[9]["stopBlocks"], 0);
    daemon.finish().await;
}

/// The counts that a hook was told when it was asked whether the agent may stop.
fn counts(app: &HookApp) -> Vec<u64> {
    let asked = app.inputs("agentStop");
    let counts = asked.iter().map(|it| it["stopBlocks"].as_u64().unwrap());
    counts.collect()
}

/// A session in autopilot mode whose model always says the same.
async fn flying() -> (Daemon, Session) {
    let script = Script::answering(|_| Turn::any().says("done")).await;
    let daemon = Daemon::with(script).await;
    let session = daemon.client().create(offer()).await;
    let mode = json!({"mode": "autopilot"});
    session.call("session.mode.set", mode).await;
    (daemon, session)
}

#[tokio::test]
async fn the_autopilot_does_not_begin_the_count_of_blocks_anew() {
    let (daemon, mut session) = flying().await;
    let output = json!({"decision": "block", "reason": "more"});
    let app = HookApp::saying(session.client(), "agentStop", output);
    session.ask("go").await;
    let wanted: Vec<u64> = (0..=8).chain([8, 8, 8]).collect();
    assert_eq!(counts(&app), wanted, "the model was told to go on 3 times");
    assert_eq!(daemon.script().requests().len(), 12);
    // What a person says is counted anew.
    session.ask("again").await;
    assert_eq!(counts(&app)[12..], wanted);
    daemon.finish().await;
}

#[tokio::test]
async fn a_stop_that_hooks_allowed_ends_the_row_of_blocks() {
    let (daemon, mut session) = flying().await;
    let mut stops = 0;
    let app = HookApp::on(session.client(), move |kind, _| match kind {
        "agentStop" => {
            stops += 1;
            if stops % 3 == 0 {
                HookReply::Nothing
            } else {
                block("more")
            }
        }
        _ => HookReply::Nothing,
    });
    session.ask("go").await;
    assert_eq!(counts(&app), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn the_limit_of_blocks_is_a_setting() {
    let script = Script::answering(|_| Turn::any().says("done")).await;
    let mut daemon = Daemon::with(script).await;
    let config = "[hooks]\nstop_blocks = 2\n";
    std::fs::write(daemon.home().join("config.toml"), config).unwrap();
    daemon.restart().await;
    let mut session = daemon.client().create(offer()).await;
    let output = json!({"decision": "block", "reason": "more"});
    let app = HookApp::saying(session.client(), "agentStop", output);
    session.ask("go").await;
    assert_eq!(app.inputs("agentStop").len(), 3);
    assert_eq!(session.count("session.warning"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_block_without_a_reason_is_reported_and_the_agent_stops() {
    let (daemon, mut session) = hooked([Turn::user("go").says("done")]).await;
    let _app = HookApp::saying(session.client(), "agentStop", json!({"decision": "block"}));
    session.send("go").await;
    let told = warning(&mut session, "hook_failed").await;
    assert!(told.contains("`reason`"), "{told}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_ends_a_session_that_a_hook_keeps_from_stopping() {
    let (daemon, mut session) = hooked([Turn::user("go").says("done")]).await;
    let app = HookApp::on(session.client(), |kind, _| match kind {
        "agentStop" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    session.send("go").await;
    app.asked("agentStop", 1).await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    daemon.finish().await;
}

fn lines(path: &Value) -> Vec<Value> {
    let text = std::fs::read_to_string(path.as_str().unwrap()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn the_transcript_is_a_file_of_events_that_only_grows() {
    let turns = ["one", "two", "three"].map(|prompt| Turn::user(prompt).says("done"));
    let mut daemon = Daemon::playing(turns).await;
    let mut session = daemon.client().create(offer()).await;
    let app = HookApp::silent(session.client());
    let folder = daemon
        .app
        .services
        .session_folder(&session.id.as_str().into());
    assert!(!folder.join("transcript.jsonl").exists());
    session.ask("one").await;
    let path = app.inputs("agentStop")[0]["transcriptPath"].clone();
    let first = lines(&path);
    let kinds: Vec<&str> = first
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[0], "session.start");
    assert!(kinds.contains(&"assistant.message"), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind.starts_with("loopd.")));
    session.ask("two").await;
    let second = lines(&path);
    assert!(second.len() > first.len());
    assert_eq!(second[..first.len()], first);
    drop(app);
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, offer()).await;
    let app = HookApp::silent(session.client());
    session.ask("three").await;
    assert_eq!(app.inputs("agentStop")[0]["transcriptPath"], path);
    let third = lines(&path);
    assert_eq!(third[..second.len()], second);
    let ids: std::collections::BTreeSet<String> =
        third.iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), third.len(), "no event is there twice");
    daemon.finish().await;
}

#[tokio::test]
async fn a_link_in_the_place_of_the_transcript_is_not_followed() {
    for place in ["transcript.jsonl", ""] {
        let daemon = Daemon::playing([Turn::user("one").says("done")]).await;
        let mut session = daemon.client().create(offer()).await;
        let app = HookApp::silent(session.client());
        let services = &daemon.app.services;
        let folder = services.session_folder(&session.id.as_str().into());
        let outside = tempfile::TempDir::new().unwrap();
        let (link, target) = match place {
            "" => (folder.clone(), outside.path().to_owned()),
            name => (folder.join(name), outside.path().join("mine")),
        };
        std::fs::write(outside.path().join("mine"), "mine").unwrap();
        if link.exists() {
            std::fs::remove_dir_all(&link).unwrap();
        }
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &link).unwrap();
        session.send("one").await;
        let told = super::support::warning(&mut session, "transcript").await;
        assert!(told.contains("a link stands in its place"), "{told}");
        session.next("session.idle").await;
        let mine = std::fs::read_to_string(outside.path().join("mine")).unwrap();
        assert_eq!(mine, "mine");
        assert!(!outside.path().join("transcript.jsonl").exists());
        let path = &app.inputs("agentStop")[0]["transcriptPath"];
        assert!(path.is_null(), "{path}");
        daemon.finish().await;
    }
}
