//! Worktrees of agents as seen from `loop`. They are what a daemon that died has left: a record, a
//! folder, and an entry in a real repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::Home;

fn git(home: &Home, folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(args)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", home.folder.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Leaves a worktree behind; returns its folder.
fn left(home: &Home, id: &str) -> PathBuf {
    let folder = home.folder.path().canonicalize().unwrap();
    let project = folder.join("project");
    if !project.exists() {
        std::fs::create_dir(&project).unwrap();
        git(home, &project, &["init", "--quiet"]);
        std::fs::write(project.join("file.txt"), "one\n").unwrap();
        git(home, &project, &["add", "--all"]);
        git(home, &project, &["commit", "--quiet", "-m", "First"]);
    }
    let worktrees = folder.join("home/worktrees");
    std::fs::create_dir_all(&worktrees).unwrap();
    let record = serde_json::json!({
        "session": "gone",
        "repository": project,
        "gitDir": project.join(".git"),
        "commit": git(home, &project, &["rev-parse", "HEAD"]),
        "made": "2026-01-01T00:00:00.000Z",
        "stage": "ready",
    });
    std::fs::write(worktrees.join(format!("{id}.json")), record.to_string()).unwrap();
    let path = worktrees.join(id);
    let add = ["worktree", "add", "--quiet", "--detach"];
    git(
        home,
        &project,
        &[&add[..], &[path.to_str().unwrap()]].concat(),
    );
    path
}

#[test]
fn leftovers_are_listed_and_removed() {
    let home = Home::new();
    let none = home.run(&["worktrees"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""), "{none:?}");
    assert!(none.err.contains("no worktrees"), "{none:?}");

    let (same, changed) = (left(&home, "same"), left(&home, "changed"));
    std::fs::write(changed.join("new.txt"), "").unwrap();
    let shown = home.prints(&["worktrees"]);
    assert!(shown.contains("same  leftover, unchanged\n"), "{shown}");
    assert!(
        shown.contains("changed  leftover, 1 changed file, 0 commits\n"),
        "{shown}"
    );
    assert!(shown.contains("    changed     new.txt\n"), "{shown}");
    let lines = home.prints(&["worktrees", "--json"]);
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["id"], "changed");
    assert_eq!(lines[0]["contents"]["files"][0], "new.txt");
    assert_eq!(lines[1]["use"], "leftover");

    let removed = home.run(&["worktrees", "remove", "same"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(removed.err.contains("removed same"), "{removed:?}");
    assert!(!same.exists());
    let refused = home.run(&["worktrees", "remove", "changed"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("--force"), "{refused:?}");
    assert!(changed.join("new.txt").exists());
    let forced = home.run(&["worktrees", "remove", "changed", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    let project = home.path("project");
    let known = git(&home, &project, &["worktree", "list"]);
    assert_eq!(known.lines().count(), 1, "{known}");
    let unknown = home.run(&["worktrees", "remove", "same"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("no worktree same"), "{unknown:?}");
}

#[test]
fn the_help_says_what_a_worktree_is_and_what_goes_with_it() {
    let home = Home::new();
    let help = home.prints(&["worktrees", "--help"]);
    for word in ["git worktree", "leftover", "git switch -c NAME", "remove"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    let help = home.prints(&["worktrees", "remove", "--help"]);
    assert!(help.contains("--force"), "{help}");
}
