//! The folder in which a session keeps its own files, as clients use it.

use std::path::PathBuf;

use loopd_tests::{Daemon, Session};
use serde_json::{Value, json};

const LIST: &str = "session.workspaces.listFiles";
const READ: &str = "session.workspaces.readFile";
const CREATE: &str = "session.workspaces.createFile";
const PASTE: &str = "session.workspaces.saveLargePaste";

async fn files(session: &Session) -> Value {
    session.call(LIST, json!({})).await["files"].clone()
}

async fn folder(session: &Session) -> PathBuf {
    let found = session
        .call("session.workspaces.getWorkspace", json!({}))
        .await;
    PathBuf::from(found["path"].as_str().unwrap())
}

#[tokio::test]
async fn files_are_written_listed_and_read() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    assert_eq!(files(&session).await, json!([]));
    for (path, content, operation) in [
        ("b.txt", "one", "create"),
        ("b.txt", "zwei 🚀", "update"),
        ("a/./deep/c.txt", "", "create"),
    ] {
        let params = json!({"path": path, "content": content});
        assert_eq!(session.call(CREATE, params).await, Value::Null);
        let changed = session.next("session.workspace_file_changed").await;
        let path = path.replace("./", "");
        assert_eq!(
            changed["data"],
            json!({"path": path, "operation": operation})
        );
        let read = session.call(READ, json!({ "path": path })).await;
        assert_eq!(read, json!({ "content": content }));
    }
    assert_eq!(files(&session).await, json!(["a/deep/c.txt", "b.txt"]));
    daemon.finish().await;
}

#[tokio::test]
async fn a_paste_becomes_a_file() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let content = "a line 🚀\n".repeat(2_000);
    let saved = session.call(PASTE, json!({ "content": content })).await["saved"].clone();
    assert_eq!(saved["sizeBytes"], content.len());
    let on_disk = std::fs::read_to_string(saved["filePath"].as_str().unwrap());
    assert_eq!(on_disk.unwrap(), content);
    let read = session.call(READ, json!({"path": saved["filename"]})).await;
    assert_eq!(read["content"], content);
    assert_eq!(session.refused(PASTE, json!({})).await.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn nothing_leads_out_of_the_folder() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let outside = daemon.file("outside.txt");
    std::fs::write(&outside, "secret").unwrap();
    let absolute = outside.to_str().unwrap();
    for path in ["../x.txt", "a/../../x.txt", "a/..", "", ".", absolute] {
        for (method, params) in [
            (READ, json!({ "path": path })),
            (CREATE, json!({"path": path, "content": "x"})),
        ] {
            let wrong = session.refused(method, params).await;
            assert_eq!(wrong.code, -32602, "{path:?}");
            assert!(
                wrong.message.contains("workspace files directory"),
                "{path:?}: {}",
                wrong.message
            );
        }
    }
    session
        .call(CREATE, json!({"path": "real.txt", "content": "x"}))
        .await;
    let files_folder = folder(&session).await.join("files");
    std::os::unix::fs::symlink(&outside, files_folder.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(daemon.work(), files_folder.join("away")).unwrap();
    for path in ["link.txt", "away/outside.txt"] {
        let wrong = session.refused(READ, json!({ "path": path })).await;
        assert!(wrong.message.contains("leads out"), "{}", wrong.message);
    }
    let through = json!({"path": "away/new.txt", "content": "x"});
    let wrong = session.refused(CREATE, through).await;
    assert!(wrong.message.contains("leads out"), "{}", wrong.message);
    assert!(!daemon.file("new.txt").exists());
    assert_eq!(files(&session).await, json!(["real.txt"]));
    let over = json!({"path": "link.txt", "content": "mine"});
    session.call(CREATE, over).await;
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    daemon.finish().await;
}

#[tokio::test]
async fn what_cannot_be_read_as_text_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let missing = session.refused(READ, json!({"path": "no.txt"})).await;
    assert_ne!(missing.code, -32602);
    session
        .call(CREATE, json!({"path": "folder/a", "content": ""}))
        .await;
    let bytes = folder(&session).await.join("files/bytes");
    std::fs::write(bytes, [0xff, 0xfe]).unwrap();
    for path in ["bytes", "folder"] {
        let wrong = session.refused(READ, json!({ "path": path })).await;
        assert!(wrong.message.contains("text file"), "{}", wrong.message);
    }
    let large = "x".repeat(10 * 1024 * 1024 + 1);
    let params = json!({"path": "large", "content": large});
    let wrong = session.refused(CREATE, params).await;
    assert!(wrong.message.contains("more than"), "{}", wrong.message);
    daemon.finish().await;
}

#[tokio::test]
async fn the_folder_tells_whose_it_is() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    session
        .call("session.name.set", json!({"name": "Mine"}))
        .await;
    let context = json!({"cwd": daemon.work(), "gitRoot": "/src", "branch": "main",
        "repository": "us/it", "hostType": "github"});
    session
        .call(
            "session.metadata.recordContextChange",
            json!({ "context": context }),
        )
        .await;
    let found = session
        .call("session.workspaces.getWorkspace", json!({}))
        .await;
    let workspace = &found["workspace"];
    assert_eq!(workspace["id"], session.id);
    assert_eq!(workspace["name"], "Mine");
    assert_eq!(workspace["user_named"], true);
    assert_eq!(workspace["cwd"], json!(daemon.work()));
    assert_eq!(workspace["git_root"], "/src");
    assert_eq!(workspace["branch"], "main");
    assert_eq!(workspace["repository"], "us/it");
    assert!(workspace["created_at"].is_string() && workspace["updated_at"].is_string());
    daemon.finish().await;
}
