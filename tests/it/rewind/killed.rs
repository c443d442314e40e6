//! A rewind that the end of the daemon cuts in two: the next daemon carries out the rest and says so.

use std::path::Path;

use loopd_tests::binary::Loopd;
use loopd_tests::{Commits, Daemon, Script, Turn, call, within};
use serde_json::{Value, json};

use super::support::{bash, create, prompt, same_tree, script, tree_of};

/// How many files the command makes.
const FILES: usize = 400;

#[tokio::test]
async fn a_rewind_whose_end_was_not_stored_is_completed_by_the_next_daemon() {
    let turns = vec![vec![create("a.txt", "a"), bash("printf b > b.txt")]];
    let commits = Commits::default();
    let model = Script::play(script(&turns)).await;
    let mut daemon = Daemon::builder()
        .script(model)
        .yolo()
        .commits(&commits)
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    let before = tree_of(daemon.work());
    session.ask(&prompt(0)).await;
    let listed = session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    let both = json!({"eventId": listed["points"][0]["eventId"], "mode": "conversation-and-files"});
    let mut held = commits.hold("loopd.rewound");
    let rewinding = session.start("session.history.rewind", both);
    held.reached().await;
    // The files are restored, and the log does not say so yet.
    same_tree("the files are as before", &before, &tree_of(daemon.work()));
    held.refuse();
    commits.fill_disk();
    drop(rewinding);
    let id = session.id.clone();
    commits.free_disk();
    daemon.restart().await;
    let mut again = daemon.client().resume(&id, json!({})).await;
    let events = within("the end of the rewind", async {
        loop {
            let events = again.messages().await;
            if events.iter().any(is_told) {
                return events;
            }
            again.next("session.info").await;
        }
    })
    .await;
    assert!(!events.iter().any(|it| it["type"] == "user.message"));
    same_tree("and stay so", &before, &tree_of(daemon.work()));
    let undone = again.call("loopd.rewind", json!({})).await;
    assert_eq!(undone["outcome"], "success", "{undone}");
    assert_eq!(std::fs::read_to_string(daemon.file("b.txt")).unwrap(), "b");
    daemon.finish().await;
}

/// Whether an event says that a rewind was completed later.
fn is_told(event: &Value) -> bool {
    event["type"] == "session.info" && event["data"]["infoType"] == "rewind"
}

/// Waits until a path is gone. A rewind removes the last names first.
async fn gone(path: &Path) {
    within("a file to be removed", async {
        while path.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_a_rewind_the_tree_is_whole_after_the_next_start() {
    for kill_at in [FILES - 2, FILES / 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (folder.path().join("home"), folder.path().join("work"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&work).unwrap();
        for number in 0..FILES {
            std::fs::write(work.join(format!("old-{number:04}")), number.to_string()).unwrap();
        }
        let before = tree_of(&work);
        let command = format!(
            "for n in $(seq -w 0 {}); do printf x > new-0$n; printf changed > old-0$n; done; rm old-0000",
            FILES - 1
        );
        let make = call(
            "make",
            "bash",
            json!({"command": command, "description": "files"}),
        );
        let model = Script::play([
            Turn::user("go").calls([make]),
            Turn::results(["exit code 0"]).says("done"),
        ]);
        let mut model = model.await;
        let provider = json!({"type": "openai", "baseUrl": model.url(), "apiKey": "k"});
        let defaults = json!({"model": "scripted", "provider": provider, "workingDirectory": work});
        let (daemon, client) = Loopd::permissive(&home, defaults.clone());
        let mut session = client.create(json!({})).await;
        session.approve_all().await;
        session.ask("go").await;
        let listed = session
            .call("session.history.listRewindPoints", json!({}))
            .await;
        let point = listed["points"][0]["eventId"].clone();
        let both = json!({"eventId": point, "mode": "conversation-and-files"});
        let rewinding = session.start("session.history.rewind", both);
        let removed = work.join(format!("new-{kill_at:04}"));
        tokio::select! {
            () = gone(&removed) => {}
            done = rewinding => assert_eq!(done.unwrap()["outcome"], "success"),
        }
        daemon.kill_hard().await;
        client.closed().await;
        let (daemon, client) = Loopd::permissive(&home, defaults);
        let mut again = client.resume(&session.id, json!({})).await;
        // Either the kill came too late, or the rest was done and said.
        within("the rewind to be complete", async {
            loop {
                let events = again.messages().await;
                let talked = events.iter().any(|it| it["type"] == "user.message");
                if !talked {
                    break;
                }
                again.next("session.snapshot_rewind").await;
            }
        })
        .await;
        let what = format!("killed when file {kill_at} was gone");
        same_tree(&what, &before, &tree_of(&work));
        drop(again);
        drop(client);
        daemon.kill_hard().await;
        model.finish();
    }
}
