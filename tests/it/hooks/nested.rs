//! Guards and rules of a trusted folder hold for sessions below it, also in a repository that somebody
//! made there since.

use std::process::Command;

use loopd_tests::{Daemon, Turn};
use serde_json::json;

use super::edited::trust;
use super::support::{bash, without_hooks};

const HOOKS: &str = r#"{"version":1,"hooks":{"preToolUse":[
{"bash":"if grep -q forbidden; then echo 'not this' >&2; exit 2; fi","matcher":"bash"}]}}"#;

const RULES: &str = r#"{"permissions":{"deny":["Bash(uptime:*)"]}}"#;

#[tokio::test]
async fn a_repository_inside_of_a_trusted_folder_keeps_its_guards_and_rules() {
    let ways = [
        "git init -q sub",
        "mkdir sub/.git",
        "echo 'gitdir: /nowhere' > sub/.git",
        "rm -rf .git",
    ];
    for way in ways {
        let daemon = Daemon::playing([
            Turn::user("go").calls([
                bash("a", "touch forbidden"),
                bash("b", "uptime"),
                bash("c", "touch fine"),
            ]),
            Turn::results(["not this", "denied by the rule", ""]).says("done"),
        ])
        .await;
        let run = |line: &str| {
            let mut command = Command::new("bash");
            let ran = command.args(["-c", line]).current_dir(daemon.work());
            assert!(ran.status().unwrap().success(), "{line}");
        };
        run("git init -q && mkdir -p .github/hooks .claude sub");
        std::fs::write(daemon.file(".github/hooks/guard.json"), HOOKS).unwrap();
        std::fs::write(daemon.file(".claude/settings.json"), RULES).unwrap();
        trust(&daemon.client()).await;
        run(way);
        let mut offer = without_hooks();
        offer["workingDirectory"] = json!(daemon.file("sub"));
        let mut session = daemon.client().create(offer).await;
        session.approve_all().await;
        session.ask("go").await;
        assert!(!daemon.file("sub/forbidden").exists(), "{way}");
        assert!(daemon.file("sub/fine").exists(), "{way}");
        daemon.finish().await;
    }
}
