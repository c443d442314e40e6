//! Commands that clients run themselves, past the model.

use loopd_tests::{Daemon, Lifeline, Script, Turn};
use serde_json::{Value, json};

async fn daemon() -> Daemon {
    Daemon::with(Script::play(Vec::<Turn>::new()).await).await
}

#[tokio::test]
async fn a_client_starts_a_command_and_hears_what_it_prints_and_how_it_ends() {
    let daemon = daemon().await;
    std::fs::create_dir(daemon.file("sub")).unwrap();
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let params = json!({"command": "pwd; echo oops >&2; exit 3", "cwd": "sub"});
    let started = session.call("session.shell.exec", params).await;
    let id = started["processId"].clone();
    let exit = client
        .note("shell.exit", |exit| exit["processId"] == id)
        .await;
    assert_eq!(exit["exitCode"], 3);
    let printed: String = client
        .notes("shell.output")
        .iter()
        .filter(|piece| piece["processId"] == id)
        .map(|piece| piece["data"].as_str().unwrap().to_owned())
        .collect();
    let folder = daemon.file("sub");
    assert_eq!(printed, format!("{}\noops\n", folder.display()));
    let killed = session
        .call("session.shell.kill", json!({"processId": id}))
        .await;
    assert_eq!(killed, json!({"killed": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_kills_its_command() {
    let daemon = daemon().await;
    let lifeline = Lifeline::new(daemon.work());
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let started = session
        .call("session.shell.exec", json!({"command": lifeline.command()}))
        .await;
    let command = lifeline.started().await;
    let params = json!({"processId": started["processId"], "signal": "SIGKILL"});
    let killed = session.call("session.shell.kill", params).await;
    assert_eq!(killed, json!({"killed": true}));
    command.ended().await;
    let exit = client.note("shell.exit", |_| true).await;
    assert_eq!(exit["exitCode"], 137);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_out_of_time_is_stopped() {
    let daemon = daemon().await;
    let lifeline = Lifeline::new(daemon.work());
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let params = json!({"command": lifeline.command(), "timeout": 300});
    session.call("session.shell.exec", params).await;
    lifeline.started().await.ended().await;
    client.note("shell.exit", |_| true).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_person_runs_a_command_and_everyone_sees_it() {
    let daemon = daemon().await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let params = json!({"requestId": "r1", "command": "echo hello; exit 2"});
    let ran = session
        .call("session.shell.executeUserRequested", params)
        .await;
    assert_eq!(ran["success"], false);
    assert_eq!(ran["exitCode"], 2);
    assert_eq!(ran["output"], "hello");
    let start = session.next("tool.execution_start").await;
    assert_eq!(start["data"]["toolName"], "bash");
    assert_eq!(start["data"]["arguments"]["command"], "echo hello; exit 2");
    assert_eq!(start["data"]["toolCallId"], ran["toolCallId"]);
    let complete = session.next("tool.execution_complete").await;
    assert_eq!(complete["data"]["isUserRequested"], true);
    assert_eq!(complete["data"]["success"], true);
    assert_eq!(
        complete["data"]["result"]["content"],
        "hello\n<exited with exit code 2>"
    );
    let again = session
        .call(
            "session.shell.cancelUserRequested",
            json!({"requestId": "r1"}),
        )
        .await;
    assert_eq!(again, json!({"cancelled": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_person_cancels_their_command() {
    let daemon = daemon().await;
    let lifeline = Lifeline::new(daemon.work());
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let params = json!({"requestId": "r1", "command": lifeline.command()});
    let running = session.start("session.shell.executeUserRequested", params.clone());
    let command = lifeline.started().await;
    let twice = session
        .refused("session.shell.executeUserRequested", params)
        .await;
    assert!(twice.message.contains("runs already"), "{}", twice.message);
    let cancelled = session
        .call(
            "session.shell.cancelUserRequested",
            json!({"requestId": "r1"}),
        )
        .await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    let ran: Value = running.await.unwrap();
    assert_eq!(ran["success"], false);
    command.ended().await;
    let complete = session.next("tool.execution_complete").await;
    assert_eq!(complete["data"]["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn what_people_ran_is_closed_when_the_session_was_cut_off() {
    let daemon = daemon().await;
    let lifeline = Lifeline::new(daemon.work());
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let params = json!({"requestId": "r1", "command": lifeline.command()});
    let running = session.start("session.shell.executeUserRequested", params);
    let command = lifeline.started().await;
    daemon.live(&session.id).stop().await;
    command.ended().await;
    running.await.ok();
    let resumed = daemon.client().resume(&session.id, json!({})).await;
    let closed = resumed.messages().await;
    let complete = closed
        .iter()
        .find(|event| event["type"] == "tool.execution_complete")
        .expect("the command is closed");
    assert_eq!(complete["data"]["isUserRequested"], true);
    assert!(daemon.state(&session.id).await.user_calls.is_empty());
    daemon.finish().await;
}
