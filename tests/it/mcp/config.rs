//! Where servers come from: files of the user, of the project and of plugins, and what needs trust.

use std::fs;
use std::path::Path;

use loopd_tests::{Client, Daemon, Turn, call};
use serde_json::{Value, json};

use super::{listed, noted, server, until};

async fn trust(client: &Client, folder: &Path) {
    let shown = client
        .call("loopd.trust.show", json!({"path": folder}))
        .await;
    let params = json!({"path": folder, "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn names(listed: &Value) -> Vec<(String, String)> {
    let text = |server: &Value, member: &str| server[member].as_str().unwrap().to_owned();
    let servers = listed["servers"].as_array().unwrap().iter();
    servers
        .map(|it| (text(it, "name"), text(it, "status")))
        .collect()
}

#[tokio::test]
async fn the_servers_of_a_project_need_trust_and_a_change_needs_it_again() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let file = daemon.file(".mcp.json");
    let script = daemon.file("run.py");
    fs::copy(super::program(), &script).unwrap();
    let config = json!({"mcpServers": {"box": {"command": "python3", "args": ["run.py", "good"]}}});
    write(&file, &config.to_string());
    let options = || json!({"enableConfigDiscovery": true});
    let session = client.create(options()).await;
    let untrusted = listed(&session, "box").await;
    assert_eq!(untrusted["status"], "disabled");
    assert!(untrusted["error"].as_str().unwrap().contains("loop trust"));
    trust(&client, daemon.work()).await;
    let mut session = client.create(options()).await;
    until(&mut session, "box", "connected").await;
    // The script is what was trusted, too.
    let changed = fs::read_to_string(&script).unwrap() + "\n# changed\n";
    fs::write(&script, changed).unwrap();
    let session = client.create(options()).await;
    assert_eq!(listed(&session, "box").await["status"], "disabled");
    daemon.finish().await;
}

#[tokio::test]
async fn files_of_several_programs_are_read_and_a_mistake_names_file_and_entry() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let work = daemon.work().to_owned();
    write(
        &work.join(".mcp.json"),
        r#"{"bare": {"command": "a"}, "other": {"url": "http://127.0.0.1:9"}}"#,
    );
    write(
        &work.join(".vscode/mcp.json"),
        "{ // comments are allowed\n\"servers\": {\"code\": {\"type\": \"stdio\", \"command\": \"b\"}, \"odd\": {\"type\": \"x\"}}}",
    );
    write(
        &work.join(".codex/config.toml"),
        "[mcp_servers.codex]\ncommand = \"c\"\nenabled = false\n",
    );
    write(
        &work.join("opencode.json"),
        r#"{"mcp": {"open": {"type": "local", "command": ["d", "e"]}}}"#,
    );
    write(&work.join(".github/mcp.json"), "{ broken");
    write(
        &daemon.home().join("mcp-config.json"),
        r#"{"mcpServers": {"mine": {"command": "f"}, "bare": {"command": "shadowed"}}}"#,
    );
    let params = json!({"workingDirectory": work});
    let found = client.call("mcp.discover", params.clone()).await;
    let found: Vec<String> = found["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!(
                "{} {} {}",
                it["name"].as_str().unwrap(),
                it["source"].as_str().unwrap(),
                it["enabled"]
            )
        })
        .collect();
    let expected = [
        "bare workspace true",
        "other workspace true",
        "code workspace true",
        "codex workspace false",
        "open workspace true",
        "mine user true",
    ];
    assert_eq!(found, expected);
    let problems = client.call("loopd.discoveryProblems", params).await;
    let problems: Vec<String> = problems["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!(
                "{}: {}",
                it["file"].as_str().unwrap(),
                it["message"].as_str().unwrap()
            )
        })
        .collect();
    let told = |file: &str, what: &str| {
        let mut problems = problems.iter();
        problems.any(|problem| problem.contains(file) && problem.contains(what))
    };
    assert!(
        told(
            ".vscode/mcp.json",
            "the server `odd` has a `type` other than"
        ),
        "{problems:?}"
    );
    assert!(told(".github/mcp.json", "not valid JSON"), "{problems:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_mistake_in_one_entry_leaves_the_others_alone() {
    let daemon = Daemon::playing([]).await;
    let servers = json!({
        "good": server("good", &[]),
        "empty": {},
        "lost": {"command": "python3", "cwd": "no/such/folder"},
        "far": {"url": "ftp://a.example"},
    });
    let mut session = daemon.client().create(json!({"mcpServers": servers})).await;
    until(&mut session, "good", "connected").await;
    for (name, word) in [
        ("empty", "neither a `command` nor a `url`"),
        ("lost", "working directory that does not exist"),
        ("far", "begins with ftp://"),
    ] {
        let server = listed(&session, name).await;
        assert_eq!(server["status"], "failed", "{name}");
        assert!(server["error"].as_str().unwrap().contains(word), "{server}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_not_known_in_an_entry_of_an_app_is_told() {
    let daemon = Daemon::playing([]).await;
    let mut config = server("good", &[]);
    config["exclude_tools"] = json!(["crash"]);
    let mut session = daemon
        .client()
        .create(json!({"mcpServers": {"box": config}}))
        .await;
    listed(&session, "box").await;
    let told = session.next("session.warning").await["data"].to_string();
    assert!(
        told.contains("a member `exclude_tools`, which is not known"),
        "{told}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn plugins_bring_servers_and_a_session_does_without_some() {
    let daemon = Daemon::playing([]).await;
    let plugin = daemon.file("plugin");
    write(&plugin.join("plugin.json"), r#"{"name": "tools"}"#);
    let mark = plugin.join("started.log");
    let one = server("good", &["--mark", &mark.display().to_string()]);
    let servers = json!({"mcpServers": {"one": one, "two": server("good", &[])}});
    write(&plugin.join(".mcp.json"), &servers.to_string());
    let client = daemon.client();
    let options = json!({"pluginDirectories": [plugin], "disabledMcpServers": ["two"]});
    let mut session = client.create(options).await;
    let one = until(&mut session, "one", "connected").await;
    assert_eq!(
        (&one["source"], &one["sourcePlugin"]),
        (&json!("plugin"), &json!("tools"))
    );
    assert_eq!(listed(&session, "two").await["status"], "disabled");
    // What the server writes to a file of its own does not count.
    assert_eq!(noted(&mark).lines().count(), 1);
    assert_eq!(listed(&session, "one").await["status"], "connected");
    // What an agent changes in the folder does not count in this session.
    let changed = json!({"mcpServers": {"one": server("good", &["--mark", "x"])}});
    write(&plugin.join(".mcp.json"), &changed.to_string());
    assert_eq!(listed(&session, "one").await["status"], "disabled");
    daemon.finish().await;
}

#[tokio::test]
async fn the_user_s_own_file_is_changed_by_methods() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let config = server("good", &[]);
    let entry = |name: &str, config: &Value| json!({"name": name, "config": config});
    client.call("mcp.config.add", entry("mine", &config)).await;
    let refused = client
        .refused("mcp.config.add", entry("mine", &config))
        .await;
    assert!(refused.message.contains("already"), "{refused:?}");
    let refused = client
        .refused("mcp.config.add", entry("x", &json!({})))
        .await;
    assert!(
        refused.message.contains("neither a `command`"),
        "{refused:?}"
    );
    let mut other = config.clone();
    other["timeout"] = json!(5000);
    client
        .call("mcp.config.update", entry("mine", &other))
        .await;
    let list = client.call("mcp.config.list", json!({})).await;
    assert_eq!(list["servers"]["mine"]["timeout"], 5000);
    let discovers = || json!({"enableConfigDiscovery": true});
    client
        .call("mcp.config.disable", json!({"names": ["mine"]}))
        .await;
    let session = client.create(discovers()).await;
    assert_eq!(listed(&session, "mine").await["status"], "disabled");
    client
        .call("mcp.config.enable", json!({"names": ["mine"]}))
        .await;
    client.call("mcp.config.reload", json!({})).await;
    let mut session = client.create(discovers()).await;
    until(&mut session, "mine", "connected").await;
    client
        .call("mcp.config.remove", json!({"name": "mine"}))
        .await;
    let refused = client
        .refused("mcp.config.remove", json!({"name": "mine"}))
        .await;
    assert!(refused.message.contains("no server `mine`"), "{refused:?}");
    let session = client.create(json!({})).await;
    let list = session.call("session.mcp.list", json!({})).await;
    assert_eq!(names(&list), []);
    daemon.finish().await;
}

#[tokio::test]
async fn values_of_variables_are_given_by_value_or_by_name() {
    let asks = || call("a", "box-env", json!({"name": "A"}));
    let script = loopd_tests::Script::play([
        Turn::user("by name").calls([asks()]),
        Turn::results(["given"]).says("ok"),
        Turn::user("by value").calls([asks()]),
        Turn::results(["WORD"]).says("ok"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("WORD", "given")
        .start()
        .await;
    let client = daemon.client();
    let mut config = server("good", &[]);
    config["env"] = json!({"A": "WORD"});
    let mut lost = server("good", &[]);
    lost["env"] = json!({"A": "NO_SUCH_VARIABLE"});
    let servers = json!({"mcpServers": {"box": config, "lost": lost}});
    let mut session = client.create(servers).await;
    session.approve_all().await;
    let set = json!({"mode": "indirect"});
    let mode = session.call("session.mcp.setEnvValueMode", set).await;
    assert_eq!(mode["mode"], "indirect");
    let removed = session.call("session.mcp.removeGitHub", json!({})).await;
    assert_eq!(removed["removed"], false);
    until(&mut session, "box", "connected").await;
    let lost = listed(&session, "lost").await;
    let error = lost["error"].as_str().unwrap();
    assert!(
        error.contains("NO_SUCH_VARIABLE, which is not set"),
        "{error}"
    );
    session.ask("by name").await;
    session
        .call("session.mcp.setEnvValueMode", json!({"mode": "direct"}))
        .await;
    session.ask("by value").await;
    let moved = session
        .call("session.mcp.moveLoadingToBackground", json!({}))
        .await;
    assert_eq!(moved["movedToBackground"], false);
    daemon.finish().await;
}
