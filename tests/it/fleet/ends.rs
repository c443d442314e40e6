//! How a fleet ends before its workers begin, and who hears of its end.

use super::*;

/// A model that divides every request into one todo, after `gate`, and workers that carry it out.
async fn dividing(gate: &Gate) -> Daemon {
    let held = gate.clone();
    daemon(move |request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(todo) => Turn::any().says(&format!("built {todo}")),
            None if last.contains("<fleet_ended>") => Turn::any().says("all built"),
            None if !request.last_results().is_empty() => {
                Turn::any().says("divided").held_by(&held)
            }
            None => Turn::any().calls([sql("INSERT INTO todos (id, title) VALUES ('x', 'X')")]),
        }
    })
    .await
}

fn begins(prompt: &str) -> Value {
    json!({ "prompt": prompt })
}

const START: &str = "session.fleet.start";

async fn last(session: &Session) -> Value {
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(status["active"], false, "{status}");
    status["last"].clone()
}

/// The workers that were asked anything.
fn workers(daemon: &Daemon) -> usize {
    let requests = daemon.script().requests();
    requests
        .iter()
        .filter(|request| todo_of(request).is_some())
        .count()
}

#[tokio::test]
async fn when_the_work_is_not_divided_to_the_end_no_worker_begins() {
    let gate = Gate::new();
    let daemon = dividing(&gate).await;
    let mut session = daemon.client().create(json!({})).await;
    session.call(START, begins("Build")).await;
    gate.reached().await;
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    daemon
        .until(&session.id, "the fleet to end", |state| {
            state.fleet.is_none()
        })
        .await;
    let last = last(&session).await;
    assert_eq!(
        (&last["ended"], &last["waiting"]),
        (&json!("stopped"), &json!(1))
    );
    assert_eq!(workers(&daemon), 0);
    session.call("loopd.waitIdle", json!({})).await;
    assert_eq!(session.count("session.idle"), 1);
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn when_the_model_fails_no_worker_begins_and_the_session_is_idle() {
    let daemon = daemon(|request| {
        if request.last_results().is_empty() {
            return Turn::any().calls([sql("INSERT INTO todos (id, title) VALUES ('x', 'X')")]);
        }
        Turn::any().fails(401, "no")
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.call(START, begins("Build")).await;
    session.next("session.error").await;
    session.next("session.idle").await;
    assert_eq!(last(&session).await["ended"], "stopped");
    assert_eq!(workers(&daemon), 0);
    session.call("loopd.waitIdle", json!({})).await;
    assert_eq!(session.count("session.idle"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_that_is_taken_out_of_the_queue_starts_no_worker() {
    let gate = Gate::new();
    let held = gate.clone();
    let daemon = daemon(move |_| Turn::any().says("busy").held_by(&held)).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("work").await;
    gate.reached().await;
    session.call(START, begins("Build")).await;
    session.call("session.queue.clear", json!({})).await;
    daemon
        .until(&session.id, "the fleet to end", |state| {
            state.fleet.is_none()
        })
        .await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn after_a_kill_the_work_is_divided_before_workers_begin() {
    let gate = Gate::new();
    let mut daemon = dividing(&gate).await;
    let session = daemon.client().create(json!({})).await;
    session.call(START, begins("Build")).await;
    gate.reached().await;
    daemon.restart().await;
    gate.open();
    let pending = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, pending).await;
    let end = ended(&mut session).await;
    assert_eq!(end["done"], 1);
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    let order: Vec<bool> = requests.iter().map(|it| todo_of(it).is_some()).collect();
    let first_worker = order.iter().position(|is_worker| *is_worker).unwrap();
    assert_eq!(
        first_worker, 3,
        "the model was asked again before: {order:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn who_waits_is_answered_when_everything_has_ended() {
    let gate = Gate::new();
    let daemon = dividing(&gate).await;
    let mut session = daemon.client().create(json!({})).await;
    let mut order = begins("Build");
    order["wait"] = true.into();
    let waiting = session.start(START, order);
    gate.reached().await;
    let idle = session.start("loopd.waitIdle", json!({}));
    let pending = session.start("session.tasks.waitForPending", json!({}));
    gate.open();
    let ended = waiting.await.unwrap();
    assert_eq!(ended["started"], true);
    assert_eq!(
        (&ended["result"]["ended"], &ended["result"]["done"]),
        (&json!("finished"), &json!(1))
    );
    idle.await.unwrap();
    pending.await.unwrap();
    session.next("session.idle").await;
    let told = daemon.script().last_request().last_user_text();
    assert!(told.contains("<fleet_ended>"), "{told}");
    assert_eq!(
        session.call("loopd.waitIdle", json!({})).await,
        json!({}),
        "an idle session is not waited for"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn who_waits_for_the_request_gets_the_answer_after_the_workers() {
    let gate = Gate::new();
    let daemon = dividing(&gate).await;
    let mut session = daemon.client().create(json!({})).await;
    session.call(START, begins("Build")).await;
    let asked = session.next("user.message").await;
    let id = asked["data"]["messageId"].clone();
    gate.reached().await;
    gate.open();
    session.next("session.idle").await;
    let answers: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "assistant.message" && event["agentId"].is_null())
        .map(|event| event["data"]["originatingMessageId"].clone())
        .collect();
    assert!(answers.iter().all(|origin| *origin == id), "{answers:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn attachments_go_with_the_request() {
    let gate = Gate::new();
    gate.open();
    let daemon = dividing(&gate).await;
    std::fs::write(daemon.file("plan.txt"), "three walls").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let attached =
        json!([{"type": "file", "path": daemon.file("plan.txt"), "displayName": "plan.txt"}]);
    let error = session
        .refused(START, json!({ "attachments": attached }))
        .await;
    assert!(error.message.contains("attachments"), "{error}");
    let mut order = begins("Build");
    order["attachments"] = attached;
    session.call(START, order).await;
    let asked = session.next("user.message").await;
    assert_eq!(asked["data"]["attachments"][0]["displayName"], "plan.txt");
    session.next("session.idle").await;
    daemon.finish().await;
}
