//! The mode of a message that waits: it counts from the moment the message begins, whatever happened
//! in between.

use loopd_tests::Gate;

use super::*;

/// A model that answers the message `N` with the attempt to make the file `f-N`. It answers the
/// first message when the gate is open.
async fn making_files(gate: &Gate, count: usize) -> Daemon {
    let mut turns = vec![Turn::user("begin").says("begun").held_by(gate)];
    for number in 0..count {
        let file = json!({"path": format!("f-{number}"), "file_text": "x"});
        turns.push(Turn::user(&number.to_string()).calls([call(
            &format!("c-{number}"),
            "create",
            file,
        )]));
        turns.push(Turn::any().says(&format!("end {number}")));
    }
    daemon(turns).await
}

async fn send(session: &Session, prompt: &str, mode: &str) {
    let message = json!({"prompt": prompt, "agentMode": mode});
    session.call("session.send", message).await;
}

async fn ended(session: &mut Session, number: usize) {
    let text = format!("end {number}");
    session
        .next_where(&text, |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == text.as_str()
        })
        .await;
}

#[tokio::test]
async fn each_of_several_messages_runs_in_the_mode_that_it_names() {
    for modes in [
        ["plan", "interactive", "plan"],
        ["interactive", "plan", "interactive"],
        ["plan", "plan", "autopilot"],
    ] {
        for began_in in ["interactive", "plan"] {
            let gate = Gate::new();
            let daemon = making_files(&gate, modes.len()).await;
            let mut session = daemon.client().create(quiet()).await;
            set(&session, began_in).await;
            session.send("begin").await;
            gate.reached().await;
            for (number, mode) in modes.iter().enumerate() {
                send(&session, &number.to_string(), mode).await;
            }
            gate.open();
            ended(&mut session, modes.len() - 1).await;
            for (number, mode) in modes.iter().enumerate() {
                let made = daemon.file(&format!("f-{number}")).exists();
                assert_eq!(made, *mode != "plan", "{number} of {modes:?}, {began_in}");
            }
            let now = session.call("session.mode.get", json!({})).await;
            assert_eq!(now, *modes.last().unwrap(), "{modes:?}, {began_in}");
            session.next("session.idle").await;
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_mode_that_is_set_meanwhile_does_not_change_the_mode_of_a_message() {
    for (began_in, set_to) in [("plan", "interactive"), ("interactive", "plan")] {
        let gate = Gate::new();
        let daemon = making_files(&gate, 1).await;
        let mut session = daemon.client().create(json!({})).await;
        set(&session, began_in).await;
        session.send("begin").await;
        gate.reached().await;
        send(&session, "0", began_in).await;
        set(&session, set_to).await;
        gate.open();
        ended(&mut session, 0).await;
        assert_eq!(daemon.file("f-0").exists(), began_in == "interactive");
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_session_in_autopilot_mode_tells_clients_that_it_is_idle() {
    let complete = call("c", "task_complete", json!({"summary": "done"}));
    let daemon = daemon(vec![
        Turn::user("go").calls([complete]),
        Turn::user("look").says("seen"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    send(&session, "go", "autopilot").await;
    // Official clients wait on when an idle session names the autopilot mode.
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"], json!({}));
    send(&session, "look", "interactive").await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"], json!({"mode": "interactive"}));
    daemon.finish().await;
}
