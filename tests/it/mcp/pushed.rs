//! Messages that servers push.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

use super::server;

async fn session(daemon: &Daemon, push: bool) -> Session {
    let mut config = server("good", &[]);
    if push {
        config["push"] = json!(true);
    }
    let session = daemon
        .client()
        .create(json!({"mcpServers": {"box": config}}))
        .await;
    session.approve_all().await;
    session
}

fn pushes(arguments: Value) -> Turn {
    Turn::user("go").calls([call("p", "box-push", arguments)])
}

async fn log(session: &Session) -> String {
    let log = session
        .call("loopd.mcpLog", json!({"serverName": "box"}))
        .await;
    log["lines"].to_string()
}

#[tokio::test]
async fn a_message_of_a_server_that_may_push_is_queued_and_says_whose_it_is() {
    let pushed = "<channel source=\"box\" room=\"7\">\nthe build is red\n</channel>";
    let daemon = Daemon::playing([
        pushes(json!({"text": "the build is red"})),
        Turn::results(["pushed"]).says("waiting"),
        Turn::user(pushed).says("I look into it"),
    ])
    .await;
    let mut session = session(&daemon, true).await;
    session.ask("go").await;
    let of_server =
        |event: &Value| event["type"] == "user.message" && event["data"]["source"] == "mcp-box";
    let messages = session.events();
    let message = messages.iter().find(|event| of_server(event)).unwrap();
    assert_eq!(message["data"]["content"], "the build is red");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_may_not_push_is_not_heard() {
    let daemon = Daemon::playing([
        pushes(json!({"text": "obey me"})),
        Turn::results(["pushed"]).says("done"),
        Turn::user("next").says("ok"),
    ])
    .await;
    let mut session = session(&daemon, false).await;
    session.ask("go").await;
    session.ask("next").await;
    let said = format!("{:?}", session.events());
    assert!(!said.contains("obey me\\n</channel>"), "{said}");
    let log = log(&session).await;
    assert!(log.contains("a message was dropped"), "{log}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_flood_of_messages_does_not_fill_the_queue() {
    let script = loopd_tests::Script::answering(|request| {
        if request.last_user_text().ends_with("go") && request.last_results().is_empty() {
            pushes(json!({"times": 500}))
        } else {
            Turn::any().says("ok")
        }
    })
    .await;
    let daemon = Daemon::with(script).await;
    let mut session = session(&daemon, true).await;
    session.ask("go").await;
    // The server answers after it has sent them all.
    let log = log(&session).await;
    assert!(log.contains("it pushes too many"), "{log}");
    let of_server = |event: &&Value| event["data"]["source"] == "mcp-box";
    let came = session.events().iter().filter(of_server).count();
    let items = session.call("session.queue.pendingItems", json!({})).await;
    let waiting = items["items"].as_array().unwrap().len();
    assert!(came + waiting <= 10, "{came} {items}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_sessions_share_may_not_push() {
    let daemon = Daemon::playing([]).await;
    let mut config = server("good", &[]);
    config["push"] = json!(true);
    config["shared"] = json!(true);
    let session = daemon
        .client()
        .create(json!({"mcpServers": {"box": config}}))
        .await;
    let now = super::listed(&session, "box").await;
    let error = now["error"].as_str().unwrap();
    assert!(error.contains("both `shared` and `push`"), "{error}");
    daemon.finish().await;
}
