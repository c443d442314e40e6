//! A real disk that is full again and again. `scripts/full-disk` makes a small one and runs this.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use loopd_tests::binary::Loopd;
use loopd_tests::{Script, Turn, call};
use serde_json::json;

/// Takes all the room that is left on the disk.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}

#[tokio::test]
#[ignore = "needs a small disk of its own; run scripts/full-disk"]
async fn a_disk_that_is_full_ten_times_during_turns_loses_nothing_acknowledged() {
    let disk = std::env::var("LOOPD_SMALL_DISK").expect("scripts/full-disk names the disk");
    let disk = PathBuf::from(disk);
    let home = disk.join("home");
    std::fs::create_dir(&home).unwrap();
    let mut script = Script::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().calls([call("c", "bash", json!({"command": "echo ran"}))])
        } else {
            Turn::any().says("answered")
        }
    })
    .await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "secret-key"});
    let defaults = json!({"model": "scripted", "provider": provider});
    let (daemon, client) = Loopd::permissive(&home, defaults);
    // An empty one: copies for rewinds would take the room on the small disk.
    let work = tempfile::tempdir().unwrap();
    let mut session = client
        .create(json!({"workingDirectory": work.path()}))
        .await;
    let text = "x".repeat(64 * 1024);
    let mut acknowledged = BTreeSet::new();
    for round in 0..10 {
        acknowledged.insert(session.send(&format!("first of {round}")).await);
        session.next("assistant.turn_start").await;
        let filler = fill(&disk);
        let refused = loop {
            let more = session
                .try_call("session.send", json!({"prompt": text}))
                .await;
            match more {
                Ok(sent) => acknowledged.insert(sent["messageId"].as_str().unwrap().to_owned()),
                Err(refused) => break refused,
            };
        };
        assert_eq!(refused.code, -32004, "{}", refused.message);
        let told = session.next("session.error").await;
        let told = told["data"]["message"].as_str().unwrap();
        assert!(told.contains("no space is left for the store in"), "{told}");
        // Reads go on.
        session.messages().await;
        std::fs::remove_file(filler).unwrap();
        session.next("session.idle").await;
    }
    let stored: BTreeSet<String> = session
        .messages()
        .await
        .iter()
        .filter(|event| event["type"] == "user.message")
        .map(|event| event["data"]["messageId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(stored, acknowledged);
    daemon.kill_hard().await;
    script.finish();
}
