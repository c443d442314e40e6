//! Deny rules for writing hold for commands, also where everything else is approved.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

#[tokio::test]
async fn a_command_cannot_write_where_a_rule_denies_it() {
    let lines = [
        "echo x > keep.txt",
        "echo x > link",
        "cd sub && rm ../keep.txt",
        "sh -c 'mv keep.txt gone'",
    ];
    let calls: Vec<_> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| call(&format!("c{at}"), "bash", json!({"command": line})))
        .collect();
    let script = Script::play([
        Turn::user("go").calls(calls),
        Turn::results(["denied", "denied", "denied", "denied"]).says("done"),
    ]);
    let builder = Daemon::builder().script(script.await).yolo();
    let daemon = builder.start().await;
    std::fs::write(daemon.file("keep.txt"), "kept").unwrap();
    std::fs::create_dir(daemon.file("sub")).unwrap();
    std::os::unix::fs::symlink("keep.txt", daemon.file("link")).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let denied = json!({"approved": [], "denied": [{"kind": "write", "argument": "keep.txt"}]});
    session
        .call("session.permissions.configure", json!({"rules": denied}))
        .await;
    session.ask("go").await;
    let kept = std::fs::read_to_string(daemon.file("keep.txt")).unwrap();
    assert_eq!(kept, "kept", "{}", session.transcript());
    daemon.finish().await;
}
