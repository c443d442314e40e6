//! `session.skills.*` and the options of a session about skills.

use std::fs;

use loopd_tests::{Daemon, Turn};
use serde_json::{Value, json};

use super::{list, names, offered, session, session_of, skill, skill_in};

#[tokio::test]
async fn a_session_puts_skills_into_and_out_of_use() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    skill(&daemon, "tidy", "", "Tidy.");
    let mut session = session_of(&daemon.client(), json!({"disabledSkills": ["tidy"]})).await;
    assert_eq!(list(&session).await, ["tidy off"]);
    session.ask("one").await;
    assert_eq!(offered(&daemon), None);
    let name = || json!({"name": "tidy"});
    assert_eq!(
        session.call("session.skills.enable", name()).await,
        Value::Null
    );
    assert_eq!(list(&session).await, ["tidy"]);
    session.ask("two").await;
    assert!(offered(&daemon).is_some());
    session.call("session.skills.disable", name()).await;
    assert_eq!(list(&session).await, ["tidy off"]);
    session.ask("three").await;
    assert_eq!(offered(&daemon), None);
    let refused = session
        .refused("session.skills.enable", json!({"name": "none"}))
        .await;
    assert!(
        refused.message.contains("this session has no skill none"),
        "{}",
        refused.message
    );
    daemon.finish().await;
}

#[tokio::test]
async fn what_the_user_put_out_of_use_is_out_of_use_until_a_session_says_otherwise() {
    let daemon = Daemon::playing([]).await;
    skill(&daemon, "one", "", "One.");
    skill(&daemon, "two", "", "Two.");
    let client = daemon.client();
    let session = session(&daemon).await;
    let off = |name: &str, disabled: bool| json!({"name": name, "disabled": disabled});
    client
        .call("skills.config.setSkillDisabled", off("One", true))
        .await;
    assert_eq!(list(&session).await, ["one off", "two"]);
    client
        .call(
            "skills.config.setDisabledSkills",
            json!({"disabledSkills": ["two"]}),
        )
        .await;
    assert_eq!(list(&session).await, ["one", "two off"]);
    client
        .call("skills.config.setSkillDisabled", off("two", false))
        .await;
    assert_eq!(list(&session).await, ["one", "two"]);
    client
        .call("skills.config.setSkillDisabled", off("two", true))
        .await;
    session
        .call("session.skills.enable", json!({"name": "two"}))
        .await;
    assert_eq!(list(&session).await, ["one", "two"]);
    let wrong = client
        .refused("skills.config.setSkillDisabled", off(" ", true))
        .await;
    assert_eq!(wrong.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn skills_are_loaded_on_request_and_again() {
    let daemon = Daemon::playing([]).await;
    let mut session = session(&daemon).await;
    assert_eq!(list(&session).await, [""; 0]);
    let file = skill(&daemon, "tidy", "", "Tidy.");
    let reload = "session.skills.reload";
    let nothing = json!({"warnings": [], "errors": []});
    assert_eq!(session.call(reload, json!({})).await, nothing);
    let loaded = session.next("session.skills_loaded").await;
    let expected = json!({"skills": [{
        "name": "tidy", "commandName": "tidy", "description": "Does tidy.", "source": "custom",
        "userInvocable": true, "enabled": true, "path": file,
    }]});
    assert_eq!(loaded["data"], expected);
    assert_eq!(
        session.call("session.skills.ensureLoaded", json!({})).await,
        Value::Null
    );
    assert_eq!(
        session.call("session.skills.getInvoked", json!({})).await,
        json!({"skills": []})
    );
    fs::write(&file, "---\nname: tidy\n---\n").unwrap();
    let found = session.call(reload, json!({})).await;
    assert!(
        found["errors"][0]
            .as_str()
            .unwrap()
            .contains("no `description`"),
        "{found}"
    );
    assert_eq!(list(&session).await, [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn options_say_which_folders_count() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    skill(&daemon, "named", "", "Named.");
    skill_in(&daemon.home().join("skills"), "own", "", "Own.");
    skill_in(&daemon.file("plug/skills"), "plugged", "", "Plugged.");
    let of = |mut params: Value| {
        let client = client.clone();
        if params["enableConfigDiscovery"].is_null() {
            params["enableConfigDiscovery"] = false.into();
        }
        async move { list(&client.create(params).await).await }
    };
    assert_eq!(of(json!({})).await, [""; 0]);
    assert_eq!(of(json!({"enableConfigDiscovery": true})).await, ["own"]);
    assert_eq!(of(json!({"enableSkills": true})).await, ["own"]);
    assert_eq!(of(json!({"skillDirectories": ["lib"]})).await, ["named"]);
    assert_eq!(
        of(json!({"pluginDirectories": ["plug"]})).await,
        ["plugged"]
    );
    let none =
        json!({"enableSkills": false, "enableConfigDiscovery": true, "skillDirectories": ["lib"]});
    assert_eq!(of(none).await, [""; 0]);
    // The options can be changed while the session is live.
    let session = client.create(json!({"enableConfigDiscovery": false})).await;
    let update = "session.options.update";
    session
        .call(update, json!({"skillDirectories": ["lib"]}))
        .await;
    assert_eq!(list(&session).await, ["named"]);
    session
        .call("session.skills.disable", json!({"name": "named"}))
        .await;
    session.call(update, json!({"disabledSkills": []})).await;
    assert_eq!(list(&session).await, ["named"]);
    session
        .call(update, json!({"disabledSkills": ["named"]}))
        .await;
    assert_eq!(list(&session).await, ["named off"]);
    session.call(update, json!({"enableSkills": false})).await;
    assert_eq!(list(&session).await, [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_environment_names_folders_for_sessions_that_discover() {
    let folder = tempfile::tempdir().unwrap();
    skill_in(folder.path(), "team", "", "Team.");
    let script = loopd_tests::Script::play([]).await;
    let named = folder.path().to_string_lossy().into_owned();
    let daemon = Daemon::builder()
        .script(script)
        .env("COPILOT_SKILLS_DIRS", &format!("{named}, /nowhere"))
        .start()
        .await;
    let client = daemon.client();
    let session = client.create(json!({"enableConfigDiscovery": true})).await;
    assert_eq!(list(&session).await, ["team"]);
    let quiet = client.create(json!({"enableConfigDiscovery": false})).await;
    assert_eq!(list(&quiet).await, [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_tells_which_skills_its_sessions_have() {
    let daemon = Daemon::playing([]).await;
    skill_in(&daemon.file(".github/skills"), "tidy", "", "Tidy.");
    skill_in(
        &daemon.home().join("skills"),
        "own",
        "priority: high\n",
        "Own.",
    );
    let found = daemon.client().call("loopd.skills", json!({})).await;
    assert_eq!(names(&found), ["tidy off", "own"]);
    let why = found["skills"][0]["unavailable"].as_str().unwrap();
    assert!(why.contains("not trusted"), "{why}");
    let warned = found["warnings"][0].as_str().unwrap();
    assert!(warned.contains("`priority` is unknown"), "{warned}");
    daemon.finish().await;
}
