//! Folders in which git keeps a repository under another name than `.git`: what is written there
//! can make git run something, so every tool asks before it writes there.

use crate::protected_calls::{bash, calling, create, edit, only_these_ask, update};

#[tokio::test]
async fn every_tool_asks_before_it_writes_to_a_repository_of_any_name() {
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
    let daemon = calling(&asked, &free).await;
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
    only_these_ask(&daemon, &asked, &free).await;
    for file in ["gd/config", "proj/.bare/config"] {
        let text = std::fs::read_to_string(daemon.file(file)).unwrap();
        assert_eq!(text, "a\n", "{file}");
    }
    daemon.finish().await;
}
