//! An option of a session that cannot be honoured is refused by its name when the session is opened
//! or changed.

use loopd_tests::{Commits, Daemon};
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
