//! What a workspace of 10,000 files costs: figures for people, and no limits.

#![expect(clippy::print_stderr, reason = "figures are for who watches the test")]

use std::time::Instant;

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

/// The files, in folders of a hundred.
const FILES: usize = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints how long a turn takes in a large workspace, with and without earlier versions of files"]
async fn ten_thousand_files() {
    for tracked in [false, true, false, true] {
        let script = Script::answering(|request| match request.last_results().as_slice() {
            [] => Turn::any().calls([call(
                "touch",
                "bash",
                json!({"command": "printf x >> folder-00/file-0", "description": "one line"}),
            )]),
            _ => Turn::any().says("done"),
        });
        let daemon = Daemon::builder().script(script.await).yolo().start().await;
        let text = "a line of a source file, as there are many\n".repeat(40);
        for number in 0..FILES {
            let folder = daemon.file(&format!("folder-{:02}", number / 100));
            if number % 100 == 0 {
                std::fs::create_dir(&folder).unwrap();
            }
            std::fs::write(folder.join(format!("file-{}", number % 100)), &text).unwrap();
        }
        let options = json!({"enableFileChangeTracking": tracked});
        let mut session = daemon.client().create(options).await;
        let first = Instant::now();
        session.ask("go").await;
        let first = first.elapsed();
        let settled = Instant::now();
        session
            .call("session.history.listRewindPoints", json!({}))
            .await;
        let settled = settled.elapsed();
        let mut turns = Vec::new();
        let mut settles = Vec::new();
        for _ in 0..10 {
            let turn = Instant::now();
            session.ask("go").await;
            turns.push(turn.elapsed());
            let settle = Instant::now();
            session
                .call("session.history.listRewindPoints", json!({}))
                .await;
            settles.push(settle.elapsed());
        }
        turns.sort();
        settles.sort();
        eprintln!(
            "tracked {tracked}: first turn {first:?}, then settled after {settled:?}; turn p50 {:?}, max {:?}; settled p50 {:?}",
            turns[5], turns[9], settles[5]
        );
        daemon.finish().await;
    }
}
