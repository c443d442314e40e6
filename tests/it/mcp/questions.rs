//! What servers ask: people, roots, and prompts that people use.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

use super::{server, until};

async fn session(daemon: &Daemon, forms: bool) -> Session {
    let options = json!({"mcpServers": {"box": server("good", &[])}, "requestElicitation": forms});
    let session = daemon.client().create(options).await;
    session.approve_all().await;
    session
}

fn asks(tool: &str) -> [Turn; 2] {
    [
        Turn::user("go").calls([call("q", tool, json!({}))]),
        Turn::any().says("ok"),
    ]
}

fn answered(daemon: &Daemon) -> Value {
    let results = daemon.script().last_request().last_results();
    serde_json::from_str(&results[0]).unwrap()
}

#[tokio::test]
async fn a_form_of_a_server_is_shown_and_its_answer_goes_back() {
    let daemon = Daemon::playing(asks("box-ask")).await;
    let mut session = session(&daemon, true).await;
    session.send("go").await;
    let asked = session.next("elicitation.requested").await["data"].clone();
    assert_eq!(asked["elicitationSource"], "box");
    assert_eq!(asked["toolCallId"], "q");
    assert_eq!(asked["message"], "Which colour?");
    let answer = |content: Value| json!({"requestId": asked["requestId"], "result": {"action": "accept", "content": content}});
    let method = "session.ui.handlePendingElicitation";
    session.refused(method, answer(json!({"colour": 7}))).await;
    session.call(method, answer(json!({"colour": "red"}))).await;
    session.next("session.idle").await;
    let expected = json!({"action": "accept", "content": {"colour": "red"}});
    assert_eq!(answered(&daemon), expected);
    daemon.finish().await;
}

#[tokio::test]
async fn a_page_is_shown_by_its_address() {
    let daemon = Daemon::playing(asks("box-visit")).await;
    let mut session = session(&daemon, true).await;
    session.send("go").await;
    let asked = session.next("elicitation.requested").await["data"].clone();
    assert_eq!(
        (&asked["mode"], &asked["url"]),
        (&json!("url"), &json!("https://a.example/x"))
    );
    let declined = json!({"requestId": asked["requestId"], "result": {"action": "decline"}});
    session
        .call("session.ui.handlePendingElicitation", declined)
        .await;
    session.next("session.idle").await;
    assert_eq!(answered(&daemon), json!({"action": "decline"}));
    daemon.finish().await;
}

#[tokio::test]
async fn without_anybody_to_ask_a_question_is_declined() {
    let daemon = Daemon::playing(asks("box-ask")).await;
    let mut session = session(&daemon, false).await;
    session.ask("go").await;
    assert_eq!(answered(&daemon), json!({"action": "decline"}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_question_is_closed_with_its_call() {
    let daemon = Daemon::playing(asks("box-ask")).await;
    let mut session = session(&daemon, true).await;
    session.send("go").await;
    let asked = session.next("elicitation.requested").await["data"].clone();
    session
        .call("session.mcp.stopServer", json!({"serverName": "box"}))
        .await;
    let completed = session.next("elicitation.completed").await["data"].clone();
    assert_eq!(completed["requestId"], asked["requestId"]);
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn of_many_questions_at_once_and_of_endless_ones_some_are_declined() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("q", "box-ask_often", json!({"times": 20}))]),
        Turn::any().says("ok"),
        Turn::user("more").calls([call("l", "box-ask_long", json!({}))]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = session(&daemon, true).await;
    session.send("go").await;
    // The server says how many answers it has: those that nobody was asked for.
    session
        .next_where("twelve answers", |event| {
            event["data"]["progressMessage"] == "12"
        })
        .await;
    let asked = session.events();
    let asked = asked
        .iter()
        .filter(|event| event["type"] == "elicitation.requested");
    let asked: Vec<&Value> = asked.map(|event| &event["data"]["requestId"]).collect();
    assert_eq!(asked.len(), 8);
    for request in asked {
        let answer = json!({"requestId": request, "result": {"action": "cancel"}});
        session
            .call("session.ui.handlePendingElicitation", answer)
            .await;
    }
    session.next("session.idle").await;
    let answers = daemon.script().last_request().last_results().remove(0);
    assert_eq!(answers.matches("decline").count(), 12, "{answers}");
    assert_eq!(answers.matches("cancel").count(), 8, "{answers}");
    session.ask("more").await;
    assert_eq!(answered(&daemon), json!({"action": "decline"}));
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_server_logs_is_in_its_log() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call(
            "l",
            "box-log",
            json!({"text": "mind\u{1b}[31m the gap"}),
        )]),
        Turn::results(["logged"]).says("ok"),
    ])
    .await;
    let mut session = session(&daemon, false).await;
    session.ask("go").await;
    let log = session
        .call("loopd.mcpLog", json!({"serverName": "box"}))
        .await;
    let log = log["lines"].to_string();
    assert!(
        log.contains("[warning] mind") && !log.contains("\\u001b"),
        "{log}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn resources_that_change_are_told() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "box-change_resources", json!({}))]),
        Turn::results(["changed"]).says("ok"),
    ])
    .await;
    let mut session = session(&daemon, false).await;
    session.send("go").await;
    let changed = session.next("mcp.resources.list_changed").await;
    assert_eq!(changed["data"], json!({"serverName": "box"}));
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn prompts_of_all_pages_are_there() {
    let daemon = Daemon::playing([]).await;
    let options = json!({"mcpServers": {"box": server("pages", &[])}});
    let mut session = daemon.client().create(options).await;
    until(&mut session, "box", "connected").await;
    if session.count("mcp.prompts.list_changed") == 0 {
        session.next("mcp.prompts.list_changed").await;
    }
    let listed = session.call("session.commands.list", json!({})).await;
    let listed = listed["commands"].to_string();
    for number in 0..4 {
        assert!(listed.contains(&format!("box:prompt{number}")), "{listed}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn servers_learn_where_the_session_works() {
    let daemon = Daemon::playing(asks("box-roots")).await;
    let mut session = session(&daemon, false).await;
    session.ask("go").await;
    let uri = format!("file://{}", daemon.work().display());
    assert_eq!(answered(&daemon)["roots"][0]["uri"], uri);
    daemon.finish().await;
}

#[tokio::test]
async fn prompts_are_slash_commands() {
    let daemon = Daemon::playing([Turn::user("Greet Ann warmly.").says("Hello Ann!")]).await;
    let mut session = session(&daemon, false).await;
    until(&mut session, "box", "connected").await;
    if session.count("mcp.prompts.list_changed") == 0 {
        session.next("mcp.prompts.list_changed").await;
    }
    let listed = session.call("session.commands.list", json!({})).await;
    let commands = listed["commands"].as_array().unwrap().clone();
    let greet = commands
        .iter()
        .find(|it| it["name"] == "box:greet")
        .unwrap();
    assert_eq!(greet["input"]["hint"], "<who>");
    let missing = json!({"name": "box:greet", "input": ""});
    let refused = session.refused("session.commands.invoke", missing).await;
    assert!(refused.message.contains("`who` is missing"), "{refused:?}");
    let params = json!({"commandName": "box:greet", "args": "Ann"});
    session.call("session.commands.execute", params).await;
    session.next("session.idle").await;
    daemon.finish().await;
}
