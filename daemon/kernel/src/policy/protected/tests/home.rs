//! A home of the daemon that is not named `.loopd`.

use super::*;
use crate::policy::Whereabouts;

fn judged(home: &str, cwd: &str, request: &PermissionRequest) -> Verdict {
    let permitted = Permissions {
        unrestricted_paths: true,
        ..permissions(&["write", "shell"])
    };
    let at = Whereabouts {
        cwd,
        home: Some(home),
    };
    judge(&permitted, at, request)
}

#[test]
fn writing_into_the_home_is_asked_about() {
    let home = "/data/state/daemon";
    for file in [
        "/data/state/daemon/config.toml",
        "/data/state/daemon/session-state/1/plan.md",
        "/data/state/x/../daemon/loopd.sqlite",
        "/data/state/daemon",
    ] {
        let request = write(file, &[]);
        assert_eq!(judged(home, "/project", &request), Verdict::Ask, "{file}");
    }
    for file in [
        "/data/state/daemons/config.toml",
        "/data/state/config.toml",
        "/project/daemon/config.toml",
    ] {
        let request = write(file, &[]);
        assert_eq!(judged(home, "/project", &request), Verdict::Allow, "{file}");
    }
}

#[test]
fn a_command_that_writes_into_the_home_is_asked_about() {
    let home = "/data/state/daemon";
    let mut wrong = Vec::new();
    for line in [
        "echo x > /data/state/daemon/config.toml",
        "echo x > ../data/state/daemon/config.toml",
        "cd /data/state && echo x > daemon/config.toml",
        "cd /data/state/daemon && echo x > config.toml",
        "cd /data; cd state; rm daemon/loopd.sqlite",
        "echo x > ~/daemon/config.toml",
        "cd ~ && echo x > daemon/config.toml",
        "echo x > \"$X/state/daemon/config.toml\"",
        "echo x > $LOOPD_HOME/config.toml",
        "cp a /data/state/daemon",
        "sh -c 'rm /data/state/daemon/loopd.sqlite'",
        "python3 -c \"open('/data/state/daemon/config.toml', 'w')\"",
    ] {
        let verdict = judged(home, "/project", &shell_request(line));
        if verdict != Verdict::Ask {
            wrong.push((line, verdict));
        }
    }
    for line in [
        "cat /data/state/daemon/config.toml",
        "echo x > daemon/config.toml",
        "cd daemon && make",
        "echo x > $OUT/log",
        "cargo build > out",
    ] {
        let verdict = judged(home, "/project", &shell_request(line));
        if verdict != Verdict::Allow {
            wrong.push((line, verdict));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_session_that_works_in_the_home_may_write_in_its_own_directory() {
    let (home, tree) = ("/data/state/daemon", "/data/state/daemon/worktrees/1");
    let own = write("/data/state/daemon/worktrees/1/src/lib.rs", &[]);
    assert_eq!(judged(home, tree, &own), Verdict::Allow);
    let other = write("/data/state/daemon/worktrees/2/src/lib.rs", &[]);
    assert_eq!(judged(home, tree, &other), Verdict::Ask);
    let line = shell_request("echo x > src/lib.rs");
    assert_eq!(judged(home, tree, &line), Verdict::Allow);
    let line = shell_request("echo x > ../2/src/lib.rs");
    assert_eq!(judged(home, tree, &line), Verdict::Ask);
}
