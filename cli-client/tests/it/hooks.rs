//! What `loop` says of hooks, guards and plan mode when nobody is at a terminal.

use loopd_sdk::hooks::ToolVerdict;
use loopd_sdk::{Client, Hooks, PermissionDecision, SessionConfig};

use crate::home::Home;

#[test]
fn hooks_of_a_directory_that_is_not_there_are_an_error() {
    let home = Home::new();
    let said = home.run(&["hooks", "nowhere"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("nowhere is no directory"), "{said:?}");
    assert_eq!(home.run(&["hooks"]).code, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn hints_in_plan_mode_are_true() {
    let home = Home::new();
    let said = home.run(&["--mode", "plan", "run python3 -c 1"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("--mode interactive"), "{said:?}");
    assert!(!said.err.contains("--yolo"), "{said:?}");
    let said = home.run(&["--continue", "run python3 -c 1"]);
    assert!(said.err.contains("the session is in plan mode"), "{said:?}");
    assert!(!said.err.contains("--yolo"), "{said:?}");
    let said = home.run(&["--continue", "--mode", "interactive", "run python3 -c 1"]);
    assert!(!said.err.contains("plan mode"), "{said:?}");
    assert!(said.err.contains("--yolo"), "{said:?}");
}

#[test]
fn why_a_guard_failed_is_told_to_the_end() {
    let home = Home::new();
    let folder = home.path("home/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let hooks = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"exit 1"}]}}"#;
    std::fs::write(folder.join("guard.json"), hooks).unwrap();
    let said = home.run(&["--yolo", "run echo x"]);
    let end = r#"set `"onFailure": "continue"` in it to let calls go on when it fails"#;
    assert!(said.err.contains(end), "{said:?}");
}

#[test]
fn nobody_waits_for_an_app_that_is_not_there() {
    let home = Home::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new()
            .client_name("editor")
            .on_permission(|_| async { PermissionDecision::ApproveOnce {} })
            .hooks(Hooks::new().on_pre_tool_use(|_| async { ToolVerdict::no_opinion() }));
        let session = client.create(config).await.unwrap();
        let id = session.id().to_string();
        session.send_and_wait("hello").await.unwrap();
        // The app crashes: it does not leave the session.
        drop(session);
        client.close().await;
        id
    });
    let said = home.run(&["--yolo", "resume", &id, "run touch made"]);
    assert_eq!(said.code, 3, "{said:?}");
    for words in [
        "the app `editor`",
        "the turn was stopped",
        "loop hooks lift",
    ] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    assert!(!home.path("made").exists());
    home.prints(&["hooks", "lift", &id]);
    home.prints(&["--yolo", "resume", &id, "run touch made"]);
    assert!(home.path("made").exists());
}

#[test]
fn the_guards_of_an_app_that_is_attached_are_lifted_only_by_a_flag() {
    let home = Home::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new()
            .client_name("editor")
            .on_permission(|_| async { PermissionDecision::ApproveOnce {} })
            .hooks(Hooks::new().on_pre_tool_use(|_| async { ToolVerdict::no_opinion() }));
        let session = client.create(config).await.unwrap();
        let id = session.id().to_string();
        session.send_and_wait("hello").await.unwrap();
        let lift = |flags: &'static [&'static str]| {
            let args: Vec<&str> = ["hooks", "lift"].iter().chain(flags).copied().collect();
            home.run(&[args.as_slice(), &[id.as_str()]].concat())
        };
        let said = lift(&[]);
        assert_eq!(said.code, 1, "{said:?}");
        for words in ["the app `editor`", "go on guarding", "--attached"] {
            assert!(said.err.contains(words), "{words}: {said:?}");
        }
        let said = lift(&["--attached"]);
        assert_eq!(said.code, 0, "{said:?}");
        let words = "goes on without the hooks of the app `editor`";
        assert!(said.err.contains(words), "{said:?}");
        drop(session);
        client.close().await;
    });
}

#[test]
fn a_model_that_nobody_serves_does_not_stay() {
    let home = Home::new();
    home.prints(&["hello"]);
    let said = home.run(&["--continue", "--model", "gpt-5", "hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    home.prints(&["--continue", "hello"]);
}

fn write_hooks(home: &Home, hooks: &str) {
    let folder = home.path("home/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(r#"{{"version":1,"hooks":{hooks}}}"#);
    std::fs::write(folder.join("guard.json"), text).unwrap();
}

#[test]
fn what_a_hook_says_that_it_does_is_shown() {
    let home = Home::new();
    let progress = r#"echo '{\"type\":\"progress\",\"message\":\"Checking policy\"}'"#;
    write_hooks(
        &home,
        &format!(r#"{{"preToolUse":[{{"bash":"{progress}"}}]}}"#),
    );
    let said = home.run(&["--yolo", "run echo x"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("hook: Checking policy"), "{said:?}");
    assert!(!said.out.contains("Checking policy"), "{said:?}");
}

#[test]
fn a_guard_of_the_user_that_is_gone_is_told_and_given_up_by_the_user_only() {
    let home = Home::new();
    write_hooks(
        &home,
        r#"{"preToolUse":[{"bash":"exit 2","matcher":"bash"}]}"#,
    );
    home.run(&["--yolo", "run touch made"]);
    std::fs::remove_file(home.path("home/hooks/guard.json")).unwrap();
    let said = home.run(&["--yolo", "run touch made"]);
    assert!(
        said.err
            .contains("your guard preToolUse (bash) was changed"),
        "{said:?}"
    );
    assert!(!home.path("made").exists(), "{said:?}");
    let listed = home.run(&["hooks"]);
    assert!(
        listed.out.contains("since loopd last used it"),
        "{listed:?}"
    );
    assert!(listed.out.contains("loop hooks accept"), "{listed:?}");
    let accepted = home.run(&["hooks", "accept"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert!(accepted.err.contains("no longer guards: "), "{accepted:?}");
    home.prints(&["--yolo", "run touch made"]);
    assert!(home.path("made").exists());
}
