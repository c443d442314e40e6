//! An option of a session that cannot be honoured is refused by its name when the session is opened
//! or changed.

use loopd_tests::{Commits, Daemon, Turn};
use serde_json::{Value, json};

/// Options that mean nothing, and what the error says of them.
fn wrong(daemon: &Daemon) -> Vec<(Value, &'static str)> {
    std::fs::write(daemon.file("a_file"), "").unwrap();
    vec![
        (
            json!({"reasoningEffort": "extreme"}),
            "reasoningEffort: \"extreme\" is none of none, minimal, low",
        ),
        (json!({"reasoningEffort": ""}), "reasoningEffort"),
        (
            json!({"systemMessage": {"mode": "prepend", "content": "x"}}),
            "systemMessage.mode: \"prepend\" is none of append, replace, customize",
        ),
        (json!({"systemMessage": []}), "systemMessage"),
        (
            json!({"toolFilterPrecedence": "both"}),
            "toolFilterPrecedence: \"both\" is none of",
        ),
        (
            json!({"workingDirectory": "/nowhere/at/all"}),
            "workingDirectory: /nowhere/at/all does not exist",
        ),
        (
            json!({"workingDirectory": daemon.file("a_file")}),
            "is not a directory",
        ),
        (
            json!({"workingDirectory": ""}),
            "workingDirectory: it is empty",
        ),
        (
            json!({"reasoningSummary": "brief"}),
            "reasoningSummary: \"brief\" is none of none, auto, concise, detailed",
        ),
        (
            json!({"contextTier": "huge"}),
            "contextTier: \"huge\" is none of default, long_context",
        ),
        (
            json!({"subagents": {"maxDepth": 0}}),
            "subagents.maxDepth: must be at least 1",
        ),
        (
            json!({"subagents": {"agents": {"explore": {"effortLevel": "extreme"}}}}),
            "subagents.agents.explore.effortLevel: \"extreme\" is none of",
        ),
        (
            json!({"infiniteSessions": {"backgroundCompactionThreshold": 7}}),
            "infiniteSessions.backgroundCompactionThreshold: 7 is not a part of the context window, from 0 to 1",
        ),
        (
            json!({"infiniteSessions": {"bufferExhaustionThreshold": "all"}}),
            "infiniteSessions.bufferExhaustionThreshold",
        ),
        (
            json!({"infiniteSessions": {"enabled": "no"}}),
            "infiniteSessions.enabled: it is not true or false",
        ),
        (
            json!({"infiniteSessions": 1}),
            "infiniteSessions: it is not an object",
        ),
        (
            json!({"customAgents": [{"name": "mine"}]}),
            "customAgents[0].prompt: the agent `mine` has no prompt",
        ),
        (
            json!({"customAgents": [{"name": "mine", "prompt": "a"}, {"name": "Mine", "prompt": "b"}]}),
            "customAgents[1].name: there are two agents named `Mine`",
        ),
        (
            json!({"customAgents": [{"name": "", "prompt": "a"}]}),
            "customAgents[0].name: the agent has no name",
        ),
        (
            json!({"customAgents": [{"name": "a", "prompt": "a", "reasoningEffort": "extreme"}]}),
            "customAgents[0].reasoningEffort: \"extreme\" is none of",
        ),
        (
            json!({"trustWorkingDirectory": "session"}),
            "trustWorkingDirectory: a folder cannot be trusted for one session",
        ),
        (
            json!({"trustWorkingDirectory": "always"}),
            "trustWorkingDirectory: unknown value `always`, expected `session` or `user`",
        ),
        (
            json!({"memory": true}),
            "memory: invalid type: boolean `true`, expected an object",
        ),
        (
            json!({"mcpOAuthTokenStorage": "cloud"}),
            "mcpOAuthTokenStorage: unknown value `cloud`, expected `persistent` or `in-memory`",
        ),
        (json!({"managedSettings": []}), "managedSettings"),
        (
            json!({"managedSettings": {"permissions": []}}),
            "managedSettings",
        ),
        (json!({"tools": [{"name": "a tool"}]}), "tools[0].name"),
        (json!({"tools": [{"name": "a\u{7}b"}]}), "tools[0].name"),
        (
            json!({"tools": [{"name": "x".repeat(129)}]}),
            "tools[0].name",
        ),
    ]
}

