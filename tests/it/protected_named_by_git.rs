//! Files of a work tree that the configuration of its repository names: git reads them as
//! configuration or runs them, so every tool asks before it writes there.

use crate::protected_calls::{bash, calling, create, edit, only_these_ask, update};

#[tokio::test]
async fn every_tool_asks_before_it_writes_to_what_the_configuration_of_git_names() {
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
    let daemon = calling(&asked, &free).await;
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
    only_these_ask(&daemon, &asked, &free).await;
    for file in ["inc.cfg", "tool/clean.sh"] {
        let text = std::fs::read_to_string(daemon.file(file)).unwrap();
        assert_eq!(text, "a\n", "{file}");
    }
    daemon.finish().await;
}
