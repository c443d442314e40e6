//! The context board: notes for later sessions, which an agent keeps and sessions are shown.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

#[tokio::test]
async fn an_agent_keeps_notes_and_later_sessions_are_shown_them() {
    let start = json!({
        "prompt": "consolidate: likes tabs", "description": "Consolidate session learnings",
        "agent_type": "rem-agent", "name": "rem-consolidate", "mode": "background",
    });
    let script = Script::voices([
        (
            "Call the tool `task` exactly once",
            vec![
                Turn::any().calls([call("t", "task", start)]),
                Turn::any().says("started"),
                Turn::any().says("kept"),
            ],
        ),
        (
            "consolidate",
            vec![
                Turn::any().calls([call("l", "context_board", json!({"command": "list"}))]),
                Turn::any().calls([call(
                    "a",
                    "context_board",
                    json!({"command": "add", "scope": "user", "text": "likes tabs"}),
                )]),
                Turn::any().calls([call(
                    "b",
                    "context_board",
                    json!({"command": "add", "scope": "project", "text": "builds with make"}),
                )]),
                Turn::any().calls([call(
                    "p",
                    "context_board",
                    json!({"command": "prune", "scope": "project", "ids": [1]}),
                )]),
                Turn::any().calls([call(
                    "x",
                    "context_board",
                    json!({"command": "add", "text": "whose?"}),
                )]),
                Turn::any().says("one note"),
            ],
        ),
        ("later", vec![Turn::any().says("tabs")]),
        ("isolated", vec![Turn::any().says("none")]),
        ("forgetful", vec![Turn::any().says("none")]),
        ("private", vec![Turn::any().says("none")]),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let client = daemon.client();
    let mut session = client.create(json!({"enableConfigDiscovery": true})).await;
    let before = session
        .call("session.commands.invoke", json!({"name": "subconscious"}))
        .await;
    assert_eq!(
        before["text"],
        "There are no user notes.\nThere are no project notes."
    );
    let run = json!({"name": "subconscious", "input": "run"});
    let run = session.call("session.commands.invoke", run).await;
    assert_eq!(run["kind"], "agent-prompt", "{run}");
    session.ask(run["prompt"].as_str().unwrap()).await;

    let requests = daemon.script().requests();
    let of_agent = |text: &str| {
        let mut agent = requests.iter().filter(|it| {
            it.first_user_text().contains("consolidate: likes tabs")
                && !it.first_user_text().contains("exactly once")
        });
        agent.any(|it| it.last_results().iter().any(|result| result.contains(text)))
    };
    for text in [
        "There are no user notes.",
        "Added to the user notes as number 1.",
        "Removed 1 of the project notes; 0 are left.",
        "`scope` is missing",
    ] {
        assert!(of_agent(text), "{text}");
    }
    // The agent has the tool, who started it has not.
    assert!(!requests[0].tools().contains(&"context_board"));

    let mut later = client.create(json!({"enableConfigDiscovery": true})).await;
    later.ask("later").await;
    let mut isolated = client.create(json!({"enableConfigDiscovery": false})).await;
    isolated.ask("isolated").await;
    for (prompt, option) in [
        ("forgetful", json!({"memory": {"enabled": false}})),
        ("private", json!({"enableSessionStore": false})),
    ] {
        let mut options = option;
        options["enableConfigDiscovery"] = true.into();
        let mut session = client.create(options).await;
        session.ask(prompt).await;
    }
    let requests = daemon.script().requests();
    let system = |prompt: &str| {
        let mut all = requests.iter();
        let request = all.find(|it| it.first_user_text().contains(prompt));
        text_of(&request.unwrap().messages()[0])
    };
    let shown = system("later");
    assert!(
        shown.contains("<context_board>") && shown.contains("- (user) likes tabs"),
        "{shown}"
    );
    assert!(!shown.contains("builds with make"));
    for prompt in ["isolated", "forgetful", "private"] {
        assert!(!system(prompt).contains("likes tabs"), "{prompt}");
    }
    daemon.finish().await;
}
