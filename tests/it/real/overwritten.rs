//! A database file that something else overwrites or empties while sessions are open.

use std::io::Write;
use std::path::Path;

use loopd_tests::binary::Loopd;
use serde_json::json;
use tempfile::TempDir;

/// Overwrites a file in place with zeroes, or empties it.
fn overwrite(path: &Path, empties: bool) {
    let length = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    if empties {
        file.set_len(0).unwrap();
    } else {
        file.write_all(&vec![0; length]).unwrap();
    }
}

async fn is_told(empties: bool, restarts: bool) {
    let home = TempDir::new().unwrap();
    let offline = json!({"model": "offline"});
    let (mut loopd, mut client) = Loopd::private(home.path(), offline.clone());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut session = client.create(json!({})).await;
        session.ask("hello").await;
        ids.push(session.id.clone());
    }
    if restarts {
        loopd.terminate();
        loopd.exited().await;
        (loopd, client) = Loopd::private(home.path(), offline);
        for id in ids.iter().take(2) {
            client.resume(id, json!({})).await;
        }
    }
    let file = home.path().join("loopd.db");
    overwrite(&file, empties);
    let mut wrong = Vec::new();
    let message = json!({"prompt": "more"});
    let none = json!({});
    for id in ids.iter().chain(&ids) {
        for (method, params) in [
            ("session.send", &message),
            ("session.resume", &none),
            ("session.getMessages", &none),
            ("session.send", &message),
            ("session.name.get", &none),
        ] {
            let mut params = params.clone();
            params["sessionId"] = json!(id);
            let answer = client.try_call(method, params).await;
            if let Err(error) = answer
                && (error.code != -32004 || !error.message.contains("loopd.db"))
            {
                wrong.push(format!("{method}: {} {}", error.code, error.message));
            }
        }
    }
    loopd.kill_hard().await;
    assert!(
        wrong.is_empty(),
        "emptied {empties}, restarted {restarts}: {wrong:#?}"
    );
}

#[tokio::test]
async fn sessions_of_a_zeroed_database_say_that_it_is_damaged() {
    is_told(false, false).await;
}

#[tokio::test]
async fn sessions_of_a_zeroed_database_of_an_earlier_daemon_say_that_it_is_damaged() {
    is_told(false, true).await;
}

#[tokio::test]
async fn sessions_of_an_emptied_database_say_that_it_is_damaged() {
    is_told(true, false).await;
}

#[tokio::test]
async fn sessions_of_an_emptied_database_of_an_earlier_daemon_say_that_it_is_damaged() {
    is_told(true, true).await;
}
