//! What is not complete does not pass as complete: cut answers, and agent files that cannot be used.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

const CUTS: [(&str, &str); 3] = [
    ("length", "answer_cut"),
    ("content_filter", "answer_filtered"),
    ("unknown", "answer_end_unknown"),
];

#[tokio::test]
async fn a_cut_answer_is_followed_by_a_stored_warning() {
    for streaming in [true, false] {
        for (reason, kind) in CUTS {
            let daemon = Daemon::playing([Turn::any().says("half a").stops_by(reason)]).await;
            let mut session = daemon
                .client()
                .create(json!({"streaming": streaming}))
                .await;
            session.send("tell me").await;
            let usage = session.next("assistant.usage").await;
            assert_eq!(usage["data"]["finishReason"], reason);
            session.next("assistant.message").await;
            let warning = session.next("session.warning").await;
            assert_eq!(warning["data"]["warningType"], kind);
            assert_ne!(warning["ephemeral"], true, "it is in the log");
            session.next("session.idle").await;
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_complete_answer_has_none() {
    let daemon = Daemon::playing([Turn::any().says("all of it")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("tell me").await;
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn the_parent_reads_that_the_answer_of_its_agent_was_cut() {
    for (reason, word) in [
        ("length", "output tokens"),
        ("content_filter", "content filter"),
    ] {
        let script = Script::answering(move |request| {
            let is_agent = request.first_user_text().contains("look for it");
            match (is_agent, request.last_results().is_empty()) {
                (true, _) => Turn::any().says("I found").stops_by(reason),
                (false, true) => Turn::any().calls([call(
                    "t",
                    "task",
                    json!({"name": "finder", "prompt": "look for it", "description": "looks",
                           "agent_type": "general-purpose"}),
                )]),
                (false, false) => Turn::any().says("thanks"),
            }
        })
        .await;
        let daemon = Daemon::with(script).await;
        let mut session = daemon.client().create(json!({})).await;
        session.ask("go").await;
        let result = daemon.script().last_request().last_results().remove(0);
        assert!(result.contains("I found"), "{result}");
        assert!(
            result.contains("not complete") && result.contains(word),
            "{result}"
        );
        let line = result.lines().last().unwrap();
        assert!(
            line.starts_with("[agent_id: finder, session: ") && line.contains("incomplete"),
            "{result}"
        );
        let events = session.events();
        let of_agent = |it: &&Value| it["type"] == "assistant.usage" && it["agentId"].is_string();
        let usage = events.iter().find(of_agent).unwrap();
        assert_eq!(usage["data"]["finishReason"], reason);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn an_empty_answer_is_told_by_a_stored_warning() {
    for says in ["", " \n"] {
        let daemon = Daemon::playing([Turn::any().says(says), Turn::any().says("here")]).await;
        let mut session = daemon.client().create(json!({})).await;
        session.send("tell me").await;
        let warning = session.next("session.warning").await;
        assert_eq!(warning["data"]["warningType"], "answer_empty");
        assert_ne!(warning["ephemeral"], true, "it is in the log");
        session.next("session.idle").await;
        session.ask("again").await;
        assert_eq!(session.count("session.warning"), 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn the_parent_reads_that_its_agent_answered_nothing() {
    for beside in ["", "I look into it"] {
        let script = Script::answering(move |request| {
            let is_agent = request.first_user_text().contains("look for it");
            match (is_agent, request.last_results().is_empty()) {
                (true, true) => {
                    let look = [call("v", "glob", json!({"pattern": "*"}))];
                    if beside.is_empty() {
                        Turn::any().calls(look)
                    } else {
                        Turn::any().says_and_calls(beside, look)
                    }
                }
                (true, false) => Turn::any().says(""),
                (false, true) => Turn::any().calls([call(
                    "t",
                    "task",
                    json!({"name": "finder", "prompt": "look for it", "description": "looks",
                           "agent_type": "general-purpose"}),
                )]),
                (false, false) => Turn::any().says("thanks"),
            }
        })
        .await;
        let daemon = Daemon::with(script).await;
        let mut session = daemon.client().create(json!({})).await;
        session.ask("go").await;
        let result = daemon.script().last_request().last_results().remove(0);
        let word = if beside.is_empty() {
            "without saying anything"
        } else {
            "without an answer"
        };
        assert!(result.contains(word) && result.contains(beside), "{result}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_broken_agent_file_is_told_when_the_session_is_created_and_only_once() {
    let daemon = Daemon::playing([Turn::any().says("hi"), Turn::any().says("hi")]).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("broken.agent.md"),
        "---\ndescription: Does.\ntools: 5\n---\nHi.",
    )
    .unwrap();
    let options = json!({"enableConfigDiscovery": true});
    let mut session = daemon.client().create(options).await;
    let warning = session.next("session.warning").await;
    let text = warning["data"]["message"].as_str().unwrap();
    assert!(text.contains("broken.agent.md"), "{text}");
    assert!(text.contains("a list of words"), "{text}");
    assert!(!text.contains("enum"), "{text}");
    session.ask("hello").await;
    session.ask("again").await;
    assert_eq!(session.count("session.warning"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_files_that_cannot_be_used_are_listed() {
    let daemon = Daemon::playing([]).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Does.\nmaxTurns: 0\n---\nHi.";
    std::fs::write(folder.join("broken.agent.md"), text).unwrap();
    let client = daemon.client();
    let work = daemon.work().to_str().unwrap();
    let listed = client
        .call("loopd.discoveryProblems", json!({"workingDirectory": work}))
        .await;
    let problem = &listed["problems"][0];
    let file = problem["file"].as_str().unwrap();
    assert!(file.ends_with("broken.agent.md"), "{listed}");
    assert_eq!(problem["line"], 3);
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("from 1"), "{message}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_run_and_the_model_is_told_why() {
    for (reason, kind) in CUTS {
        let half =
            call("w", "create", json!({})).raw_arguments("{\"path\":\"made\",\"file_text\":\"abc");
        let daemon = Daemon::playing([
            Turn::user("go").calls([half]).stops_by(reason),
            Turn::any().says("I try again"),
        ])
        .await;
        let mut session = daemon.client().create(json!({})).await;
        session.send("go").await;
        let warning = session.next("session.warning").await;
        assert_eq!(warning["data"]["warningType"], kind);
        session.next("session.idle").await;
        let result = daemon.script().last_request().last_results().remove(0);
        assert!(
            result.contains("was not run") && result.contains("not complete"),
            "{result}"
        );
        assert!(!result.contains("invalid type"), "{result}");
        assert!(!daemon.file("made").exists());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn after_a_whole_call_of_a_cut_answer_the_model_reads_that_more_is_missing() {
    let first = call("a", "glob", json!({"pattern": "*.one"}));
    let second = call("b", "glob", json!({"pattern": "*.two"}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([first, second]).stops_by("length"),
        Turn::any().says("I go on"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert!(!results[0].contains("cut off"), "{results:?}");
    assert!(
        results[1].contains("cut off at the limit of output tokens"),
        "{results:?}"
    );
    daemon.finish().await;
}
