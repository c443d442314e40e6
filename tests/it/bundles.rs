//! Sessions that go to another home as a bundle, over the wire, and go on there.

mod refused;

use loopd_tests::{Client, Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// Exports a session; returns the text of the bundle and what the last page says is left out.
pub(crate) async fn export(client: &Client, id: &str) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut cursor = Value::Null;
    loop {
        let params = json!({"sessionId": id, "cursor": cursor});
        let page = client.call("loopd.sessions.export", params).await;
        text.push_str(page["text"].as_str().unwrap());
        cursor = page["next"].clone();
        if cursor.is_null() {
            let left_out = serde_json::from_value(page["leftOut"].clone()).unwrap();
            return (text, left_out);
        }
    }
}

/// Sends a bundle in parts of so many bytes.
pub(crate) async fn send(client: &Client, upload: &str, text: &str, part: usize) {
    let mut offset = 0;
    let first = text.find('\n').unwrap() + 1;
    while offset < text.len() {
        let mut end = (offset + part.max(if offset == 0 { first } else { 0 })).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let params = json!({"upload": upload, "offset": offset, "text": text[offset..end]});
        let taken = client.call("loopd.sessions.importPart", params).await;
        assert_eq!(taken["bytes"], json!(end));
        offset = end;
    }
}

/// Sends a bundle and imports it.
pub(crate) async fn import(client: &Client, text: &str, params: Value) -> Value {
    send(client, "upload-1", text, 700_000).await;
    let mut params = params;
    params["upload"] = json!("upload-1");
    client.call("loopd.sessions.import", params).await
}

/// Plays a session with a large output, todos and files of its own.
async fn told_a_secret_name() -> (Daemon, Session) {
    let todos = json!({"todos": [
        {"id": "one", "content": "Find milk", "status": "in_progress", "priority": "high"},
    ]});
    let script = Script::play([
        Turn::user("remember Ada").calls([
            call("a", "todowrite", todos),
            call(
                "b",
                "bash",
                json!({"command": "seq 1 20000", "description": "many"}),
            ),
        ]),
        Turn::any().says("Her name is Ada."),
    ]);
    let daemon = Daemon::builder().script(script.await).start().await;
    let options = json!({"enableFileChangeTracking": true, "additionalDirectories": ["/usr"]});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("remember Ada").await;
    session
        .call("session.plan.update", json!({"content": "# The plan\n"}))
        .await;
    let own = json!({"path": "notes/a.txt", "content": "own\n"});
    session.call("session.workspaces.createFile", own).await;
    let large = "a line of a large file\n".repeat(200_000);
    let own = json!({"path": "large.txt", "content": large});
    session.call("session.workspaces.createFile", own).await;
    session
        .call("session.name.set", json!({"name": "About Ada"}))
        .await;
    (daemon, session)
}

