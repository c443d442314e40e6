//! When the hash of a hook changes.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::super::*;

/// Returns the hash of the one hook in a project whose file has this text.
fn hash(root: &Path, text: &str) -> String {
    let file = root.join(".github/hooks/a.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
    fs::write(&file, text).expect("the file is written");
    let places = HookPlaces {
        projects: vec![root.to_owned()],
        ..HookPlaces::default()
    };
    let loaded = load(&places);
    let [hook] = loaded.hooks.as_slice() else {
        panic!("{loaded:?}");
    };
    hook.hash.to_string()
}

#[test]
fn every_member_counts_and_nothing_else() {
    let root = TempDir::new().expect("a folder");
    let hash = |text: &str| hash(root.path(), text);
    let first = hash(r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"a"}]}]}}"#);
    let same = hash(
        "{ // why\n\"version\":1,\"hooks\":{\"PreToolUse\":[{\"hooks\":[{ \"command\" : \"a\" }],\"matcher\":\"Bash\"}]}}",
    );
    assert_eq!(first, same);
    for other in [
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"b"}]}]}}"#,
        r#"{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"command":"a"}]}]}}"#,
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"a","timeout":9}]}]}}"#,
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"a","env":{"A":"1"}}]}]}}"#,
        r#"{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"command":"a"}]}]}}"#,
        r#"{"hooks":{"preToolUse":[{"matcher":"Bash","command":"a"}]}}"#,
    ] {
        assert_ne!(first, hash(other), "{other}");
    }
}

#[test]
fn what_a_command_only_writes_to_does_not_count() {
    let root = TempDir::new().expect("a folder");
    let log = root.path().join("guard.log");
    for command in [
        "./g.sh 2>>guard.log",
        "./g.sh > guard.log 2>&1",
        "./g.sh &>guard.log",
        "./g.sh >| ./guard.log",
        "./g.sh >> $CLAUDE_PROJECT_DIR/guard.log",
        "./g.sh >> \\\"$CLAUDE_PROJECT_DIR\\\"/guard.log; true",
        "./g.sh >> 'guard.log'",
    ] {
        let text = format!("{{\"hooks\":{{\"preToolUse\":[{{\"bash\":\"{command}\"}}]}}}}");
        let without = hash(root.path(), &text);
        fs::write(&log, "one line").expect("the log is written");
        assert_eq!(hash(root.path(), &text), without, "{command}");
        fs::remove_file(&log).expect("the log is removed");
    }
}

#[test]
fn the_scripts_that_a_command_names_count() {
    let root = TempDir::new().expect("a folder");
    let scripts = root.path().join("tools");
    fs::create_dir_all(&scripts).expect("the folder is made");
    for command in [
        r#""bash":"./tools/g.sh""#,
        r#""bash":"bash tools/g.sh --strict""#,
        r#""command":"\"$CLAUDE_PROJECT_DIR\"/tools/g.sh""#,
        r#""command":"${CLAUDE_PROJECT_DIR}/tools/g.sh | tee log""#,
        r#""command":"$CLAUDE_PROJECT_DIR/tools/g.sh""#,
        r#""bash":"./g.sh","cwd":"tools""#,
        r#""bash":"cd tools && ./g.sh""#,
        r#""bash":"echo x>log; cd \"$CLAUDE_PROJECT_DIR/tools\" && ./g.sh""#,
        r#""bash":"tee >(tools/g.sh) > log""#,
        r#""bash":"bash < tools/g.sh > log""#,
        r#""bash":"bash -c 'echo > tools/g.sh'""#,
        r#""exec":"sh","args":["tools/g.sh"]"#,
        r#""bash":"true","env":{"BASH_ENV":"tools/g.sh"}"#,
    ] {
        let text = format!("{{\"hooks\":{{\"preToolUse\":[{{{command}}}]}}}}");
        fs::write(scripts.join("g.sh"), "").expect("the script is written");
        fs::remove_file(scripts.join("g.sh")).expect("the script is removed");
        let without = hash(root.path(), &text);
        fs::write(scripts.join("g.sh"), "exit 2").expect("the script is written");
        let with = hash(root.path(), &text);
        fs::write(scripts.join("g.sh"), "exit 0").expect("the script is written");
        let changed = hash(root.path(), &text);
        assert_ne!(without, with, "{command}");
        assert_ne!(with, changed, "{command}");
        fs::write(scripts.join("g.sh"), "exit 2").expect("the script is written");
        assert_eq!(hash(root.path(), &text), with, "{command}");
    }
}

