//! The home of the daemon is protected whatever its name is.

use std::sync::{Arc, Mutex};

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

#[tokio::test]
async fn writing_into_the_daemons_home_is_asked_about() {
    let calls: Arc<Mutex<Vec<(&str, Value)>>> = Arc::default();
    let script = Script::answering({
        let calls = calls.clone();
        move |request| match request.last_results().len() {
            0 => {
                let (tool, arguments) = calls.lock().unwrap().remove(0);
                Turn::any().calls([call("c", tool, arguments)])
            }
            _ => Turn::any().says("ok"),
        }
    });
    let daemon = Daemon::with(script.await).await;
    let home = daemon.home().canonicalize().unwrap();
    let file = home.join("config.toml");
    let file = file.to_str().unwrap();
    let enter = format!("cd {} && echo x > config.toml", home.display());
    let tools = [
        ("create", json!({"path": file, "file_text": "x"})),
        ("bash", json!({"command": format!("echo x > {file}")})),
        ("bash", json!({"command": enter})),
    ];
    calls.lock().unwrap().extend(tools.clone());
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    let rules = json!([{"kind": "write", "argument": "/"}, {"kind": "shell"}]);
    let add = json!({"scope": "session", "add": rules});
    session.call("session.permissions.modifyRules", add).await;
    for (tool, arguments) in &tools {
        session.send("go").await;
        let (request, asked) = session.permission().await;
        let offers = &asked["canOfferSessionApproval"];
        assert_eq!(offers, false, "{tool} {arguments}: no rule covers it");
        let no = json!({"kind": "reject", "feedback": "no"});
        assert!(session.decide(&request, no).await);
        session.next("session.idle").await;
    }
    assert!(!home.join("config.toml").exists());
    daemon.finish().await;
}
