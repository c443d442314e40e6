//! What clients find on disk through the daemon: tools, skills, agents, instructions, servers.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Turn};
use serde_json::{Value, json};

fn write(daemon: &Daemon, file: &str, text: &str) -> std::path::PathBuf {
    let path = daemon.file(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_built_in_tools_are_listed_with_their_schemas() {
    let daemon = Daemon::playing([]).await;
    // Some clients send their parameters, or none, in a list of one.
    let client = daemon.client();
    let tools = client.call("tools.list", json!([null])).await["tools"].clone();
    assert!(names(&tools).contains(&"bash"), "{tools}");
    for tool in tools.as_array().unwrap() {
        assert!(!tool["description"].as_str().unwrap().is_empty());
        assert_eq!(tool["parameters"]["type"], "object", "{tool}");
    }
    let again = client.call("tools.list", json!([{"model": "any"}])).await;
    assert_eq!(again["tools"], tools);
    for wrong in [json!([1]), json!([{}, {}])] {
        assert_eq!(client.refused("tools.list", wrong).await.code, -32602);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn skills_are_found_and_can_be_put_out_of_use() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let skill = write(
        &daemon,
        "lib/tidy/SKILL.md",
        "---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n",
    );
    write(&daemon, "lib/broken/SKILL.md", "---\nname: x\n");
    write(
        &daemon,
        "app/.github/skills/ship/SKILL.md",
        "---\nname: ship\ndescription: Ships.\n---\nShip.\n",
    );
    let params =
        json!({"projectPaths": [daemon.file("app")], "skillDirectories": [daemon.file("lib")]});
    let found = client.call("skills.discover", params.clone()).await;
    assert_eq!(names(&found["skills"]), ["ship", "tidy"]);
    let [ship, tidy] = found["skills"].as_array().unwrap().as_slice() else {
        panic!("{found}");
    };
    assert_eq!(
        (&ship["source"], &ship["projectPath"]),
        (&json!("project"), &json!(daemon.file("app")))
    );
    assert_eq!(
        (&tidy["source"], &tidy["enabled"], &tidy["path"]),
        (&json!("custom"), &json!(true), &json!(skill))
    );
    let errors = found["errors"].as_array().unwrap();
    assert!(
        errors.len() == 1
            && errors[0]
                .as_str()
                .unwrap()
                .contains("broken/SKILL.md, line 1")
    );
    let off = json!({"disabledSkills": ["tidy"]});
    let set = client.call("skills.config.setDisabledSkills", off).await;
    assert_eq!(set, Value::Null);
    let found = client.call("skills.discover", params.clone()).await;
    assert_eq!(found["skills"][1]["enabled"], false);
    let on = json!({"disabledSkills": []});
    client.call("skills.config.setDisabledSkills", on).await;
    let found = client.call("skills.discover", params).await;
    assert_eq!(found["skills"][1]["enabled"], true);
    let wrong = json!({"projectPaths": [""]});
    assert_eq!(client.refused("skills.discover", wrong).await.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn each_kind_tells_where_it_is_looked_for() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let app = daemon.file("app");
    for (kind, exclude) in [
        ("skills", "excludeHostSkills"),
        ("agents", "excludeHostAgents"),
        ("instructions", "excludeHostInstructions"),
    ] {
        let method = match kind {
            "skills" => "skills.getDiscoveryPaths",
            "agents" => "agents.getDiscoveryPaths",
            _ => "instructions.getDiscoveryPaths",
        };
        let mut params = json!({"projectPaths": [app]});
        let with_host = client.call(method, params.clone()).await;
        params[exclude] = json!(true);
        let only_project = client.call(method, params).await;
        let paths = only_project["paths"].as_array().unwrap();
        assert!(
            paths.iter().all(|path| path["projectPath"] == json!(app)),
            "{only_project}"
        );
        let preferred = paths
            .iter()
            .filter(|path| path["preferredForCreation"] == true);
        assert_eq!(preferred.count(), 1, "{kind}");
        assert!(with_host["paths"].as_array().unwrap().len() > paths.len());
    }
    daemon.finish().await;
}

#[tokio::test]
async fn agents_and_instructions_and_servers_are_found() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let app = daemon.file("app");
    write(
        &daemon,
        "app/.github/agents/reviewer.agent.md",
        "---\ndescription: Reviews.\ntools: view\n---\nYou review.",
    );
    write(
        &daemon,
        "app/.github/agents/broken.md",
        "---\ndescription: [\n---\n",
    );
    write(&daemon, "app/AGENTS.md", "Be kind.");
    write(
        &daemon,
        "app/.mcp.json",
        r#"{"mcpServers": {"docs": {"command": "never-run"}}}"#,
    );
    let projects =
        json!({"projectPaths": [app], "excludeHostAgents": true, "excludeHostInstructions": true});
    let agents = client.call("agents.discover", projects.clone()).await;
    assert_eq!(names(&agents["agents"]), ["reviewer"]);
    let agent = &agents["agents"][0];
    assert_eq!(
        (
            &agent["id"],
            &agent["source"],
            &agent["tools"],
            &agent["prompt"]
        ),
        (
            &json!("reviewer"),
            &json!("project"),
            &json!(["view"]),
            &json!("You review.")
        )
    );
    let found = client.call("instructions.discover", projects).await;
    let sources = found["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 1);
    assert_eq!(
        (
            &sources[0]["sourcePath"],
            &sources[0]["content"],
            &sources[0]["type"]
        ),
        (&json!("AGENTS.md"), &json!("Be kind."), &json!("model"))
    );
    let servers = client
        .call("mcp.discover", json!({"workingDirectory": app}))
        .await;
    assert_eq!(
        servers,
        json!({"servers": [{"name": "docs", "type": "stdio", "source": "workspace", "enabled": true}]})
    );
    daemon.finish().await;
}

#[tokio::test]
async fn instructions_of_the_project_and_of_named_folders_reach_the_model() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let client = daemon.client();
    write(&daemon, "app/AGENTS.md", "PROJECT RULE");
    write(
        &daemon,
        "extra/.github/instructions/a.instructions.md",
        "---\napplyTo: '**'\n---\nEXTRA RULE",
    );
    let system = || daemon.script().last_request().messages()[0].clone();
    let app = daemon.file("app");
    let mut session = client
        .create(json!({"workingDirectory": app, "instructionDirectories": [daemon.file("extra")]}))
        .await;
    session.ask("one").await;
    let text = text_of(&system());
    assert!(
        text.contains("PROJECT RULE") && text.contains("EXTRA RULE"),
        "{text}"
    );
    assert!(text.contains("applies_to=\"**\""), "{text}");
    let mut plain = client
        .create(json!({"workingDirectory": app, "skipCustomInstructions": true}))
        .await;
    plain.ask("two").await;
    assert!(!text_of(&system()).contains("RULE"));
    client.vanish().await;
    let mut again = daemon
        .client()
        .resume(
            &plain.id,
            json!({"instructionDirectories": [daemon.file("extra")]}),
        )
        .await;
    again.ask("three").await;
    let text = text_of(&system());
    assert!(
        text.contains("EXTRA RULE") && !text.contains("PROJECT RULE"),
        "{text}"
    );
    daemon.finish().await;
}
