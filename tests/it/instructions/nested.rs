//! Instructions that follow when a file near them, or one that they are for, was used.

use super::*;

/// Returns the texts of the conversation that give instructions.
fn followed(daemon: &Daemon) -> Vec<String> {
    let request = daemon.script().last_request();
    let messages = request.messages().iter().skip(1);
    let users = messages.filter(|message| message["role"] == "user");
    let texts = users.map(text_of);
    texts
        .filter(|text| text.starts_with("<instructions_that_apply_now>"))
        .collect()
}

#[tokio::test]
async fn nested_instructions_follow_once_when_a_file_near_them_is_read() {
    let view = |id: &str, path: &str| call(id, "view", json!({"path": path}));
    let daemon = Daemon::playing([
        Turn::user("look").calls([view("a", "sub/deep/x.txt"), view("b", "sub/deep/y.txt")]),
        Turn::any().calls([view("c", "sub/deep/x.txt"), view("d", "z.txt")]),
        Turn::any().says("done"),
    ])
    .await;
    let app = repository(&daemon);
    write(&daemon, "app/AGENTS.md", "ROOT");
    write(&daemon, "app/z.txt", "z");
    write(&daemon, "app/sub/AGENTS.md", "OF SUB");
    write(&daemon, "app/sub/deep/CLAUDE.md", "OF DEEP");
    write(&daemon, "app/sub/deep/x.txt", "x");
    write(&daemon, "app/sub/deep/y.txt", "y");
    let mut session = daemon
        .client()
        .create(json!({"workingDirectory": app}))
        .await;
    session.approve_all().await;
    session.ask("look").await;
    let texts = followed(&daemon);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(order(&texts[0], &["OF SUB", "OF DEEP"]).is_sorted());
    assert!(!texts[0].contains("ROOT"));
    let request = daemon.script().last_request();
    let roles: Vec<&str> = request
        .messages()
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "tool",
        "tool",
    ];
    assert_eq!(roles, expected);
    daemon.finish().await;
}

#[tokio::test]
async fn instructions_for_certain_files_are_listed_and_follow_when_one_is_used() {
    let view = |path: &str| call("a", "view", json!({"path": path}));
    let turns = [
        Turn::user("text").calls([view("a.txt")]),
        Turn::any().says("1"),
        Turn::user("rust").calls([call(
            "b",
            "create",
            json!({"path": "src/b.rs", "file_text": "b"}),
        )]),
        Turn::any().says("2"),
        Turn::user("off").calls([view("src/a.rs")]),
        Turn::any().says("3"),
    ];
    let daemon = Daemon::playing(turns).await;
    let app = repository(&daemon);
    write(&daemon, "app/a.txt", "a");
    write(&daemon, "app/src/a.rs", "a");
    let rust = "---\napplyTo: **/*.rs\ndescription: How Rust is written\n---\nRUST RULE @more.md";
    write(
        &daemon,
        "app/.github/instructions/rust.instructions.md",
        rust,
    );
    write(&daemon, "app/.github/instructions/more.md", "MORE RUST");
    write(
        &daemon,
        "app/.github/instructions/all.instructions.md",
        "---\napplyTo: '**'\n---\nFOR ALL",
    );
    let client = daemon.client();
    let mut session = client.create(json!({"workingDirectory": app})).await;
    session.approve_all().await;
    session.ask("text").await;
    let text = system(&daemon);
    assert!(
        text.contains("FOR ALL") && text.contains("(for **/*.rs): How Rust is written"),
        "{text}"
    );
    assert!(!text.contains("RUST RULE"), "{text}");
    assert!(followed(&daemon).is_empty());
    let warned = warnings(&session).join("\n");
    assert!(warned.contains("it is read line by line"), "{warned}");
    session.ask("rust").await;
    let texts = followed(&daemon);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(order(&texts[0], &["RUST RULE", "MORE RUST"]).is_sorted());
    // A session that wants none later has all at once.
    let params = json!({"workingDirectory": app, "enableOnDemandInstructionDiscovery": false});
    let mut session = client.create(params).await;
    session.approve_all().await;
    session.ask("off").await;
    let text = system(&daemon);
    assert!(
        text.contains("applies_to=\"**/*.rs\"") && text.contains("RUST RULE"),
        "{text}"
    );
    assert!(followed(&daemon).is_empty());
    daemon.finish().await;
}

#[tokio::test]
async fn an_attached_file_brings_the_instructions_near_it() {
    let daemon =
        Daemon::playing([Turn::user("see").says("1"), Turn::user("again").says("2")]).await;
    let app = repository(&daemon);
    write(&daemon, "app/sub/AGENTS.md", "OF SUB");
    let file = write(&daemon, "app/sub/x.txt", "x");
    let mut session = daemon
        .client()
        .create(json!({"workingDirectory": app}))
        .await;
    for prompt in ["see", "again"] {
        let attachments = json!([{"type": "file", "path": file, "displayName": "x.txt"}]);
        let message = json!({"prompt": prompt, "attachments": attachments});
        session.call("session.send", message).await;
        session.next("session.idle").await;
        let texts = followed(&daemon);
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains("OF SUB"));
    }
    daemon.finish().await;
}