#[tokio::test]
async fn a_session_goes_on_in_another_home_with_its_conversation_todos_and_files() {
    let (there, session) = told_a_secret_name().await;
    // The session is live while it is exported.
    let (text, left_out) = export(session.client(), &session.id).await;
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["loopdSession"], 1);
    assert_eq!(first["sessionId"], json!(session.id));
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let told = left_out.join("\n");
    assert!(told.contains("keys, tokens"), "{told}");
    assert!(told.contains("earlier versions of files"), "{told}");
    let id = session.id.clone();
    session.destroy().await;
    there.finish().await;

    let here = Daemon::playing([
        Turn::user("what is her name?").calls([call("c", "todoread", json!({}))]),
        Turn::results(["Find milk"]).says("Ada."),
    ])
    .await;
    let client = here.client();
    let imported = import(&client, &text, json!({})).await;
    assert_eq!(imported["sessionId"], json!(id));
    assert_eq!(imported["workingDirectory"], json!(here.work()));
    assert_eq!(imported["leftOut"], json!(left_out));
    let listed = client.call("session.list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["sessions"][0]["name"], "About Ada");
    assert_eq!(listed["sessions"][0]["context"]["cwd"], json!(here.work()));

    let mut session = client.resume(&id, json!({})).await;
    session.ask("what is her name?").await;
    let asked = here.script().requests();
    let sent = serde_json::to_string(asked[0].messages()).unwrap();
    assert!(sent.contains("remember Ada") && sent.contains("Her name is Ada."));
    // The large output is here, where the conversation says it is.
    let own = here.home().join("session-state").join(&id);
    let own = own.to_str().unwrap();
    let results = asked[0].messages().iter();
    let results = results.filter_map(|message| message["content"].as_str());
    let words = results.flat_map(str::split_whitespace);
    let mut words = words.map(|word| word.trim_end_matches(['.', ',', ':', '"']));
    let path = words.find(|word| word.starts_with(own) && word.contains("/temp/"));
    let path = path.unwrap_or_else(|| panic!("no path of an output in {sent}"));
    let output = std::fs::read_to_string(path).unwrap();
    assert!(output.contains("\n20000"), "{}", output.len());
    let plan = session.call("session.plan.read", json!({})).await;
    assert_eq!(plan["content"], "# The plan\n");
    let file = json!({"path": "notes/a.txt"});
    let read = session.call("session.workspaces.readFile", file).await;
    assert_eq!(read["content"], "own\n");
    let file = json!({"path": "large.txt"});
    let read = session.call("session.workspaces.readFile", file).await;
    assert_eq!(read["content"].as_str().unwrap().len(), 23 * 200_000);
    here.finish().await;
}

#[tokio::test]
async fn what_was_allowed_in_one_home_is_asked_in_another_and_what_is_denied_stays_denied() {
    let (there, session) = told_a_secret_name().await;
    let rules = json!({
        "scope": "session",
        "add": [{"kind": "shell", "argument": null}],
        "loopdDeny": [{"kind": "shell", "argument": "rm"}],
    });
    session.call("session.permissions.modifyRules", rules).await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    let (text, _) = export(session.client(), &session.id).await;
    let id = session.id.clone();
    there.finish().await;

    let run = |id: &str, command: &str| {
        let input = json!({"command": command, "description": "x"});
        call(id, "bash", input)
    };
    let here = Daemon::playing([
        Turn::user("go").calls([run("x", "touch made"), run("y", "rm -r made")]),
        Turn::any().says("done"),
    ])
    .await;
    let client = here.client();
    import(&client, &text, json!({})).await;
    let options = json!({"requestPermission": true});
    let mut session = client.resume(&id, options).await;
    let state = here.state(&id).await;
    assert!(!state.permissions.approve_all && state.permissions.approved.is_empty());
    assert!(state.permissions.directories.is_empty());
    assert_eq!(state.mode, loopd_proto::session::Mode::Interactive);
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["toolCallId"], "x", "{asked}");
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    let ends: Vec<Value> = session.events();
    let denied = ends.iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "y"
    });
    assert_eq!(denied.unwrap()["data"]["success"], false);
    assert!(here.file("made").exists());
    here.finish().await;
}

#[tokio::test]
async fn a_call_that_runs_while_its_session_is_exported_is_closed_in_the_other_home() {
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", json!({"command": "cat pipe"}))]),
        Turn::results(["done"]).says("ok"),
    ])
    .await;
    let there = Daemon::builder().script(script).yolo().start().await;
    let pipe = there.file("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut session = there.client().create(json!({})).await;
    session.send("go").await;
    session.next("tool.execution_start").await;
    session.send("and then this").await;
    let (text, _) = export(session.client(), &session.id).await;
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "done\n"))
        .await
        .unwrap()
        .unwrap();
    session.call("session.queue.clear", json!({})).await;
    session.next("session.idle").await;
    there.finish().await;

    let here = Daemon::playing([Turn::user("more").says("yes")]).await;
    let client = here.client();
    import(&client, &text, json!({})).await;
    let mut again = client
        .resume(&session.id, json!({"continuePendingWork": true}))
        .await;
    let state = here.state(&session.id).await;
    assert!(!state.is_busy() && state.queue.is_empty());
    let stored = again.messages().await;
    let closed = stored
        .iter()
        .find(|event| event["type"] == "tool.execution_complete");
    let closed = closed.unwrap()["data"].to_string();
    assert!(closed.contains("copied from"), "{closed}");
    again.ask("more").await;
    here.finish().await;
}

