//! Commands of files as hooks: how each way to end is read, and what they leave behind.

use std::time::{Duration, Instant};

use loopd_tests::{Daemon, Latch, Lifeline, Script, Session, Turn};
use serde_json::{Value, json};

use super::support::{bash, end_of, one_call, warning, with_files};

/// The same command as a guard, in Copilot's and in Claude's format.
fn both(script: &str, seconds: u64) -> [Value; 2] {
    let command = json!({"type": "command", "command": script, "timeout": seconds});
    [
        json!({"preToolUse": [{"bash": script, "timeoutSec": seconds}]}),
        json!({"PreToolUse": [{"matcher": "Bash", "hooks": [command]}]}),
    ]
}

/// Plays one call that a hook guards; returns how it ended.
async fn guarded(hooks: &Value) -> (Daemon, Session, Value) {
    let (daemon, mut session) =
        with_files(hooks.clone(), one_call(bash("c", "touch made"), "")).await;
    session.approve_all().await;
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    session.next("session.idle").await;
    (daemon, session, end)
}

#[tokio::test]
async fn a_guard_that_ends_in_any_other_way_than_well_denies() {
    let table = [
        (
            "echo broken >&2; exit 1",
            "it ended with exit code 1: broken",
        ),
        ("kill -9 $$", "it was killed by signal 9"),
        (
            "printf '{\"permissionDecision\":'",
            "its answer is not one JSON object",
        ),
        ("echo all is well", "its answer is not one JSON object"),
        ("echo '[]'", "its answer is not one JSON object"),
        (
            "echo '{\"permissionDecision\":\"yes\"}'",
            "its `permissionDecision` is `yes`",
        ),
        ("no-such-program-at-all", "it ended with exit code 127"),
        ("sleep 600", "it did not end within 1 s"),
        (
            "trap '' TERM INT HUP; while :; do sleep 1; done",
            "it did not end within 1 s",
        ),
    ];
    for (script, cause) in table {
        for hooks in both(script, 1) {
            let (daemon, _, end) = guarded(&hooks).await;
            assert_eq!(end["success"], false, "{script}: {end}");
            assert_eq!(end["error"]["code"], "denied", "{script}: {end}");
            let message = end["error"]["message"].as_str().unwrap();
            for part in [cause, "onFailure", "test.json:"] {
                assert!(message.contains(part), "{script}: {message}");
            }
            let told = daemon.script().last_request().last_results().concat();
            assert!(told.contains(cause), "{script}: {told}");
            assert!(!daemon.file("made").exists(), "{script}");
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_guard_says_no_by_exit_code_2_or_by_its_answer() {
    let deny = r#"{"permissionDecision":"deny","permissionDecisionReason":"no way"}"#;
    let claude = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no way"}}"#;
    let scripts = [
        "echo no way >&2; exit 2".to_owned(),
        "echo no way; exit 2".to_owned(),
        format!("printf '{deny}'"),
        format!("echo '{claude}'"),
        // Its streams are closed long before it decides.
        "exec >&- 2>&-; sleep 0.8; exit 2".to_owned(),
        // Nobody reads the input.
        format!("exec <&-; printf '{deny}'"),
    ];
    for script in &scripts {
        for hooks in both(script, 20) {
            let (daemon, _, end) = guarded(&hooks).await;
            assert_eq!(end["error"]["code"], "denied", "{script}: {end}");
            let told = daemon.script().last_request().last_results().concat();
            assert!(told.starts_with("Denied by preToolUse hook: "), "{told}");
            let reason = if script.contains("no way") {
                "no way"
            } else {
                "No reason"
            };
            assert!(told.contains(reason), "{script}: {told}");
            assert!(!daemon.file("made").exists(), "{script}");
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_guard_that_ends_well_lets_the_call_go_on() {
    let big = format!("touch made # {}", "x".repeat(100 * 1024));
    for script in ["true", "exit 0", "echo '{}'", "exec <&-", "cat > /dev/null"] {
        for hooks in both(script, 20) {
            let (daemon, mut session) =
                with_files(hooks.clone(), one_call(bash("c", &big), "")).await;
            session.approve_all().await;
            session.send("go").await;
            let end = end_of(&mut session, "c").await;
            assert_eq!(end["success"], true, "{script}: {end}");
            session.next("session.idle").await;
            assert!(daemon.file("made").exists(), "{script}");
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_guard_that_allows_answers_for_the_person() {
    let claude = r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#;
    for script in [
        r#"echo '{"permissionDecision":"allow"}'"#,
        &format!("echo '{claude}'"),
    ] {
        for hooks in both(script, 20) {
            let turns = one_call(bash("c", "touch made"), "");
            let (daemon, mut session) = with_files(hooks.clone(), turns).await;
            session.ask("go").await;
            assert_eq!(session.count("permission.requested"), 0);
            assert!(daemon.file("made").exists());
            daemon.finish().await;
        }
    }
}

/// The most memory that this process ever used, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let line = line.unwrap().trim().trim_end_matches(" kB");
    line.parse().unwrap()
}

#[tokio::test]
async fn a_guard_that_floods_is_killed_and_takes_no_memory() {
    let flood = "head -c 100000000 /dev/zero | tr '\\0' a";
    for script in [flood.to_owned(), format!("({flood}) >&2"), "yes".to_owned()] {
        for hooks in both(&script, 60) {
            let before = peak();
            let began = Instant::now();
            let (daemon, _, end) = guarded(&hooks).await;
            let message = end["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("it printed more than 1048576 bytes"),
                "{message}"
            );
            assert!(began.elapsed() < Duration::from_secs(10));
            assert!(!daemon.file("made").exists());
            let taken = peak() - before;
            // The daemon itself takes some of it; a flood that is kept would take 100 MB.
            assert!(taken < 60 * 1024, "{taken} KiB for {script}");
            daemon.finish().await;
        }
    }
}

fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[tokio::test]
async fn what_a_hook_leaves_running_ends_with_it_and_does_not_hold_it_up() {
    let deny = r#"{"permissionDecision":"deny","permissionDecisionReason":"no way"}"#;
    let leaves = "sleep 600 & echo $! > left; disown";
    let daemonises = "setsid sleep 600 & echo $! > left";
    for script in [leaves, daemonises] {
        for (answer, success) in [
            ("true".to_owned(), true),
            (format!("printf '{deny}'"), false),
        ] {
            for hooks in both(&format!("{script}; {answer}"), 60) {
                let began = Instant::now();
                let (daemon, _, end) = guarded(&hooks).await;
                assert_eq!(end["success"], success, "{script} {answer}: {end}");
                assert!(began.elapsed() < Duration::from_secs(10), "{script}");
                let left = std::fs::read_to_string(daemon.file("left")).unwrap();
                assert!(!is_alive(&left), "{script} left {left}");
                daemon.finish().await;
            }
        }
    }
}

#[tokio::test]
async fn a_file_can_let_calls_go_on_when_its_guard_fails_but_not_when_it_says_no() {
    for (script, success) in [("exit 1", true), ("sleep 600", true), ("exit 2", false)] {
        let hook = json!({"bash": script, "timeoutSec": 1, "onFailure": "continue"});
        let hooks = json!({"preToolUse": [hook]});
        let turns = one_call(bash("c", "touch made"), "");
        let (daemon, mut session) = with_files(hooks, turns).await;
        session.approve_all().await;
        session.send("go").await;
        if success {
            let told = warning(&mut session, "hook_failed").await;
            assert!(told.contains("test.json:"), "{told}");
        }
        let end = end_of(&mut session, "c").await;
        assert_eq!(end["success"], success, "{script}: {end}");
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_command_is_told_of_the_call_in_its_own_format_and_sees_no_key() {
    let script = "cat > payload; env > seen; pwd > folder";
    let [native, claude] = both(script, 20);
    for (hooks, name, arguments) in [
        (native, "toolName", "toolArgs"),
        (claude, "tool_name", "tool_input"),
    ] {
        let (daemon, session, end) = guarded(&hooks).await;
        assert_eq!(end["success"], true, "{end}");
        let read = |name: &str| std::fs::read_to_string(daemon.file(name)).unwrap();
        let payload: Value = serde_json::from_str(&read("payload")).unwrap();
        let tool = if name == "toolName" { "bash" } else { "Bash" };
        assert_eq!(payload[name], tool, "{payload}");
        assert_eq!(payload[arguments]["command"], "touch made");
        let id = payload.get("sessionId").or(payload.get("session_id"));
        assert_eq!(id, Some(&json!(session.id)));
        let env = read("seen");
        assert!(env.contains("CLAUDE_PROJECT_DIR="), "{env}");
        assert!(
            !env.contains("sk-hidden") && !env.contains("secret-key"),
            "{env}"
        );
        let work = daemon.work().canonicalize().unwrap();
        assert_eq!(read("folder").trim(), work.to_str().unwrap());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn progress_lines_are_shown_and_are_no_part_of_the_answer() {
    let script = r#"echo '{"type":"progress","message":"half way","temporary":true}'
        echo '{"permissionDecision":"deny","permissionDecisionReason":"no way"}'"#;
    let mut hooks = both(script, 20)[0].clone();
    hooks["preToolUse"][0]["statusMessage"] = "looking".into();
    let (daemon, session, end) = guarded(&hooks).await;
    assert_eq!(end["error"]["code"], "denied");
    let events = session.events();
    let shown = events.iter().filter(|it| it["type"] == "hook.progress");
    let shown: Vec<&Value> = shown.map(|event| &event["data"]["message"]).collect();
    assert_eq!(shown, ["looking", "half way"]);
    daemon.finish().await;
}

#[tokio::test]
async fn nobody_waits_for_a_hook_in_the_background() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let script = format!("{}; echo $line > ended; exit 2", latch.wait());
    let hook = json!({"bash": script, "async": true, "timeoutSec": 60});
    let (daemon, _, end) = guarded(&json!({"preToolUse": [hook]})).await;
    assert_eq!(end["success"], true, "{end}");
    assert!(!daemon.file("ended").exists());
    latch.release("later").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_in_the_background_ends_with_its_session() {
    let folder = tempfile::TempDir::new().unwrap();
    let lifeline = Lifeline::new(folder.path());
    let hook = json!({"bash": lifeline.command(), "async": true});
    let (daemon, session, _) = guarded(&json!({"preToolUse": [hook]})).await;
    let alive = lifeline.started().await;
    session.destroy().await;
    alive.ended().await;
    daemon.finish().await;
}

/// An abort does not wait for a hook, and the hook does not outlive it.
#[tokio::test]
async fn an_abort_ends_the_command_of_a_hook() {
    for kind in [
        "preToolUse",
        "postToolUse",
        "permissionRequest",
        "userPromptSubmitted",
        "agentStop",
        "errorOccurred",
    ] {
        let folder = tempfile::TempDir::new().unwrap();
        let lifeline = Lifeline::new(folder.path());
        let mut hooks = json!({});
        hooks[kind] = json!([{"bash": lifeline.command(), "timeoutSec": 600}]);
        let script = Script::answering(move |_| match kind {
            "agentStop" => Turn::any().says("done"),
            "errorOccurred" => Turn::any().fails(400, "no"),
            _ => Turn::any().calls([bash("c", "true")]),
        });
        let daemon = Daemon::with(script.await).await;
        super::support::write_hooks(&daemon, &hooks);
        let offer = json!({"requestPermission": true});
        let mut session = daemon.client().create(offer).await;
        if kind != "permissionRequest" {
            session.approve_all().await;
        }
        session.send("go").await;
        let alive = lifeline.started().await;
        session.call("session.abort", json!({})).await;
        session.next("session.idle").await;
        alive.ended().await;
        daemon.finish().await;
    }
}
