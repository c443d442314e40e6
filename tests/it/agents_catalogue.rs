//! The agents of a session over the wire: found in files, read anew, trusted or not, selected.

use std::path::Path;

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
}

fn agent(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nYou are {description}.\n")
}

/// Names and descriptions, in order.
fn told(list: &Value) -> Vec<(&str, &str)> {
    let agents = list["agents"].as_array().unwrap().iter();
    agents
        .map(|agent| {
            (
                agent["name"].as_str().unwrap(),
                agent["description"].as_str().unwrap(),
            )
        })
        .collect()
}

async fn list(session: &Session) -> Value {
    session.call("session.agent.list", json!({})).await
}

#[tokio::test]
async fn files_are_found_and_an_edit_counts_at_once() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    assert_eq!(list(&session).await, json!({"agents": []}));
    write(daemon.work(), ".github/agents/one.md", &agent("first"));
    let found = list(&session).await;
    assert_eq!(told(&found), [("one", "first")]);
    let one = &found["agents"][0];
    assert_eq!(
        (&one["source"], &one["userInvocable"], &one["prompt"]),
        (&json!("project"), &json!(true), &Value::Null)
    );
    assert_eq!(one["path"], json!(daemon.file(".github/agents/one.md")));
    write(daemon.work(), ".github/agents/one.md", &agent("changed"));
    write(daemon.work(), ".claude/agents/two.md", &agent("second"));
    let again = session.call("session.agent.reload", json!({})).await;
    assert_eq!(told(&again), [("one", "changed"), ("two", "second")]);
    assert_eq!(again, list(&session).await);
    std::fs::remove_file(daemon.file(".github/agents/one.md")).unwrap();
    assert_eq!(told(&list(&session).await), [("two", "second")]);
    let params = json!({"includePrompt": true});
    let prompts = session.call("session.agent.list", params).await;
    assert_eq!(prompts["agents"][0]["prompt"], "You are second.");
    daemon.finish().await;
}

/// Counts the warnings of a reload. The lookup for a client that attaches warns, too, if it comes
/// late enough to see the files.
fn warnings(session: &Session) -> usize {
    let events = session.events();
    let of_reload = |event: &&Value| event["data"]["warningType"] == "custom_agents";
    events.iter().filter(of_reload).count()
}

#[tokio::test]
async fn a_broken_file_is_told_with_its_line_while_others_load() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let wrong = "---\ndescription: Does.\npermissionMode: root\n---\n";
    write(daemon.work(), ".github/agents/bad.md", wrong);
    write(daemon.work(), ".github/agents/good.md", &agent("fine"));
    let found = session.call("session.agent.reload", json!({})).await;
    assert_eq!(told(&found), [("good", "fine")]);
    let warning = session
        .next_where("a warning about agents", |event| {
            event["data"]["warningType"] == "custom_agents"
        })
        .await;
    let message = warning["data"]["message"].as_str().unwrap();
    let place = format!(
        "{}, line 3: ",
        daemon.file(".github/agents/bad.md").display()
    );
    assert!(message.starts_with(&place), "{message}");
    assert!(
        message.contains("root") && message.contains("acceptEdits"),
        "{message}"
    );
    assert_eq!(warnings(&session), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn servers_of_agents_count_only_in_trusted_folders() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let text = "---\ndescription: Does.\ntools: [view]\nmodel: gpt-5\nmcp-servers:\n  docs:\n    command: docs\n---\n";
    write(daemon.work(), ".github/agents/docs.md", text);
    let found = session.call("session.agent.reload", json!({})).await;
    let agent = &found["agents"][0];
    assert_eq!(
        (&agent["tools"], &agent["model"], &agent["mcpServers"]),
        (&json!(["view"]), &json!("gpt-5"), &Value::Null)
    );
    let warning = session
        .next_where("a warning about agents", |event| {
            event["data"]["warningType"] == "custom_agents"
        })
        .await;
    let message = warning["data"]["message"].as_str().unwrap();
    let method = "session.permissions.folderTrust.addTrusted";
    assert!(
        message.contains("`mcpServers`") && message.contains(method),
        "{message}"
    );
    session.call(method, json!({"path": daemon.work()})).await;
    let found = session.call("session.agent.reload", json!({})).await;
    assert_eq!(
        found["agents"][0]["mcpServers"],
        json!({"docs": {"command": "docs"}})
    );
    assert_eq!(warnings(&session), 1, "nothing is left out now");
    daemon.finish().await;
}

