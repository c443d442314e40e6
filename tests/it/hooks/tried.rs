//! `loopd.hooks.test`: a person runs the hooks of a file once.

use loopd_tests::{Daemon, Script};
use serde_json::json;

#[tokio::test]
async fn the_hooks_of_a_file_are_run_with_made_up_values() {
    let daemon = Daemon::with(Script::play([]).await).await;
    let client = daemon.client();
    let file = json!({"version": 1, "hooks": {
        "preToolUse": [
            {"bash": "cat > told; echo '{\"permissionDecision\":\"deny\"}'"},
            {"bash": "echo half; exit 3"},
        ],
        "agentStop": [{"bash": "touch stopped"}],
    }});
    std::fs::write(daemon.file("hooks.json"), file.to_string()).unwrap();
    let params = json!({"file": "hooks.json", "event": "preToolUse", "cwd": daemon.work()});
    let tested = client.call("loopd.hooks.test", params).await;
    let hooks = tested["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 2, "{tested}");
    assert_eq!(hooks[0]["output"], json!({"permissionDecision": "deny"}));
    assert_eq!(hooks[1]["error"], "it ended with exit code 3", "{tested}");
    assert_eq!(hooks[0]["effect"], "denies the call: No reason provided");
    let effect = hooks[1]["effect"].as_str().unwrap();
    assert!(
        effect.starts_with("denies the call, because the hook failed"),
        "{effect}"
    );
    let told = std::fs::read_to_string(daemon.file("told")).unwrap();
    assert!(told.contains("\"toolName\":\"bash\""), "{told}");
    assert!(!daemon.file("stopped").exists());

    let unknown = json!({"file": "hooks.json", "event": "preToolUsed"});
    let refused = client.refused("loopd.hooks.test", unknown).await;
    assert!(refused.message.contains("preToolUse"), "{refused:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_hook_would_do_is_said() {
    let daemon = Daemon::with(Script::play([]).await).await;
    let client = daemon.client();
    let file = json!({"version": 1, "hooks": {
        "preToolUse": [{"bash": "echo secret file >&2; exit 2"}, {"bash": "true"},
                       {"bash": "exit 1", "onFailure": "continue"}],
        "agentStop": [{"bash": "echo '{\"decision\":\"block\",\"reason\":\"run the tests\"}'"}],
        "userPromptSubmitted": [{"bash": "echo '{\"decision\":\"block\",\"reason\":\"no\"}'"}],
        "subagentStart": [{"bash": "echo '{\"continue\":false}'"}],
        "postToolUse": [{"bash": "echo '{\"suppressOutput\":true}'"}],
    }});
    std::fs::write(daemon.file("hooks.json"), file.to_string()).unwrap();
    for (event, effects) in [
        (
            "preToolUse",
            json!(["denies the call: secret file", null, null]),
        ),
        (
            "agentStop",
            json!(["keeps the agent from ending; its next input: run the tests"]),
        ),
        ("userPromptSubmitted", json!(["keeps the prompt back: no"])),
        (
            "subagentStart",
            json!(["lets nothing begin, without a reason"]),
        ),
        ("postToolUse", json!(["keeps the output back"])),
    ] {
        let params = json!({"file": "hooks.json", "event": event, "cwd": daemon.work()});
        let tested = client.call("loopd.hooks.test", params).await;
        let hooks = tested["hooks"].as_array().unwrap();
        let said: Vec<_> = hooks.iter().map(|hook| hook["effect"].clone()).collect();
        assert_eq!(json!(said), effects, "{tested}");
    }
    daemon.finish().await;
}
