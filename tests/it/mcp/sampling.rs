//! Servers that want to use the model of a session.

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{last_result, server};

/// A session whose server asks the model for something.
async fn daemon(answer: Vec<Turn>) -> Daemon {
    playing(vec![calls(), Turn::any().says("ok")], answer).await
}

/// The first turn: the model calls the tool that asks it.
fn calls() -> Turn {
    Turn::user("go").calls([call("c", "box-sample", json!({"text": "Say hi."}))])
}

async fn playing(own: Vec<Turn>, answer: Vec<Turn>) -> Daemon {
    let script = Script::voices([("go", own), ("Say hi.", answer)]).await;
    Daemon::builder().script(script).start().await
}

async fn session(daemon: &Daemon, more: Value) -> Session {
    let mut options =
        json!({"mcpServers": {"box": server("good", &[])}, "requestPermission": true});
    options
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    daemon.client().create(options).await
}

/// Permits the next request; returns what it was about.
async fn approve(session: &mut Session) -> Value {
    let (request, asked) = session.permission().await;
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    asked
}

fn said(session: &Session) -> String {
    last_result(session)["result"]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_server_uses_the_model_after_a_person_was_asked_and_what_it_used_is_recorded() {
    let daemon = daemon(vec![Turn::any().says("Hi there.")]).await;
    let mut session = session(&daemon, json!({})).await;
    session.send("go").await;
    assert_eq!(approve(&mut session).await["toolName"], "sample");
    let asked = approve(&mut session).await;
    assert_eq!(
        (&asked["kind"], &asked["serverName"], &asked["toolName"]),
        (
            &json!("mcp"),
            &json!("box"),
            &json!("sampling/createMessage")
        )
    );
    assert!(asked["args"].to_string().contains("Say hi."), "{asked}");
    session.next("session.idle").await;
    let said = said(&session);
    assert!(
        said.contains("Hi there.") && said.contains("endTurn"),
        "{said}"
    );
    let requests = daemon.script().requests();
    let own = requests.iter().find(|it| it.first_user_text() == "Say hi.");
    let own = own.unwrap();
    assert!(
        own.tools().is_empty() && own.messages().len() == 1,
        "{:?}",
        own.messages()
    );
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    let models = metrics["modelMetrics"].as_object().unwrap();
    let calls = models
        .values()
        .map(|it| it["requests"]["count"].as_u64().unwrap());
    assert_eq!(calls.sum::<u64>(), 3, "{metrics}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_no_and_a_rule_keep_the_model_from_a_server() {
    let daemon = daemon(vec![]).await;
    let mut session = session(&daemon, json!({})).await;
    session.send("go").await;
    approve(&mut session).await;
    let (request, _) = session.permission().await;
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    assert!(said(&session).contains("error"), "{}", said(&session));
    daemon.finish().await;
}

#[tokio::test]
async fn without_anybody_to_ask_a_server_gets_no_model() {
    let daemon = daemon(vec![]).await;
    let options = json!({"mcpServers": {"box": server("good", &[])}});
    let mut session = daemon.client().create(options).await;
    let allowed = json!({"approved": [{"kind": "mcp", "argument": "box/sample"}], "denied": []});
    session
        .call("session.permissions.configure", json!({"rules": allowed}))
        .await;
    session.ask("go").await;
    let said = last_result(&session).to_string();
    assert!(said.contains("error") || said.contains("denied"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn the_limits_of_the_session_hold_for_what_servers_ask() {
    let first = calls().uses(119_000, 1_000);
    let daemon = playing(vec![first], vec![]).await;
    let limits = json!({"sessionLimits": {"maxTokens": 120_000}});
    let mut session = session(&daemon, limits).await;
    session.approve_all().await;
    session.send("go").await;
    session.next("session.idle").await;
    let asked = daemon.script().requests();
    assert!(asked.iter().all(|it| it.first_user_text() != "Say hi."));
    assert!(said(&session).contains("120000"), "{}", said(&session));
    daemon.finish().await;
}

#[tokio::test]
async fn an_app_cancels_what_it_asked_the_model_for() {
    let daemon = playing(vec![], vec![]).await;
    let mut session = session(&daemon, json!({})).await;
    let message = json!({"role": "user", "content": {"type": "text", "text": "Say hi."}});
    let request = json!({"messages": [message], "maxTokens": 100});
    let params =
        json!({"requestId": "mine", "serverName": "box", "mcpRequestId": 1, "request": request});
    let asking = session.start("session.mcp.executeSampling", params.clone());
    let (permission, _) = session.permission().await;
    let again = session.call("session.mcp.executeSampling", params).await;
    assert_eq!(again["action"], "failure");
    let cancel = json!({"requestId": "mine"});
    let method = "session.mcp.cancelSamplingExecution";
    let cancelled = session.call(method, cancel.clone()).await;
    assert_eq!(cancelled["cancelled"], true);
    assert_eq!(asking.await.unwrap(), json!({"action": "cancelled"}));
    session
        .next_where("the permission request is closed", |event| {
            event["type"] == "permission.completed" && event["data"]["requestId"] == permission
        })
        .await;
    let again = session.call(method, cancel).await;
    assert_eq!(again["cancelled"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_is_closed_with_the_call_that_it_belongs_to() {
    let daemon = playing(vec![calls()], vec![]).await;
    let mut session = session(&daemon, json!({})).await;
    session.send("go").await;
    approve(&mut session).await;
    let (request, _) = session.permission().await;
    session.call("session.abort", json!({})).await;
    session
        .next_where("the permission request is closed", |event| {
            event["type"] == "permission.completed" && event["data"]["requestId"] == request
        })
        .await;
    daemon.finish().await;
}