#[tokio::test]
async fn a_secret_that_became_known_later_is_in_no_bundle() {
    let daemon = Daemon::playing([Turn::user("it is hunter2-hunter2").says("noted")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("it is hunter2-hunter2").await;
    let own = json!({"path": "a.txt", "content": "hunter2-hunter2\n"});
    session.call("session.workspaces.createFile", own).await;
    let (text, _) = export(session.client(), &session.id).await;
    assert!(text.contains("hunter2-hunter2"));
    let values = json!({"values": ["hunter2-hunter2"]});
    session
        .client()
        .call("secrets.addFilterValues", values)
        .await;
    let (text, _) = export(session.client(), &session.id).await;
    assert!(!text.contains("hunter2-hunter2"), "{text}");
    assert!(text.contains("[redacted]"));
    // What was masked is still a bundle.
    let here = Daemon::playing([]).await;
    import(&here.client(), &text, json!({})).await;
    here.finish().await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_copy_with_a_new_id_is_beside_its_source() {
    let daemon = Daemon::playing([
        Turn::user("hello").says("hi"),
        Turn::user("more").says("yes"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    let params = json!({"sessionId": session.id, "withoutFiles": true});
    let page = client.call("loopd.sessions.export", params).await;
    let text = page["text"].as_str().unwrap();
    assert!(page["leftOut"].to_string().contains("as the caller wished"));
    let below = daemon.file("below");
    std::fs::create_dir(&below).unwrap();
    let imported = import(
        &client,
        text,
        json!({"newId": true, "workingDirectory": "below"}),
    )
    .await;
    let copy = imported["sessionId"].as_str().unwrap();
    assert_ne!(copy, session.id);
    assert_eq!(imported["workingDirectory"], json!(below));
    let mut copy = client.resume(copy, json!({})).await;
    copy.ask("more").await;
    assert_eq!(session.count("user.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn sessions_are_found_by_what_was_said_and_by_their_names() {
    let daemon = Daemon::playing([
        Turn::user("where is the Milk?").says("In the fridge."),
        Turn::user("something else").says("no"),
    ])
    .await;
    let client = daemon.client();
    let mut one = client.create(json!({})).await;
    one.ask("where is the Milk?").await;
    let mut two = client.create(json!({})).await;
    two.ask("something else").await;
    two.call("session.name.set", json!({"name": "About the fridge"}))
        .await;
    let search = async |text: &str| {
        let params = json!({"text": text});
        client.call("loopd.sessions.search", params).await
    };
    let found = search("milk").await;
    assert_eq!(found["complete"], true);
    assert_eq!(found["sessions"].as_array().unwrap().len(), 1, "{found}");
    let hit = &found["sessions"][0];
    assert_eq!(hit["session"]["sessionId"], json!(one.id));
    assert_eq!(hit["message"]["excerpt"], "where is the Milk?");
    assert_eq!(hit["message"]["byUser"], true);
    let found = search("FRIDGE").await;
    let ids = found["sessions"].as_array().unwrap().iter();
    let ids: Vec<_> = ids
        .map(|hit| hit["session"]["sessionId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, [two.id.clone(), one.id.clone()], "{found}");
    assert_eq!(found["sessions"][0].get("message"), None);
    assert_eq!(found["sessions"][1]["message"]["byUser"], false);
    assert_eq!(search("nothing of that").await["sessions"], json!([]));
    let error = client
        .refused("loopd.sessions.search", json!({"text": " "}))
        .await;
    assert!(error.message.contains("text: give"), "{error}");
    daemon.finish().await;
}
