//! Which skills of a project count: those that the user trusts the project with.

use std::fs;

use loopd_tests::{Daemon, Turn};
use serde_json::json;

use super::{list, offered, session_of, skill_in, warnings};

async fn trust(daemon: &Daemon) {
    let client = daemon.client();
    let shown = client.call("loopd.trust.show", json!({})).await;
    let items = shown["items"].as_array().unwrap();
    assert!(
        items
            .iter()
            .any(|item| item["kind"] == "skill" && item["name"] == "tidy"),
        "{shown}"
    );
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
}

#[tokio::test]
async fn a_skill_of_a_project_counts_once_the_project_is_trusted_with_it() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
        Turn::user("four").says("4"),
    ])
    .await;
    let folder = daemon.file(".github/skills");
    let file = skill_in(&folder, "tidy", "allowed-tools: Read\n", "Tidy.");
    skill_in(&daemon.home().join("skills"), "own", "", "Own.");
    let params = json!({"enableConfigDiscovery": true, "skillDirectories": []});
    let mut session = session_of(&daemon.client(), params).await;
    session.ask("one").await;
    assert!(!offered(&daemon).unwrap().contains("tidy"));
    assert_eq!(list(&session).await, ["tidy off", "own"]);
    let told = warnings(&session, &daemon);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].starts_with("WORK: the skill `tidy` is not used"),
        "{told:#?}"
    );
    let refused = session
        .refused("session.commands.invoke", json!({"name": "tidy"}))
        .await;
    assert!(
        refused.message.contains("there is no command /tidy"),
        "{}",
        refused.message
    );
    trust(&daemon).await;
    session.ask("two").await;
    assert!(offered(&daemon).unwrap().contains("- tidy:"));
    // Its text may change, what restricts it may not.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Tidy.", "Tidy well.")).unwrap();
    session.ask("three").await;
    assert!(offered(&daemon).unwrap().contains("- tidy:"));
    fs::write(&file, text.replace("allowed-tools: Read\n", "")).unwrap();
    session.ask("four").await;
    assert!(!offered(&daemon).unwrap().contains("tidy"));
    daemon.finish().await;
}

#[tokio::test]
async fn folders_above_the_session_up_to_the_repository_count_too() {
    let daemon = Daemon::playing([]).await;
    fs::create_dir_all(daemon.file("app/.git")).unwrap();
    fs::create_dir_all(daemon.file("app/web")).unwrap();
    skill_in(&daemon.file("app/.claude/skills"), "above", "", "Above.");
    skill_in(&daemon.file("app/web/.agents/skills"), "near", "", "Near.");
    skill_in(&daemon.file(".github/skills"), "outside", "", "Outside.");
    let client = daemon.client();
    let params = json!({"enableConfigDiscovery": true, "workingDirectory": daemon.file("app/web")});
    let session = client.create(params).await;
    let add = json!({"path": daemon.file("app")});
    session
        .call("session.permissions.folderTrust.addTrusted", add)
        .await;
    let found = session.call("session.skills.list", json!({})).await;
    let skills = found["skills"].as_array().unwrap().iter();
    let shown: Vec<_> = skills
        .map(|it| {
            (
                it["name"].as_str().unwrap(),
                it["source"].as_str().unwrap(),
                it["enabled"] == true,
            )
        })
        .collect();
    let trusted = fs::canonicalize(daemon.work()).unwrap() == daemon.work();
    assert_eq!(
        shown,
        [
            ("near", "project", trusted),
            ("above", "inherited", trusted)
        ]
    );
    daemon.finish().await;
}
