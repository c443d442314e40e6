//! The files of a session, such as large outputs of its commands and what its agents did: they are kept
//! when it ends, can be read after a resume, and go with the session when it is deleted.

use std::path::PathBuf;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::json;

fn folder(daemon: &Daemon, id: &str) -> PathBuf {
    daemon.home().join("session-state").join(id)
}

/// All files below a folder.
fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A daemon with a session that has a large output of its own and one of an agent, and has ended.
/// Returns also the session of the agent and the file with the large output.
async fn ended() -> (Daemon, Session, String, PathBuf) {
    let task = call(
        "task",
        "task",
        json!({"prompt": "work", "name": "worker", "description": "a part", "mode": "sync"}),
    );
    let large = json!({"command": "seq 1 20000"});
    let script = Script::voices([
        (
            "go",
            vec![
                Turn::user("go").calls([call("own", "bash", large.clone()), task]),
                Turn::any().says("done"),
            ],
        ),
        (
            "work",
            vec![
                Turn::user("work").calls([call("below", "bash", large)]),
                Turn::any().says("worked"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script.forgetful())
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let read = session
        .call("loopd.taskRead", json!({"id": "worker"}))
        .await;
    let agent = read["node"]["sessionId"].as_str().unwrap().to_owned();
    let outputs = files(&folder(&daemon, &session.id).join("temp"));
    let [output] = outputs.as_slice() else {
        panic!("one large output: {outputs:?}");
    };
    session.destroy().await;
    (daemon, session, agent, output.clone())
}

#[tokio::test]
async fn outputs_are_kept_when_a_session_ends_and_go_when_it_is_deleted() {
    for method in ["session.delete", "sessions.bulkDelete", "sessions.pruneOld"] {
        let (daemon, session, agent, output) = ended().await;
        let text = std::fs::read_to_string(&output).unwrap();
        assert!(text.contains("\n20000"), "the whole output is there");
        assert!(
            !files(&folder(&daemon, &agent)).is_empty(),
            "the agent's too"
        );
        assert!(
            files(&folder(&daemon, &session.id).join("agents"))
                .iter()
                .any(|file| file.ends_with("worker.md")),
            "and what it did"
        );
        let params = match method {
            "session.delete" => json!({"sessionId": session.id}),
            "sessions.bulkDelete" => json!({"sessionIds": [session.id]}),
            _ => json!({"olderThanDays": 0, "includeNamed": true}),
        };
        daemon.client().call(method, params).await;
        for id in [&session.id, &agent] {
            assert!(!folder(&daemon, id).exists(), "{method} leaves {id}");
        }
        daemon.finish().await;
    }
}

#[tokio::test]
async fn outputs_can_be_read_after_a_resume_and_a_restart() {
    let (mut daemon, session, _, output) = ended().await;
    daemon.restart().await;
    let view = call(
        "view",
        "view",
        json!({"path": output, "view_range": [19999, 20000]}),
    );
    let mut read = false;
    let mut script = Script::answering(move |_| {
        if std::mem::replace(&mut read, true) {
            Turn::any().says("read")
        } else {
            Turn::any().calls([view.clone()])
        }
    })
    .await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "key"});
    let mut session = daemon
        .client()
        .resume(&session.id, json!({"provider": provider}))
        .await;
    session.ask("again").await;
    let end = session.messages().await.into_iter().rev();
    let end = end
        .filter(|event| event["type"] == "tool.execution_complete")
        .find(|event| event["data"]["toolCallId"] == "view")
        .unwrap();
    let text = end["data"]["result"]["content"].to_string();
    assert!(text.contains("20000"), "{text}");
    session.destroy().await;
    script.finish();
    daemon.finish().await;
}

/// A session whose files cannot be removed is still there, and says so, so that it can be deleted again.
#[tokio::test]
async fn a_session_whose_files_cannot_be_removed_is_not_deleted() {
    let (daemon, session, _, _) = ended().await;
    let client = daemon.client();
    let own = folder(&daemon, &session.id);
    std::fs::remove_dir_all(&own).unwrap();
    // A file cannot be removed like a folder.
    std::fs::write(&own, "").unwrap();
    let params = json!({"sessionId": session.id});
    let error = client.refused("session.delete", params.clone()).await;
    assert!(
        error.message.contains(&session.id) && error.message.contains("could not be removed"),
        "{error:?}"
    );
    let listed = client.call("session.list", json!({})).await;
    assert!(listed.to_string().contains(&session.id), "{listed}");
    std::fs::remove_file(&own).unwrap();
    let done = client.call("session.delete", params).await;
    assert_eq!(done["success"], true);
    daemon.finish().await;
}