#[tokio::test]
async fn the_client_goes_before_the_project_and_that_before_the_user() {
    let user = TempDir::new().unwrap();
    let home = user.path().to_string_lossy().into_owned();
    let daemon = Daemon::builder().env("HOME", &home).start().await;
    for (file, who) in [("one", "project"), ("two", "project")] {
        write(
            daemon.work(),
            &format!(".github/agents/{file}.md"),
            &agent(who),
        );
    }
    for file in ["one", "two", "three", "explore"] {
        write(
            user.path(),
            &format!(".claude/agents/{file}.md"),
            &agent("user"),
        );
    }
    let custom = json!([{"name": "one", "description": "client", "prompt": "Hi."}]);
    let session = daemon
        .client()
        .create(json!({"customAgents": custom}))
        .await;
    let found = list(&session).await;
    let expected = [
        ("one", "client"),
        ("two", "project"),
        ("explore", "user"),
        ("three", "user"),
    ];
    assert_eq!(told(&found), expected);
    assert_eq!(
        found["agents"][0].get("source"),
        None,
        "a client's has none"
    );
    assert_eq!(found["agents"][3]["source"], "user");

    let all = json!({"includeBuiltInAgents": true});
    let with_ours = session.call("session.agent.list", all.clone()).await;
    let names: Vec<&str> = told(&with_ours).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.iter().filter(|name| **name == "explore").count(), 1);
    assert!(
        names.contains(&"research") && names.contains(&"plan"),
        "{names:?}"
    );
    let plan = with_ours["agents"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&plan["name"], &plan["source"]),
        (&json!("plan"), &json!("builtin"))
    );

    let options = json!({"excludedBuiltinAgents": ["research", "explore"]});
    let without = daemon.client().create(options).await;
    let listed = without.call("session.agent.list", all).await;
    let names: Vec<&str> = told(&listed).into_iter().map(|(name, _)| name).collect();
    assert!(!names.contains(&"research"), "{names:?}");
    assert!(
        names.contains(&"explore"),
        "somebody else's stays: {names:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn people_select_agents_of_files_and_our_primary_ones() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let text = "---\ndescription: Reviews.\nname: My Reviewer\ntools: [view]\n---\n";
    write(daemon.work(), ".github/agents/reviewer.md", text);
    let hidden = "---\ndescription: Helps.\nuser-invocable: false\n---\n";
    write(daemon.work(), ".github/agents/helper.md", hidden);
    for unknown in ["nobody", "helper", "explore"] {
        let params = json!({"name": unknown});
        let error = session.refused("session.agent.select", params).await;
        assert!(
            error.message.ends_with(": My Reviewer, build, plan"),
            "{error}"
        );
    }
    let params = json!({"name": "my_reviewer"});
    let selected = session.call("session.agent.select", params).await;
    assert_eq!(selected["agent"]["name"], "My Reviewer");
    let event = session.next("subagent.selected").await;
    assert_eq!(
        (&event["data"]["agentName"], &event["data"]["tools"]),
        (&json!("My Reviewer"), &json!(["view"]))
    );
    let current = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(current, selected);
    std::fs::remove_file(daemon.file(".github/agents/reviewer.md")).unwrap();
    let current = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(current, json!({"agent": null}));

    let params = json!({"name": "plan"});
    let selected = session.call("session.agent.select", params).await;
    assert_eq!(
        (
            &selected["agent"]["displayName"],
            &selected["agent"]["source"]
        ),
        (&json!("Plan"), &json!("builtin"))
    );
    let event = session.next("subagent.selected").await;
    let tools = event["data"]["tools"].as_array().unwrap();
    assert!(
        tools.contains(&json!("view")) && !tools.contains(&json!("edit")),
        "{event}"
    );
    session.call("session.agent.deselect", json!({})).await;
    session.next("subagent.deselected").await;
    let current = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(current, json!({"agent": null}));
    daemon.finish().await;
}

#[tokio::test]
async fn servers_that_a_client_gives_its_agents_are_not_written_down() {
    let daemon = Daemon::playing([]).await;
    let servers = json!({"docs": {"command": "docs", "env": {"KEY": "not-for-the-log"}}});
    let custom = json!([{"name": "one", "prompt": "Hi.", "mcpServers": servers}]);
    let session = daemon
        .client()
        .create(json!({"customAgents": custom}))
        .await;
    let state = format!("{:?}", daemon.state(&session.id).await);
    assert!(
        state.contains("one") && !state.contains("not-for-the-log"),
        "{state}"
    );
    let listed = list(&session).await.to_string();
    assert!(!listed.contains("not-for-the-log"), "{listed}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_selected_agent_of_a_file_answers_with_its_prompt_and_tools() {
    let turns = ["one", "two", "three"].map(|text| Turn::user(text).says("ok"));
    let daemon = Daemon::playing(turns).await;
    let mut session = daemon.client().create(json!({})).await;
    let text = |prompt: &str| format!("---\ndescription: Reads.\ntools: Read\n---\n{prompt}\n");
    write(
        daemon.work(),
        ".claude/agents/reader.md",
        &text("READ ONLY"),
    );
    let reader = json!({"name": "reader"});
    session.call("session.agent.select", reader).await;
    session.ask("one").await;
    let request = daemon.script().last_request();
    assert_eq!(request.tools(), ["view"]);
    assert!(text_of(&request.messages()[0]).contains("READ ONLY"));
    write(
        daemon.work(),
        ".claude/agents/reader.md",
        &text("READ TWICE"),
    );
    session.ask("two").await;
    let request = daemon.script().last_request();
    assert!(text_of(&request.messages()[0]).contains("READ TWICE"));
    session
        .call("session.agent.select", json!({"name": "plan"}))
        .await;
    session.ask("three").await;
    let tools = daemon.script().last_request();
    let tools = tools.tools();
    assert!(
        tools.contains(&"view") && !tools.contains(&"edit"),
        "{tools:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn plugins_of_the_session_and_of_the_launch_bring_agents() {
    let daemon = Daemon::playing([]).await;
    write(
        daemon.work(),
        "mine/agents/one.md",
        &agent("of the session"),
    );
    write(
        daemon.work(),
        "theirs/agents/two.md",
        &agent("of the launch"),
    );
    let client = daemon.client();
    let wrong = json!({"paths": ["nowhere"]});
    let refused = client.refused("plugins.builtin.set", wrong).await;
    assert!(refused.message.contains("nowhere"), "{}", refused.message);
    let session = client.create(json!({"pluginDirectories": ["mine"]})).await;
    assert_eq!(told(&list(&session).await), [("one", "of the session")]);
    let paths = json!({"paths": [daemon.file("theirs")]});
    assert_eq!(client.call("plugins.builtin.set", paths).await, json!(null));
    let found = list(&session).await;
    assert_eq!(
        told(&found),
        [("one", "of the session"), ("two", "of the launch")]
    );
    assert_eq!(found["agents"][0]["source"], "plugin");
    daemon.finish().await;
}
