//! A rewind whose files cannot be restored, one that succeeds, its undo, and one of the conversation.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{Log, session, take};

pub(super) async fn rewind() -> Vec<Log> {
    let make = call(
        "make",
        "create",
        json!({"path": "a.txt", "file_text": "one\n"}),
    );
    let change = call(
        "change",
        "edit",
        json!({"path": "a.txt", "old_str": "one", "new_str": "two"}),
    );
    let script = Script::play([
        Turn::user("make").calls([make]),
        Turn::results(["Created"]).says("made"),
        Turn::user("change").calls([change]),
        Turn::results(["updated"]).says("changed"),
        Turn::user("again").says("so be it"),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let mut session = session(&daemon, "rewind", json!({})).await;
    session.ask("make").await;
    session.ask("change").await;
    let points = session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    let second = points["points"][1]["eventId"].clone();
    // A stored content that is damaged is not put back.
    let state = daemon.home().join("session-state").join("rewind");
    let objects = state.join("rewind").join("objects");
    let damaged: Vec<_> = std::fs::read_dir(&objects)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| std::fs::read(path).unwrap() == b"one\n")
        .collect();
    std::fs::write(&damaged[0], "bad\n").unwrap();
    let both = json!({"eventId": second, "mode": "conversation-and-files"});
    let failed = session.call("session.history.rewind", both.clone()).await;
    assert_eq!(failed["outcome"], "files-rolled-back", "{failed}");
    std::fs::write(&damaged[0], "one\n").unwrap();
    let done = session.call("session.history.rewind", both).await;
    assert_eq!(done["outcome"], "success", "{done}");
    session.ask("again").await;
    let undone = session.call("loopd.rewind", json!({})).await;
    assert_eq!(undone["outcome"], "success", "{undone}");
    let talk = json!({"eventId": second, "mode": "conversation"});
    session.call("session.history.rewind", talk).await;
    let logs = take(&daemon).await;
    daemon.finish().await;
    logs
}
