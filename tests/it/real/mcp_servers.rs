//! MCP servers of a daemon that is killed: their tasks are found again, and nothing of them is left.

use loopd_tests::binary::Loopd;
use loopd_tests::script::Recorded;
use loopd_tests::{Client, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::program;
use crate::mcp::tasks::web_server;

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider})
}

async fn start(home: &TempDir, script: &Script) -> (Loopd, Client) {
    let (loopd, client) = Loopd::private(home.path(), using(script));
    client.call("connect", json!({})).await;
    (loopd, client)
}

async fn task(session: &Session) -> Value {
    let listed = session.call("session.tasks.list", json!({})).await;
    listed["tasks"][0].clone()
}

#[tokio::test]
async fn a_task_goes_on_while_the_daemon_is_killed_and_its_end_is_told_once() {
    let home = TempDir::new().unwrap();
    let gate = home.path().join("gate");
    let arguments = json!({"until": gate, "steps": 1, "says": "found again"});
    let mut script = Script::answering(move |request: &Recorded| {
        if request.last_user_text().ends_with("go") && request.last_results().is_empty() {
            Turn::any().calls([call("r", "box-research", arguments.clone())])
        } else {
            Turn::any().says("I see")
        }
    })
    .await;
    let (_server, config) = web_server().await;
    let options = json!({"mcpServers": {"box": config}, "continuePendingWork": true});
    let (loopd, client) = start(&home, &script).await;
    let mut session = client.create(options.clone()).await;
    session.approve_all().await;
    session.ask("go").await;
    assert_eq!(task(&session).await["status"], "running");
    loopd.kill_hard().await;
    // Killed while it looks for the task, too.
    let (loopd, client) = start(&home, &script).await;
    let again = client.resume(&session.id, options.clone()).await;
    assert_eq!(task(&again).await["status"], "running");
    loopd.kill_hard().await;
    std::fs::write(&gate, "").unwrap();
    let (loopd, client) = start(&home, &script).await;
    let mut session = client.resume(&session.id, options.clone()).await;
    let told = session.next("system.notification").await;
    assert_eq!(told["data"]["kind"]["status"], "completed");
    session.next("session.idle").await;
    assert_eq!(task(&session).await["result"], "found again");
    loopd.kill_hard().await;
    let (loopd, client) = start(&home, &script).await;
    let mut session = client.resume(&session.id, options).await;
    session.ask("anything new?").await;
    let all = session.messages().await;
    let told = all
        .iter()
        .filter(|event| event["type"] == "system.notification");
    assert_eq!(told.count(), 1);
    loopd.terminate();
    assert!(loopd.exited().await.success());
    script.finish();
}

#[tokio::test]
async fn a_killed_daemon_leaves_no_server_behind() {
    let home = TempDir::new().unwrap();
    let lifeline = Lifeline::new(home.path());
    let alive = lifeline.command();
    let (hold, _) = alive.split_once("; sleep").unwrap();
    let run = format!("{hold}; exec python3 {} stays", program().display());
    let mut script = Script::play([]).await;
    let (loopd, client) = start(&home, &script).await;
    let config = json!({"command": "sh", "args": ["-c", run]});
    let session = client.create(json!({"mcpServers": {"box": config}})).await;
    session.call("session.mcp.list", json!({})).await;
    let server = lifeline.started().await;
    loopd.kill_hard().await;
    server.ended().await;
    script.finish();
}
