//! Names of commands: who has one that several want, what is listed, what completes.

use loopd_tests::Daemon;
use serde_json::json;

use super::{INVOKE, LIST, command, listed, session, session_of, write};

#[tokio::test]
async fn a_name_belongs_to_the_client_then_to_us_then_to_the_project_then_to_the_user() {
    let daemon = Daemon::playing([]).await;
    for name in ["deploy", "help", "notes"] {
        command(&daemon, name, "Of the project.");
        write(
            &daemon.home().join(format!("commands/{name}.md")),
            "Of the user.",
        );
    }
    let commands = json!({"commands": [{"name": "Deploy", "description": "Of the client"}]});
    let mut session = session_of(&daemon.client(), commands).await;
    let kinds = [
        ("Deploy", "client"),
        ("project:deploy", "skill"),
        ("user:deploy", "skill"),
        ("help", "builtin"),
        ("project:help", "skill"),
        ("user:help", "skill"),
        ("notes", "skill"),
        ("user:notes", "skill"),
    ];
    for (name, kind) in kinds {
        let found = listed(&session, name).await;
        assert_eq!(
            found.unwrap_or_else(|| panic!("{name}"))["kind"],
            kind,
            "{name}"
        );
    }
    let all = session.call(LIST, json!({})).await;
    let problems = all["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 5, "{problems:?}");
    let told = problems
        .iter()
        .all(|it| it["message"].as_str().unwrap().contains("is called /"));
    assert!(told, "{problems:?}");
    let files = json!({"includeBuiltins": false, "includeClientCommands": false});
    let files = session.call(LIST, files).await;
    assert_eq!(files["commands"].as_array().unwrap().len(), 6);
    let none = json!({"includeSkills": false});
    let none = session.call(LIST, none).await;
    assert!(none.get("problems").is_none());

    for (name, text) in [("notes", "Of the project."), ("user:NOTES", "Of the user.")] {
        let invoked = session.call(INVOKE, json!({ "name": name })).await;
        assert_eq!(invoked["prompt"], text);
    }
    let running = session.start(INVOKE, json!({"name": "deploy"}));
    let handed = session.next("command.execute").await;
    let request = json!({"requestId": handed["data"]["requestId"]});
    session
        .call("session.commands.handlePendingCommand", request)
        .await;
    assert_eq!(running.await.unwrap()["kind"], "completed");
    daemon.finish().await;
}

#[tokio::test]
async fn help_lists_every_command_and_an_unknown_name_names_the_nearest() {
    let daemon = Daemon::playing([]).await;
    command(
        &daemon,
        "changelog",
        "---\ndescription: Writes the changelog\n---\nWrite it.",
    );
    command(&daemon, "git/pr", "Open one.");
    let commands = json!({"commands": [{"name": "deploy", "description": "Deploys"}]});
    let session = session_of(&daemon.client(), commands).await;
    let help = session.call(INVOKE, json!({"name": "help"})).await;
    let help = help["text"].as_str().unwrap();
    let all = session.call(LIST, json!({})).await;
    let names = all["commands"].as_array().unwrap().iter();
    for name in names.map(|command| command["name"].as_str().unwrap()) {
        assert!(
            help.contains(&format!("`/{name}")),
            "/{name} is missing: {help}"
        );
    }
    let cases = [
        ("chnagelog", "/changelog"),
        ("change", "/changelog"),
        ("deplyo", "/deploy"),
        ("halp", "/help"),
        ("git:pt", "/git:pr"),
    ];
    for (typed, meant) in cases {
        let unknown = session.refused(INVOKE, json!({ "name": typed })).await;
        let near = format!("did you mean {meant}?");
        assert!(unknown.message.contains(&near), "{typed}: {unknown}");
    }
    let far = session.refused(INVOKE, json!({"name": "xyzzy"})).await;
    assert!(!far.message.contains("did you mean"), "{far}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_finds_no_configuration_has_no_commands_of_files() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "notes", "Text.");
    let plain = daemon
        .client()
        .create(json!({"enableConfigDiscovery": false}))
        .await;
    assert!(listed(&plain, "notes").await.is_none());
    assert!(listed(&session(&daemon).await, "notes").await.is_some());
    let problems = daemon
        .client()
        .call("loopd.discoveryProblems", json!({}))
        .await;
    assert_eq!(problems["problems"], json!([]));
    write(
        &daemon.work().join(".claude/commands/bad.md"),
        "---\nmodel: [\n---\nText.",
    );
    let problems = daemon
        .client()
        .call("loopd.discoveryProblems", json!({}))
        .await;
    let problem = &problems["problems"][0];
    assert!(
        problem["file"].as_str().unwrap().ends_with("bad.md"),
        "{problem}"
    );
    assert!(problem["line"].is_u64(), "{problem}");
    daemon.finish().await;
}

#[tokio::test]
async fn names_are_completed() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "modernise", "Text.");
    let session = session(&daemon).await;
    let request = "session.completions.request";
    let triggers = session
        .call("session.completions.getTriggerCharacters", json!({}))
        .await;
    assert_eq!(triggers, json!({"triggerCharacters": []}));
    let found = session
        .call(request, json!({"text": " /MOD", "offset": 5}))
        .await;
    let items = found["items"].as_array().unwrap();
    let texts: Vec<&str> = items
        .iter()
        .map(|it| it["insertText"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["/model ", "/modernise "]);
    assert_eq!(
        (&items[0]["rangeStart"], &items[0]["rangeEnd"]),
        (&json!(1), &json!(5))
    );
    let agents = session
        .call(request, json!({"text": "/agents pl", "offset": 10}))
        .await;
    let agents = agents["items"].as_array().unwrap();
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert_eq!(
        (&agents[0]["insertText"], &agents[0]["rangeStart"]),
        (&json!("plan "), &json!(8))
    );
    for (text, offset) in [("/model x", 8), ("say /mod", 8), ("", 0), ("/mod", 0)] {
        let none = session
            .call(request, json!({"text": text, "offset": offset}))
            .await;
        assert_eq!(none, json!({"items": []}), "{text}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_whose_file_is_not_used_says_why() {
    let daemon = Daemon::playing([]).await;
    let session = session(&daemon).await;
    for (name, front, why) in [
        ("a", "allowed-tools: \"*, !Bash\"", "!Bash"),
        ("b", "allowed-tools:", "names no tool"),
        ("c", "Allowed-Tools: Read", "Allowed-Tools"),
        ("d", "allowed_tools: Read", "allowed_tools"),
        ("e", "alowed-tools: Read", "alowed-tools"),
        ("f", "disallowed_tools: Bash", "disallowed_tools"),
    ] {
        command(&daemon, name, &format!("---\n{front}\n---\nDo it."));
        let error = session.refused(INVOKE, json!({ "name": name })).await;
        assert!(
            error.message.contains(why) && error.message.contains(&format!("{name}.md")),
            "{error}"
        );
    }
    let error = session.refused(INVOKE, json!({"name": "none"})).await;
    assert!(error.message.contains("there is no command"), "{error}");
    daemon.finish().await;
}

/// A remark about a file that is used is no reason why another name does not run.
#[tokio::test]
async fn a_file_that_is_used_is_not_given_as_the_reason() {
    let daemon = Daemon::playing([]).await;
    let session = session(&daemon).await;
    let remarked = "---\nspelling: wrong\n---\nDo it.";
    command(&daemon, "used", remarked);
    let named = daemon.work().join(".github/prompts/file.prompt.md");
    write(&named, "---\nname: other\nspelling: wrong\n---\nDo it.");
    command(&daemon, "front/broken", "---\nallowed-tools:\n---\nDo it.");
    let named = session.call(INVOKE, json!({"name": "other"})).await;
    assert_eq!(named["prompt"], "Do it.");
    for name in ["nowhere:used", "file", "back:broken"] {
        let error = session.refused(INVOKE, json!({ "name": name })).await;
        assert!(
            error.message.contains("there is no command"),
            "{name}: {error}"
        );
    }
    for name in ["broken", "front:broken", "project:broken", "Front/Broken"] {
        let error = session.refused(INVOKE, json!({ "name": name })).await;
        assert!(error.message.contains("names no tool"), "{name}: {error}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_whose_file_is_not_used_is_not_queued() {
    let daemon = Daemon::playing([loopd_tests::Turn::user("after it").says("fine")]).await;
    command(
        &daemon,
        "broken",
        "---\ndisallowed-tools: Bash\n---\nDo it.",
    );
    let mut session = session(&daemon).await;
    let invoked = session.refused(INVOKE, json!({"name": "broken"})).await;
    let queued = session
        .refused(
            "session.commands.enqueue",
            json!({"command": "/broken now"}),
        )
        .await;
    for refused in [invoked, queued] {
        let why = &refused.message;
        assert!(why.contains("its file is not used"), "{why}");
        assert!(why.contains("broken.md, line 2"), "{why}");
    }
    session.ask("after it").await;
    daemon.finish().await;
}
