//! Images that a provider refuses: they are left out, people are told, and the session goes on.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Script, Turn};
use serde_json::{Value, json};

use super::window;

fn text(request: &Recorded) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

/// A model that refuses every request with an image.
async fn blind(why: &'static str) -> Script {
    Script::answering(move |request| {
        if text(request).contains("image_url") {
            return Turn::any().fails(400, why);
        }
        Turn::any().says("well")
    })
    .await
}

#[tokio::test]
async fn a_refused_image_is_left_out_and_the_session_goes_on() {
    for why in ["Could not process image.", "invalid request"] {
        let daemon = Daemon::with(blind(why).await).await;
        let mut session = daemon.client().create(window(100_000)).await;
        session.ask("hello").await;
        let image = json!([{"type": "blob", "data": "aGk=", "mimeType": "image/png"}]);
        let sent = json!({"prompt": "what is this?", "attachments": image});
        session.call("session.send", sent).await;
        let warning = session.next("session.warning").await;
        assert_eq!(warning["data"]["warningType"], "attachment_refused");
        let message = warning["data"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        session.next("session.idle").await;
        assert_eq!(session.count("session.error"), 0);
        let last = text(&daemon.script().last_request());
        assert!(last.contains("what is this?"), "{last}");
        assert!(last.contains("An image was here."), "{last}");
        // It is refused once.
        let requests = daemon.script().requests().len();
        session.ask("go on").await;
        assert_eq!(daemon.script().requests().len(), requests + 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn other_refused_requests_end_the_turn() {
    let script = Script::answering(|request| {
        if text(request).contains("bad") {
            return Turn::any().fails(400, "invalid request");
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(window(100_000)).await;
    let image = json!([{"type": "blob", "data": "aGk=", "mimeType": "image/png"}]);
    let sent = json!({"prompt": "what is this?", "attachments": image});
    session.call("session.send", sent).await;
    session.next("session.idle").await;
    // The image was taken once, so that the next refusal is not about it.
    session.send("bad").await;
    session.next("session.error").await;
    session.next("session.idle").await;
    assert!(text(&daemon.script().last_request()).contains("image_url"));
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}
