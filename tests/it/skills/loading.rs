//! The tool `skill`: what the model is told, and what it gets.

use std::fs;

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::{list, offered, session, session_of, skill, warnings};

#[tokio::test]
async fn a_skill_is_listed_loaded_and_told_after_the_results() {
    let daemon = Daemon::playing([
        Turn::user("Tidy up").calls([
            call("a", "skill", json!({"skill": "tidy"})),
            call("b", "glob", json!({"pattern": "*.nothing"})),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let file = skill(&daemon, "tidy", "", "Put things away.\n\nSee notes.md.");
    let mut session = session(&daemon).await;
    session.approve_all().await;
    session.ask("Tidy up, please.").await;
    let first = &daemon.script().requests()[0];
    assert!(first.tools().contains(&"skill"));
    assert!(offered(&daemon).unwrap().contains("\n- tidy: Does tidy."));
    let request = daemon.script().last_request();
    let messages = request.messages();
    let roles: Vec<&str> = messages
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "user"]
    );
    let loaded =
        "Skill \"tidy\" loaded successfully. Follow the instructions in the skill context.";
    assert_eq!(text_of(&messages[3]), loaded);
    let folder = daemon.file("lib/tidy");
    let context = format!(
        "<skill-context name=\"tidy\">\nBase directory for this skill: {}\n\nPut things away.\n\nSee notes.md.\n\n</skill-context>",
        folder.display()
    );
    assert_eq!(text_of(&messages[5]), context);
    let event = session
        .events()
        .into_iter()
        .find(|it| it["type"] == "skill.invoked");
    let data = event.unwrap()["data"].clone();
    let expected = json!({
        "name": "tidy", "path": file, "content": "Put things away.\n\nSee notes.md.\n", "source": "custom",
        "description": "Does tidy.", "trigger": "agent-invoked", "model": data["model"],
    });
    assert_eq!(data, expected);
    let invoked = session.call("session.skills.getInvoked", json!({})).await;
    let expected = json!({"skills": [
        {"name": "tidy", "path": file, "content": data["content"], "invokedAtTurn": 0}
    ]});
    assert_eq!(invoked, expected);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_without_skills_has_no_such_tool() {
    let daemon = Daemon::playing([Turn::user("hi").says("hello")]).await;
    let mut session = session(&daemon).await;
    session.ask("hi").await;
    assert_eq!(offered(&daemon), None);
    assert_eq!(session.count("session.skills_loaded"), 0);
    assert_eq!(list(&session).await, [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_changed_file_counts_with_the_next_message() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().says("3"),
        Turn::user("four").calls([call("b", "skill", json!({"skill": "tidy"}))]),
        Turn::results(["Tool 'skill' does not exist."]).says("4"),
    ])
    .await;
    let mut session = session(&daemon).await;
    session.ask("one").await;
    assert_eq!(offered(&daemon), None);
    let file = skill(&daemon, "tidy", "", "First.");
    session.ask("two").await;
    assert!(offered(&daemon).is_some());
    let loaded = session
        .events()
        .into_iter()
        .find(|it| it["type"] == "session.skills_loaded");
    assert_eq!(loaded.unwrap()["data"]["skills"][0]["name"], "tidy");
    // The text counts from the moment at which it is loaded.
    fs::write(
        &file,
        "---\nname: tidy\ndescription: Does tidy.\n---\nSecond.\n",
    )
    .unwrap();
    session.ask("three").await;
    let last = daemon.script().last_request();
    assert!(text_of(last.messages().last().unwrap()).contains("Second."));
    fs::remove_file(&file).unwrap();
    // The model asks for it although there is none any more.
    session.ask("four").await;
    assert_eq!(offered(&daemon), None);
    daemon.finish().await;
}

#[tokio::test]
async fn a_skill_for_people_is_neither_listed_nor_loaded() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("a", "skill", json!({"skill": "deploy"})),
            call("b", "skill", json!({"skill": "missing"})),
            call("c", "skill", json!({"skill": "off"})),
        ]),
        Turn::results([
            "is for people only",
            "there is no skill missing; there are tidy",
            "is out of use",
        ])
        .says("no"),
    ])
    .await;
    skill(
        &daemon,
        "deploy",
        "disable-model-invocation: true\n",
        "Deploy.",
    );
    skill(&daemon, "tidy", "", "Tidy.");
    skill(&daemon, "off", "", "Off.");
    let params = json!({"disabledSkills": ["off"]});
    let mut session = session_of(&daemon.client(), params).await;
    session.ask("go").await;
    let listed = offered(&daemon).unwrap();
    assert!(listed.contains("- tidy:") && !listed.contains("deploy") && !listed.contains("off"));
    assert_eq!(session.count("skill.invoked"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn bundled_files_may_be_read_while_the_skill_is_active() {
    // Outside of the working directory.
    let outside = tempfile::tempdir().unwrap();
    super::skill_in(outside.path(), "tidy", "", "See notes.md.");
    let notes = outside.path().join("tidy/notes.md");
    fs::write(&notes, "the notes\n").unwrap();
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "view", json!({"path": notes}))]),
        Turn::user("two").calls([call("b", "skill", json!({"skill": "tidy"}))]),
        Turn::any().calls([call("c", "view", json!({"path": notes}))]),
        Turn::any().says("read"),
    ])
    .await;
    let params = json!({"skillDirectories": [outside.path()]});
    let mut session = session_of(&daemon.client(), params).await;
    session.send("one").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["kind"], "read");
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    session.ask("two").await;
    let request = daemon.script().last_request();
    assert!(request.last_results()[0].starts_with("1. the notes"));
    assert_eq!(session.count("permission.requested"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_loaded_survives_a_restart_of_the_session() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().says("1"),
        Turn::user("two").says("2"),
    ])
    .await;
    skill(&daemon, "tidy", "", "Tidy.");
    let mut first = session(&daemon).await;
    first.ask("one").await;
    let id = first.id.clone();
    first.destroy().await;
    let client = daemon.client();
    let mut again = client
        .resume(&id, json!({"skillDirectories": ["lib"]}))
        .await;
    again.ask("two").await;
    let messages = daemon.script().last_request().messages().to_vec();
    let contexts = messages
        .iter()
        .filter(|it| text_of(it).starts_with("<skill-context"));
    assert_eq!(contexts.count(), 1);
    let invoked = again.call("session.skills.getInvoked", json!({})).await;
    assert_eq!(invoked["skills"][0]["name"], "tidy");
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_told_once() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let file = skill(&daemon, "tidy", "", "Tidy.");
    fs::write(
        &file,
        "---\nname: tidy\ndescription: Use when: asked\n---\nTidy.\n",
    )
    .unwrap();
    let mut session = session(&daemon).await;
    session.next("session.warning").await;
    session.ask("one").await;
    session.ask("two").await;
    let told = warnings(&session, &daemon);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(
        told[0].contains("WORK/lib/tidy/SKILL.md, line 3: "),
        "{told:?}"
    );
    assert!(
        offered(&daemon)
            .unwrap()
            .contains("- tidy: Use when: asked")
    );
    let reloaded: Value = session.call("session.skills.reload", json!({})).await;
    assert_eq!(reloaded["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(reloaded["errors"], json!([]));
    daemon.finish().await;
}
