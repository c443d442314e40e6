//! A background command that a user stops: the model was promised to be told of its end, and is, with the next
//! message.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

#[tokio::test]
async fn the_model_is_told_that_the_user_stopped_its_background_command() {
    let command = json!({"command": "sleep 600", "mode": "async", "shellId": "build"});
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", command)]),
        Turn::any().says("it runs"),
        Turn::user("and now").says("I see"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let cancelled = session.call("session.tasks.cancel", json!({"id": "build"}));
    assert_eq!(cancelled.await["cancelled"], true);
    session.ask("and now").await;
    let request = daemon.script().last_request();
    let told = request.messages().iter().map(ToString::to_string);
    let told: Vec<String> = told.filter(|text| text.contains("cancelled")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("is over: the user stopped it"), "{told:?}");
    assert!(told[0].contains("only if the user wants that"), "{told:?}");
    daemon.finish().await;
}
