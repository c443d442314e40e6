//! What is no bundle, or would overwrite something, is refused by name and changes nothing.

use loopd_tests::{Client, Commits, Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{export, import, send};

/// A daemon with one session, and the session as a bundle.
async fn bundle() -> (Daemon, String, String) {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    let own = json!({"path": "a.txt", "content": "own\n"});
    session.call("session.workspaces.createFile", own).await;
    let (text, _) = export(session.client(), &session.id).await;
    let id = session.id.clone();
    (daemon, id, text)
}

async fn sessions(client: &Client) -> usize {
    let listed = client.call("session.list", json!({})).await;
    listed["sessions"].as_array().unwrap().len()
}

/// Changes the JSON of one line.
fn with_line(text: &str, fits: impl Fn(&Value) -> bool, change: impl Fn(&mut Value)) -> String {
    let lines = text.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if fits(&value) {
            change(&mut value);
        }
        value.to_string() + "\n"
    });
    lines.collect()
}

#[tokio::test]
async fn a_session_that_is_here_is_not_overwritten() {
    let (daemon, id, text) = bundle().await;
    let client = daemon.client();
    send(&client, "upload-1", &text, usize::MAX / 2).await;
    let params = json!({"upload": "upload-1"});
    let error = client.refused("loopd.sessions.import", params).await;
    assert!(
        error
            .message
            .contains(&format!("the session {id} is here already")),
        "{error}"
    );
    assert!(error.message.contains("newId"), "{error}");
    assert_eq!(daemon.state(&id).await.history.iter().count(), 2);
    // Once it is deleted the same bundle can be imported, and its files with it.
    client
        .call("session.delete", json!({"sessionId": id}))
        .await;
    let params = json!({"upload": "upload-1"});
    let imported = client.call("loopd.sessions.import", params).await;
    assert_eq!(imported["sessionId"], json!(id));
    assert_eq!(imported["files"], 1);
    let session = client.resume(&id, json!({})).await;
    let file = json!({"path": "a.txt"});
    let read = session.call("session.workspaces.readFile", file).await;
    assert_eq!(read["content"], "own\n");
    // The bundle was used up.
    let params = json!({"upload": "upload-1"});
    let error = client.refused("loopd.sessions.import", params).await;
    assert!(error.message.contains("no bundle was sent"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_newer_version_and_what_is_no_bundle_are_refused_by_name_before_anything_is_kept() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let refused = async |text: &str| {
        let params = json!({"upload": "upload-1", "offset": 0, "text": text});
        let error = client.refused("loopd.sessions.importPart", params).await;
        error.message
    };
    let told = refused("{\"loopdSession\": 2, \"by\": \"7.0.0\"}\n").await;
    assert!(
        told.contains("the bundle has version 2") && told.contains("up to version 1"),
        "{told}"
    );
    assert!(told.contains("7.0.0"), "{told}");
    let told = refused("# Notes\n\nnothing\n").await;
    assert!(
        told.contains("this is no session bundle of loopd"),
        "{told}"
    );
    let told = refused("{\"type\": \"session.start\"}\n").await;
    assert!(told.contains("does not say `loopdSession`"), "{told}");
    assert!(!daemon.home().join("imports").join("upload-1").exists());
    for name in ["short", "../../../../etc", "with space", "a/b-c-d-e"] {
        let params = json!({"upload": name, "offset": 0, "text": "x"});
        let error = client.refused("loopd.sessions.importPart", params).await;
        assert!(error.message.contains("upload: use 8 to 64"), "{error}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_bundle_that_is_not_whole_or_not_in_order_leaves_nothing() {
    let (there, id, text) = bundle().await;
    there.finish().await;
    let here = Daemon::playing([]).await;
    let client = here.client();
    let is = |name: &'static str| move |line: &Value| line.get(name).is_some();
    let lines: Vec<&str> = text.lines().collect();
    let without = |left_out: usize| -> String {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
        kept.join("\n") + "\n"
    };
    let event = lines
        .iter()
        .position(|line| line.starts_with("{\"event\""))
        .unwrap();
    let set_path = |path: &'static str| {
        with_line(&text, is("file"), move |line| {
            line["file"]["path"] = json!(path);
        })
    };
    let mut enlisted: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let own = json!({"event": {
        "type": "loopd.enlisted", "id": "e", "timestamp": "2026-11-18T00:00:00.000Z", "parentId": null,
        "data": {},
    }});
    enlisted.insert(event + 1, own.to_string() + "\n");
    let cases = [
        (without(event), "does not begin with `session.start`"),
        (without(event + 1), "there are"),
        (without(lines.len() - 1), "ends before its end"),
        (text.clone() + "{\"leftOut\":[]}\n", "more after the end"),
        (text.replace("\"file\"", "\"fail\""), "unknown variant"),
        (set_path("../../../../evil"), "is no place for a file"),
        (set_path("/etc/evil"), "is no place for a file"),
        (set_path("session.db"), "is no place for a file"),
        (set_path("rewind/changes.jsonl"), "is no place for a file"),
        (
            with_line(&text, is("file"), |line| line["file"]["more"] = json!(true)),
            "a part of files/a.txt is missing",
        ),
        (
            text.replace("\"user.message\"", "\"user.messages_of_tomorrow\""),
            "does not know",
        ),
        (enlisted.concat(), "cannot be used"),
        (text[..text.len() / 2].to_owned(), "cannot be used"),
    ];
    for (at, (broken, why)) in cases.into_iter().enumerate() {
        let upload = format!("upload-{at}");
        // The first line is whole in all of them.
        send(&client, &upload, &broken, 4096).await;
        let params = json!({"upload": upload});
        let error = client.refused("loopd.sessions.import", params).await;
        assert!(error.message.contains(why), "{at}: {error}");
        let file = here.home().join("imports").join(&upload);
        std::fs::remove_file(file).unwrap();
        assert_eq!(sessions(&client).await, 0, "{at}");
    }
    assert!(!here.home().join("session-state").join(&id).exists());
    let path = format!("\"sessionId\":\"{id}\"");
    let evil = text.replacen(&path, "\"sessionId\":\"../evil\"", 1);
    send(&client, "upload-x", &evil, 4096).await;
    let params = json!({"upload": "upload-x"});
    let error = client.refused("loopd.sessions.import", params).await;
    assert!(error.message.contains("sessionId: use 1 to 128"), "{error}");
    assert_eq!(here.app.services.store.list().await.unwrap().len(), 0);
    // With everything in its place it is taken.
    import(&client, &text, json!({})).await;
    assert_eq!(sessions(&client).await, 1);
    here.finish().await;
}

#[tokio::test]
async fn the_session_of_a_sub_agent_is_exported_with_nobody_and_named() {
    let task = json!({"prompt": "work", "name": "worker", "description": "a part", "mode": "sync"});
    let script = Script::voices([
        (
            "go",
            vec![
                Turn::user("go").calls([call("t", "task", task)]),
                Turn::any().says("done"),
                Turn::user("more").says("yes"),
            ],
        ),
        ("work", vec![Turn::user("work").says("worked")]),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
    let records = daemon.app.services.store.list().await.unwrap();
    let agent = records
        .iter()
        .find(|record| record.agent.is_some())
        .unwrap();
    let params = json!({"sessionId": agent.id});
    let error = client.refused("loopd.sessions.export", params).await;
    assert!(
        error.message.contains(&format!("export {}", session.id)),
        "{error}"
    );
    let (text, left_out) = export(&client, &session.id).await;
    assert!(left_out.join("\n").contains("1 sub-agents"), "{left_out:?}");
    let imported = import(&client, &text, json!({"newId": true})).await;
    let id = imported["sessionId"].as_str().unwrap();
    let copy = client.resume(id, json!({})).await;
    let tasks = copy.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"], json!([]));
    let unknown = json!({"sessionId": "nobody"});
    let error = client.refused("loopd.sessions.export", unknown).await;
    assert!(
        error.message.contains("Session not found: nobody"),
        "{error}"
    );
    let params = json!({"sessionId": session.id, "cursor": "junk"});
    let error = client.refused("loopd.sessions.export", params).await;
    assert!(error.message.contains("cursor: "), "{error}");
    session.ask("more").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_import_that_finds_no_room_leaves_nothing_and_works_when_there_is_room() {
    let (there, id, text) = bundle().await;
    there.finish().await;
    let commits = Commits::default();
    let script = Script::play([]).await;
    let here = Daemon::builder().script(script).commits(&commits);
    let here = here.start().await;
    let client = here.client();
    send(&client, "upload-1", &text, usize::MAX / 2).await;
    commits.fill_disk();
    let params = json!({"upload": "upload-1"});
    let error = client
        .refused("loopd.sessions.import", params.clone())
        .await;
    assert_eq!(error.code, -32004, "{error}");
    assert!(!here.home().join("session-state").join(&id).exists());
    commits.free_disk();
    let imported = client.call("loopd.sessions.import", params).await;
    assert_eq!(imported["sessionId"], json!(id));
    assert_eq!(here.app.services.store.list().await.unwrap().len(), 1);
    here.finish().await;
}
