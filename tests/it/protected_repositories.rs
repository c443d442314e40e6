//! Folders in which git keeps a repository under another name than `.git`: what is written there
//! can make git run something, so every tool asks before it writes there.

use loopd_tests::{Daemon, Turn, call};
use serde_json::json;

#[tokio::test]
async fn every_tool_asks_before_it_writes_to_a_repository_of_any_name() {
    let update = |file: &str| {
        let patch =
            format!("*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+b\n*** End Patch\n");
        json!({"patch": patch})
    };
    let edit = |file: &str| json!({"path": file, "old_str": "a", "new_str": "b"});
    let create = |file: &str| json!({"path": file, "file_text": "x"});
    let bash = |command: &str| json!({"command": command});
    let asked = [
        ("edit", edit("gd/config")),
        ("edit", edit("proj/.bare/config")),
        ("edit", edit("link/config")),
        ("apply_patch", update("gd/config")),
        ("create", create("gd/hooks/post-index-change")),
        ("create", create("proj/.bare/hooks/post-commit")),
        ("create", create("proj/.bare/config.worktree")),
        (
            "create",
            create("proj/.bare/worktrees/main/config.worktree"),
        ),
        ("bash", bash("echo x > gd/config")),
        ("bash", bash("cp notes.txt proj/.bare/hooks/x")),
        ("bash", bash("cd gd && echo x > config")),
        ("bash", bash("echo x > link/config")),
    ];
    let free = [
        ("create", create("proj/main/new.txt")),
        ("edit", edit("notes.txt")),
        ("bash", bash("ls gd")),
        ("bash", bash("echo x > proj/main/other.txt")),
    ];
    let calls: Vec<_> = asked.iter().chain(&free).collect();
    let turns = calls
        .iter()
        .enumerate()
        .flat_map(|(at, (tool, arguments))| {
            let id = format!("t{at}");
            [
                Turn::user(&id).calls([call(&id, tool, arguments.clone())]),
                Turn::results([""]).says("ok"),
            ]
        });
    let daemon = Daemon::playing(turns).await;
    for repository in ["gd", "proj/.bare"] {
        for folder in ["objects", "refs", "hooks"] {
            std::fs::create_dir_all(daemon.file(repository).join(folder)).unwrap();
        }
        for file in ["HEAD", "config"] {
            std::fs::write(daemon.file(repository).join(file), "a\n").unwrap();
        }
    }
    std::fs::create_dir_all(daemon.file("proj/main")).unwrap();
    std::fs::write(daemon.file("proj/main/.git"), "gitdir: ../.bare\n").unwrap();
    std::fs::write(daemon.file("notes.txt"), "a\n").unwrap();
    std::os::unix::fs::symlink("gd", daemon.file("link")).unwrap();
    let client = daemon.client();
    let mut session = client.create(json!({"requestPermission": true})).await;
    let rules = json!([{"kind": "write"}, {"kind": "shell"}, {"kind": "read"}]);
    let add = json!({"scope": "session", "add": rules});
    session.call("session.permissions.modifyRules", add).await;
    for (at, (tool, arguments)) in asked.iter().enumerate() {
        session.send(&format!("t{at}")).await;
        let (request, told) = session.permission().await;
        let offers = &told["canOfferSessionApproval"];
        assert_eq!(offers, false, "{tool} {arguments}: no rule covers it");
        let no = json!({"kind": "user-not-available"});
        assert!(session.decide(&request, no).await);
        session.next("session.idle").await;
    }
    for at in asked.len()..calls.len() {
        session.ask(&format!("t{at}")).await;
    }
    assert_eq!(session.count("permission.requested"), asked.len());
    for file in ["gd/config", "proj/.bare/config"] {
        let text = std::fs::read_to_string(daemon.file(file)).unwrap();
        assert_eq!(text, "a\n", "{file}");
    }
    daemon.finish().await;
}