#[test]
fn a_script_that_changes_after_loading_is_noticed() {
    let root = TempDir::new().expect("a folder");
    let script = root.path().join("g.sh");
    fs::write(&script, "exit 2").expect("the script is written");
    let file = root.path().join(".github/hooks/a.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
    let text = r#"{"hooks":{"preToolUse":[{"bash":"./g.sh"},{"bash":"./none.sh"}]}}"#;
    fs::write(&file, text).expect("the file is written");
    let loaded = load(&HookPlaces {
        projects: vec![root.path().to_owned()],
        ..HookPlaces::default()
    });
    let unchanged = || {
        let hooks = loaded.hooks.iter();
        hooks.map(is_unchanged).collect::<Vec<_>>()
    };
    assert_eq!(unchanged(), [true, true]);
    fs::write(&script, "exit 0").expect("the script is written");
    assert_eq!(unchanged(), [false, true]);
    fs::write(&script, "exit 2").expect("the script is written");
    fs::write(root.path().join("none.sh"), "exit 0").expect("the script is written");
    assert_eq!(unchanged(), [true, false]);
}

#[test]
fn files_outside_of_the_project_do_not_count() {
    let root = TempDir::new().expect("a folder");
    let outside = root.path().join("guard.sh");
    let project = root.path().join("app");
    fs::create_dir_all(&project).expect("the folder is made");
    let text = format!(
        "{{\"hooks\":{{\"preToolUse\":[{{\"bash\":\"{} ../guard.sh\"}}]}}}}",
        outside.display()
    );
    let before = hash(&project, &text);
    fs::write(&outside, "exit 2").expect("the script is written");
    assert_eq!(before, hash(&project, &text));
}

#[test]
fn the_scripts_of_the_users_own_guards_count_however_they_are_named() {
    let root = TempDir::new().expect("a folder");
    let user = root.path().canonicalize().expect("a folder");
    let write = |file: &str, text: &str| {
        let path = user.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, text).expect("the file is written");
    };
    let cwd = format!(r#""bash":"./g.sh","cwd":"{}/hk""#, user.display());
    for command in [
        r#""bash":"~/hk/g.sh""#,
        r#""bash":"$HOME/hk/g.sh""#,
        r#""bash":"\"$HOME\"/hk/g.sh""#,
        r#""bash":"\"${HOME}\"/hk/g.sh --strict""#,
        r#""bash":"\"$HOME/hk\"/g.sh""#,
        r#""bash":"bash \"$HOME/hk/g.sh\"""#,
        r#""bash":"cd \"$HOME\"/hk && ./g.sh""#,
        r#""bash":"cd ~/hk && bash g.sh""#,
        cwd.as_str(),
    ] {
        write("hk/g.sh", "exit 2");
        let text = format!("{{\"hooks\":{{\"preToolUse\":[{{{command}}}]}}}}");
        write(".copilot/hooks/a.json", &text);
        let loaded = load(&HookPlaces {
            user: UserHookPlaces {
                folder: Some(user.clone()),
                homes: vec![user.join(".copilot")],
                settings: Vec::new(),
            },
            ..HookPlaces::default()
        });
        let [hook] = loaded.hooks.as_slice() else {
            panic!("{command}: {} hooks", loaded.hooks.len());
        };
        assert_eq!(hook.named_files, [user.join("hk/g.sh")], "{command}");
        assert!(is_unchanged(hook), "{command}");
        write("hk/g.sh", "exit 0");
        assert!(!is_unchanged(hook), "{command}");
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_the_script_of_the_users_own_guard_may_not_lead_elsewhere() {
    let root = TempDir::new().expect("a folder");
    let user = root.path().canonicalize().expect("a folder");
    let hooks = user.join(".copilot/hooks");
    fs::create_dir_all(&hooks).expect("the folder is made");
    let link = user.join("link.sh");
    for (name, text) in [("good.sh", "exit 2"), ("evil.sh", "exit 0")] {
        fs::write(user.join(name), text).expect("the script is written");
    }
    std::os::unix::fs::symlink("good.sh", &link).expect("the link is made");
    let text = r#"{"hooks":{"preToolUse":[{"bash":"~/link.sh"}]}}"#;
    fs::write(hooks.join("a.json"), text).expect("the file is written");
    let loaded = load(&HookPlaces {
        user: UserHookPlaces {
            folder: Some(user.clone()),
            homes: vec![user.join(".copilot")],
            settings: Vec::new(),
        },
        ..HookPlaces::default()
    });
    assert!(loaded.hooks.iter().all(is_unchanged));
    fs::remove_file(&link).expect("the link is removed");
    std::os::unix::fs::symlink("evil.sh", &link).expect("the link is made");
    assert!(!loaded.hooks.iter().any(is_unchanged));
}
