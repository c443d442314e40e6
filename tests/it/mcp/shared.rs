//! Servers that several sessions share.

use futures::future::join_all;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{is_alive, last_result, noted, server, until};

fn shared(mut config: Value) -> Value {
    config["shared"] = json!(true);
    config
}

#[tokio::test]
async fn of_twenty_sessions_ten_share_a_server() {
    let script = Script::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().calls([call("c", "box-echo", json!({"text": "x"}))])
        } else {
            Turn::any().says("ok")
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let (together, alone) = (daemon.file("together"), daemon.file("alone"));
    let good = |file: &std::path::Path| server("good", &["--mark", &file.display().to_string()]);
    let mut sessions = Vec::new();
    for number in 0..20 {
        let config = if number < 10 {
            shared(good(&together))
        } else {
            good(&alone)
        };
        let session = daemon
            .client()
            .create(json!({"mcpServers": {"box": config}}))
            .await;
        session.approve_all().await;
        sessions.push(session);
    }
    let turns = sessions.iter_mut().map(|session| async move {
        session.ask("go").await;
        assert_eq!(last_result(session)["result"]["content"], "x");
    });
    join_all(turns).await;
    assert_eq!(noted(&together).lines().count(), 1, "one process for ten");
    assert_eq!(
        noted(&alone).lines().count(),
        10,
        "a process for each of the others"
    );
    let pid = noted(&together);
    for session in sessions.iter().take(9) {
        session.destroy().await;
        assert!(is_alive(pid.trim()), "others still use it");
    }
    sessions[9].destroy().await;
    assert!(!is_alive(pid.trim()), "the last one ends it");
    daemon.finish().await;
}

#[tokio::test]
async fn sessions_share_only_what_is_the_same_and_a_shared_server_asks_nobody() {
    let script = Script::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().calls([call("c", "box-ask", json!({}))])
        } else {
            Turn::any().says("ok")
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let mark = daemon.file("mark");
    let config = server("good", &["--mark", &mark.display().to_string()]);
    let mut other = shared(config.clone());
    other["env"] = json!({"KEY": "another"});
    let mut sessions = Vec::new();
    for config in [shared(config.clone()), shared(config), other] {
        let options = json!({"mcpServers": {"box": config}, "requestElicitation": true});
        let mut session = daemon.client().create(options).await;
        session.approve_all().await;
        until(&mut session, "box", "connected").await;
        session.ask("go").await;
        let said = last_result(&session)["result"]["content"].to_string();
        assert!(said.contains("decline"), "{said}");
        sessions.push(session);
    }
    assert_eq!(noted(&mark).lines().count(), 2);
    daemon.finish().await;
}
