//! Files of a work tree that the configuration of its repository names: git reads them as
//! configuration or runs them, so every tool asks before it writes there.

use loopd_tests::{Daemon, Turn, call};
use serde_json::json;

#[tokio::test]
async fn every_tool_asks_before_it_writes_to_what_the_configuration_of_git_names() {
    let update = |file: &str| {
        let patch =
            format!("*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+b\n*** End Patch\n");
        json!({"patch": patch})
    };
    let edit = |file: &str| json!({"path": file, "old_str": "a", "new_str": "b"});
    let create = |file: &str| json!({"path": file, "file_text": "x"});
    let bash = |command: &str| json!({"command": command});
    let asked = [
        ("edit", edit("inc.cfg")),
        ("edit", edit("tool/clean.sh")),
        ("edit", edit("link.cfg")),
        ("apply_patch", update("inc.cfg")),
        ("create", create("scripts/hk/pre-commit")),
        ("create", create("later.cfg")),
        ("bash", bash("echo x > inc.cfg")),
        ("bash", bash("cp notes.txt scripts/hk/pre-commit")),
        ("bash", bash("cd scripts && echo x > hk/pre-commit")),
        ("bash", bash("echo x > link.cfg")),
    ];
    let free = [
        ("create", create("scripts/new.txt")),
        ("edit", edit("notes.txt")),
        ("bash", bash("cat inc.cfg")),
        ("bash", bash("echo x > scripts/other.txt")),
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
    for folder in [".git", "scripts/hk", "tool"] {
        std::fs::create_dir_all(daemon.file(folder)).unwrap();
    }
    let config = "[core]\n\thooksPath = scripts/hk\n[include]\n\tpath = ../inc.cfg\n\
        [includeIf \"onbranch:x\"]\n\tpath = ../later.cfg\n\
        [filter \"x\"]\n\tclean = sh tool/clean.sh %f\n";
    std::fs::write(daemon.file(".git/config"), config).unwrap();
    for file in ["inc.cfg", "tool/clean.sh", "notes.txt"] {
        std::fs::write(daemon.file(file), "a\n").unwrap();
    }
    std::os::unix::fs::symlink("inc.cfg", daemon.file("link.cfg")).unwrap();
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
    for file in ["inc.cfg", "tool/clean.sh"] {
        let text = std::fs::read_to_string(daemon.file(file)).unwrap();
        assert_eq!(text, "a\n", "{file}");
    }
    daemon.finish().await;
}