#[tokio::test]
async fn an_option_without_meaning_is_refused_by_name() {
    let daemon = Daemon::builder().start().await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    for (params, expected) in wrong(&daemon) {
        let error = client.refused("session.create", params.clone()).await;
        assert_eq!(error.code, -32602, "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
        let mut resumed = params;
        resumed["sessionId"] = session.id.as_str().into();
        let error = client.refused("session.resume", resumed).await;
        assert_eq!(error.code, -32602, "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
    }
    for (params, expected) in [
        (
            json!({"modelId": "m", "reasoningSummary": "brief"}),
            "reasoningSummary",
        ),
        (
            json!({"modelId": "m", "contextTier": "huge"}),
            "contextTier",
        ),
    ] {
        let error = session.refused("session.model.switchTo", params).await;
        let expected = format!("session.model.switchTo: {expected}: ");
        assert!(error.message.contains(&expected), "{}", error.message);
    }
    let update = json!({"reasoningEffort": "extreme"});
    let switch = json!({"modelId": "m", "reasoningEffort": "extreme"});
    for (method, params) in [
        ("session.options.update", update.clone()),
        ("session.model.switchTo", switch),
        ("session.model.setReasoningEffort", update),
    ] {
        let error = session.refused(method, params).await;
        assert!(
            error.message.contains("is none of none, minimal"),
            "{}",
            error.message
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_is_not_created_in_a_directory_that_is_missing() {
    let daemon = Daemon::builder().start().await;
    let client = daemon.client();
    for (named, why) in [
        ("/nowhere/at/all", "/nowhere/at/all does not exist"),
        ("below/nothing", "below/nothing does not exist"),
        ("", "it is empty"),
    ] {
        let params = json!({"sessionId": "s-missing", "workingDirectory": named});
        let error = client.refused("session.create", params).await;
        let expected = format!("workingDirectory: {why}");
        assert!(error.message.contains(&expected), "{}", error.message);
    }
    let resumed = json!({"sessionId": "s-missing"});
    let error = client.refused("session.resume", resumed).await;
    assert!(error.message.contains("not found"), "{}", error.message);
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_says_nothing_is_refused_by_name() {
    let daemon = Daemon::builder().start().await;
    let session = daemon.client().create(json!({})).await;
    for method in ["session.send", "session.sendAndWait"] {
        for prompt in ["", "  \n\t"] {
            let error = session.refused(method, json!({"prompt": prompt})).await;
            assert!(
                error.message.contains(": prompt: it is empty"),
                "{}",
                error.message
            );
        }
    }
    daemon.finish().await;
}

#[tokio::test]
async fn settings_that_are_older_than_their_file_are_told_when_a_session_is_opened() {
    let daemon = Daemon::builder().start().await;
    let mut before = daemon.client().create(json!({})).await;
    before.next("session.start").await;
    std::fs::write(daemon.home().join("config.toml"), "local = false\n").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let warning = session.next("session.warning").await;
    assert_eq!(warning["data"]["warningType"], "config");
    let told = warning["data"]["message"].as_str().unwrap();
    assert!(
        told.contains("was changed after the daemon started"),
        "{told}"
    );
    assert_eq!(before.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_relative_working_directory_is_below_that_of_the_launch() {
    let daemon = Daemon::builder().start().await;
    std::fs::create_dir(daemon.file("below")).unwrap();
    let session = daemon
        .client()
        .create(json!({"workingDirectory": "below"}))
        .await;
    let cwd = daemon.state(&session.id).await.cwd;
    assert_eq!(cwd, daemon.file("below").to_string_lossy());
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_whose_log_is_damaged_is_not_taken_for_a_missing_one() {
    let commits = Commits::default();
    let mut daemon = Daemon::builder().commits(&commits).start().await;
    let session = daemon.client().create(json!({})).await;
    daemon.restart().await;
    commits.set_unreadable(true);
    let client = daemon.client();
    let error = client
        .refused("session.resume", json!({"sessionId": session.id}))
        .await;
    assert_eq!(error.code, -32004, "{}", error.message);
    assert!(error.message.contains("damaged"), "{}", error.message);
    commits.set_unreadable(false);
    client.resume(&session.id, json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_longer_context_that_cannot_be_asked_for_is_told_and_not_refused() {
    let daemon = Daemon::playing([]).await;
    let agents = json!({"agents": {"explore": {"contextTier": "long_context"}}});
    let options = json!({"contextTier": "long_context", "subagents": agents});
    let mut session = daemon.client().create(options).await;
    let warning = session.next("session.warning").await;
    let message = warning["data"]["message"].as_str().unwrap();
    assert!(
        message.contains("contextTier, subagents.agents.explore.contextTier")
            && message.contains("no effect"),
        "{message}"
    );
    let switch = json!({"modelId": "other", "contextTier": "long_context"});
    session.call("session.model.switchTo", switch).await;
    session.next("session.warning").await;
    daemon.finish().await;
}

#[tokio::test]
async fn names_of_tools_that_are_probably_mistakes_are_told_and_count_all_the_same() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let options = json!({
        "excludedTools": ["edt", "builtin:web_fech", "github-create_issue", "mcp__srv__tool", "repart", "Bash", "Read",
            "custm:report", "*", "view"],
        "availableTools": ["builtin:*", "custom:*", "mcp:*"], "toolFilterPrecedence": "excluded",
        "tools": [{"name": "report"}, {"name": "edt_later"}],
    });
    let mut session = daemon.client().create(options).await;
    let warning = session.next("session.warning").await;
    assert_eq!(warning["data"]["warningType"], "tool_unknown");
    let message = warning["data"]["message"].as_str().unwrap();
    for part in [
        "excludedTools: `edt` may be meant as `edit`",
        "excludedTools: `builtin:web_fech` may be meant as `web_fetch`",
        "excludedTools: `repart` may be meant as `report`",
        "excludedTools: `Bash` may be meant as `bash`",
        "excludedTools: `Read` may be meant as `view`",
        "excludedTools: `custm:report` may be meant as `custom:report`",
        "excludedTools: `*` may be meant as `builtin:*`, `custom:*` or `mcp:*`",
    ] {
        assert!(message.contains(part), "{message}");
    }
    for other in ["github", "mcp__", "availableTools", "`view` may"] {
        assert!(!message.contains(other), "{message}");
    }
    let update = json!({"availableTools": ["viev"]});
    session.call("session.options.update", update).await;
    let warning = session.next("session.warning").await;
    assert!(
        warning
            .to_string()
            .contains("`viev` may be meant as `view`"),
        "{warning}"
    );
    // A tool of that name that comes later is left out as it says.
    let later = json!({"tools": [{"name": "edt"}, {"name": "viev"}]});
    session.call("session.tools.set", later).await;
    let all = json!({"availableTools": ["builtin:*", "custom:*"]});
    session.call("session.options.update", all).await;
    session.ask("go").await;
    let request = daemon.script().last_request();
    let tools = request.tools();
    assert!(
        tools.contains(&"viev") && !tools.contains(&"edt"),
        "{tools:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_has_the_name_that_it_is_created_with() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({"name": " my work "})).await;
    let named = session.call("session.name.get", json!({})).await;
    assert_eq!(named["name"], "my work");
    let error = client.refused("session.create", json!({"name": " "})).await;
    assert!(
        error.message.contains("name: must not be empty"),
        "{}",
        error.message
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_is_trusted_for_the_user_when_an_app_says_so() {
    let daemon = Daemon::playing([Turn::any().says("ok"), Turn::any().says("ok")]).await;
    let hooks = daemon.file(".github/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let text = json!({"version": 1, "hooks": {"userPromptSubmitted": [{"bash": "touch ran"}]}});
    std::fs::write(hooks.join("a.json"), text.to_string()).unwrap();
    let client = daemon.client();
    let mut session = client.create(json!({"enableConfigDiscovery": true})).await;
    session.ask("one").await;
    assert!(!daemon.file("ran").exists());
    let trusting = json!({"enableConfigDiscovery": true, "trustWorkingDirectory": "user"});
    let mut session = client.create(trusting).await;
    session.ask("two").await;
    assert!(daemon.file("ran").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_resume_without_its_event_takes_the_choices_that_come_with_it() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let session = daemon.client().create(json!({})).await;
    session.destroy().await;
    let quiet = json!({"disableResume": true, "model": "scripted-small", "agent": "build"});
    let mut session = daemon.client().resume(&session.id, quiet).await;
    let agent = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(agent["agent"]["name"], "build");
    session.ask("go").await;
    assert_eq!(
        daemon.script().last_request().body["model"],
        "scripted-small"
    );
    assert_eq!(session.count("session.resume"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn people_are_told_of_attachments_that_the_model_does_not_get() {
    let daemon = Daemon::playing([Turn::any().says("ok")]).await;
    let mut session = daemon.client().create(json!({})).await;
    std::fs::write(daemon.file("there.txt"), "x").unwrap();
    let message = json!({"prompt": "read them", "attachments": [
        {"type": "file", "path": daemon.file("gone.txt"), "displayName": "gone"},
        {"type": "directory", "path": daemon.file("nowhere"), "displayName": "nowhere"},
        {"type": "file", "path": daemon.file("there.txt"), "displayName": "there"},
        {"type": "blob", "data": "AAAA", "mimeType": "application/zip", "displayName": "pack"},
    ]});
    session.call("session.send", message).await;
    session.next("session.idle").await;
    let events = session.messages().await;
    let warnings = events.iter().filter(|event| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "attachment_missing"
    });
    let told: Vec<&str> = warnings
        .map(|it| it["data"]["message"].as_str().unwrap())
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for (told, part) in told.iter().zip([
        "gone.txt cannot be read",
        "nowhere cannot be read",
        "pack: bytes",
    ]) {
        assert!(told.contains(part), "{told}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_may_wait_for_its_run() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let session = daemon.client().create(json!({})).await;
    let waits = json!({"prompt": "go", "wait": true});
    let sent = session.call("session.send", waits).await;
    assert!(sent["messageId"].is_string(), "{sent}");
    assert_eq!(session.count("assistant.message"), 1);
    daemon.finish().await;
}
