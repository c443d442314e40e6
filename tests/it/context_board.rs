//! The context board: notes for later sessions, which an agent keeps and sessions are shown.

use loopd_tests::validator::text_of;
use loopd_tests::{Commits, Daemon, Script, Turn, call};
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

/// A model that keeps a note when a session has ended.
fn noting() -> impl Future<Output = Script> {
    Script::answering(|request| {
        if request.last_user_text().starts_with("This session is over") {
            let answer = json!({"add": [{"scope": "project", "text": "builds with make"}]});
            return Turn::any().says(&answer.to_string()).uses(700, 30);
        }
        Turn::any().says("well")
    })
}

const CONSOLIDATE: &str = "[memory]\nconsolidate = true\nleast_messages = 2\n";

#[tokio::test]
async fn a_session_that_ends_is_boiled_down_if_that_is_configured() {
    let commits = Commits::default();
    let builder = Daemon::builder().script(noting().await).commits(&commits);
    let daemon = builder.config(CONSOLIDATE).start().await;
    let client = daemon.client();
    let options = json!({"enableConfigDiscovery": true});
    let mut session = client.create(options.clone()).await;
    session.ask("how is it built?").await;
    // One message is too few.
    session.destroy().await;
    assert_eq!(daemon.script().requests().len(), 1);
    let mut session = client.resume(&session.id, options.clone()).await;
    session.ask("and tested?").await;
    let mut told = commits.hold("session.info");
    session.destroy().await;
    let asked = daemon.script().asked(3).await;
    let last = asked.last_user_text();
    assert!(last.contains("There are no project notes."), "{last}");
    assert!(asked.body["tools"].is_array());
    assert_eq!(asked.body["tool_choice"], "none");

    // What it used and what came of it is in the log of the session.
    told.reached().await;
    told.let_through();
    let session = client.resume(&session.id, options.clone()).await;
    let store = daemon.app.services.store.clone();
    let id = session.id.as_str().into();
    let log = store.read(&id, loopd_proto::id::Seq::START, 10_000).await;
    let log: Vec<String> = log.unwrap().iter().map(|it| it.json.to_string()).collect();
    let end = log
        .iter()
        .find(|it| it.contains("\"infoType\":\"consolidation\""));
    assert!(end.unwrap().contains("1 added, 0 removed"), "{end:?}");
    let shutdown = log
        .iter()
        .rposition(|it| it.contains("session.shutdown"))
        .unwrap();
    let usage = log
        .iter()
        .position(|it| it.contains("\"purpose\":\"consolidation\""));
    assert!(usage.unwrap() > shutdown);

    // Nothing new was said, so that there is nothing new to note.
    session.destroy().await;
    let mut later = client.create(options).await;
    later.ask("later").await;
    let requests = daemon.script().requests();
    assert_eq!(requests.len(), 4);
    let system = text_of(&requests[3].messages()[0]);
    assert!(system.contains("- (project) builds with make"), "{system}");
    daemon.finish().await;
}

#[tokio::test]
async fn sessions_that_do_not_ask_for_it_are_not_boiled_down() {
    let shares = json!({"enableConfigDiscovery": true});
    for (config, options, mode) in [
        ("", shares.clone(), "interactive"),
        (CONSOLIDATE, shares, "plan"),
        (
            CONSOLIDATE,
            json!({"enableConfigDiscovery": false}),
            "interactive",
        ),
        (
            CONSOLIDATE,
            json!({"enableConfigDiscovery": true, "memory": {"enabled": false}}),
            "interactive",
        ),
    ] {
        let builder = Daemon::builder().script(noting().await);
        let daemon = builder.config(config).start().await;
        let mut session = daemon.client().create(options.clone()).await;
        session
            .call("session.mode.set", json!({"mode": mode}))
            .await;
        for prompt in ["one", "two", "three"] {
            session.ask(prompt).await;
        }
        session.destroy().await;
        let asked = daemon.script().requests().len();
        assert_eq!(asked, 3, "{config} {options} {mode}");
        daemon.finish().await;
    }
}
