//! Files in Copilot's format.

use super::{own, settings};

#[test]
fn a_guard_script() {
    let text = r#"{
  "version": 1,
  "hooks": {
    "preToolUse": [
      { "type": "command", "bash": "./guard.sh", "powershell": "./guard.ps1", "cwd": "scripts", "timeoutSec": 15 }
    ]
  }
}"#;
    assert_eq!(own(text), "5: preToolUse bash `./guard.sh` in scripts 15s");
}

#[test]
fn many_kinds_in_one_file() {
    let text = r#"{"version":1,"hooks":{
"sessionStart":[{"type":"command","bash":"echo started >> log","env":{"LEVEL":"info"}}],
"sessionEnd":[{"bash":"echo ended >> log"}],
"userPromptSubmitted":[{"bash":"./log-prompt.sh"}],
"errorOccurred":[{"bash":"./notify.sh"}],
"agentStop":[{"bash":"./check.sh","timeoutSec":120}]}}"#;
    assert_eq!(
        own(text),
        "2: sessionStart bash `echo started >> log` with {\"LEVEL\": \"info\"}\n\
         3: sessionEnd bash `echo ended >> log`\n\
         4: userPromptSubmitted bash `./log-prompt.sh`\n\
         5: errorOccurred bash `./notify.sh`\n\
         6: agentStop bash `./check.sh` 120s"
    );
}

#[test]
fn command_is_what_bash_runs() {
    let text = r#"{"version":1,"hooks":{"postToolUse":[{"command":"npx prettier --write .","matcher":"edit|create"}]}}"#;
    assert_eq!(
        own(text),
        "1: postToolUse like ^(?:edit|create)$ bash `npx prettier --write .`"
    );
}

#[test]
fn bash_goes_before_command() {
    let text = r#"{"hooks":{"preToolUse":[{"bash":"a","command":"b"}]}}"#;
    assert_eq!(own(text), "1: preToolUse bash `a`");
}

#[test]
fn a_program_without_a_shell() {
    let text = r#"{"version":1,"hooks":{"preToolUse":[{"exec":"python3","args":["guard.py","--strict"]}]}}"#;
    assert_eq!(
        own(text),
        "1: preToolUse program python3 [\"guard.py\", \"--strict\"]"
    );
}

#[test]
fn an_address() {
    let text = r#"{"version":1,"hooks":{"postToolUse":[{"type":"http","url":"https://hooks.example.com/x","headers":{"Authorization":"Bearer $TOKEN"},"allowedEnvVars":["TOKEN"],"timeoutSec":5}]}}"#;
    assert_eq!(
        own(text),
        "1: postToolUse POST https://hooks.example.com/x {\"Authorization\": \"Bearer $TOKEN\"} [\"TOKEN\"] 5s"
    );
}

#[test]
fn an_address_of_this_machine() {
    let text = r#"{"version":1,"hooks":{"notification":[{"type":"http","url":"http://127.0.0.1:8080/n","matcher":"agent_.*"}]}}"#;
    assert_eq!(
        own(text),
        "1: notification like ^(?:agent_.*)$ POST http://127.0.0.1:8080/n {} []"
    );
}

#[test]
fn a_prompt_at_the_start() {
    let text = r#"{"version":1,"hooks":{"sessionStart":[{"type":"prompt","prompt":"/plan look at TODO.md"}]}}"#;
    assert_eq!(own(text), "1: sessionStart prompt `/plan look at TODO.md`");
}

#[test]
fn timeout_is_another_word_for_timeout_sec() {
    let text = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"a","timeout":5},{"bash":"b","timeout":5,"timeoutSec":0.5}]}}"#;
    assert_eq!(
        own(text),
        "1: preToolUse bash `a` 5s\n1: preToolUse bash `b` 500ms"
    );
}

#[test]
fn comments_and_trailing_commas_are_read_over() {
    let text = "{\n  // who may run what\n  \"version\": 1,\n  \"hooks\": {\n    /* two\n       lines */\n    \"preToolUse\": [ { \"bash\": \"./a.sh // no comment\" }, ],\n  },\n}";
    assert_eq!(own(text), "7: preToolUse bash `./a.sh // no comment`");
}

#[test]
fn a_byte_order_mark_is_read_over() {
    assert_eq!(
        own("\u{feff}{\"version\":1,\"hooks\":{\"agentStop\":[{\"bash\":\"x\"}]}}"),
        "1: agentStop bash `x`"
    );
}

#[test]
fn the_file_can_turn_itself_off() {
    let text = r#"{"version":1,"disableAllHooks":true,"hooks":{"preToolUse":[{"bash":"x"}]}}"#;
    assert_eq!(own(text), "1: preToolUse bash `x` off");
}

#[test]
fn settings_can_turn_all_hooks_off() {
    let text = r#"{"model":"gpt-5","disableAllHooks":true,"hooks":{"preToolUse":[{"bash":"x"}]}}"#;
    assert_eq!(
        settings(text),
        "all hooks disabled\n1: preToolUse bash `x` off"
    );
}

#[test]
fn settings_hold_other_things_too() {
    let text = r#"{"theme":"dark","trustedFolders":["/x"],"hooks":{"subagentStart":[{"bash":"x","matcher":"review"}]}}"#;
    assert_eq!(
        settings(text),
        "1: subagentStart like ^(?:review)$ bash `x`"
    );
}

#[test]
fn settings_without_hooks() {
    assert_eq!(settings(r#"{"theme":"dark","hooks":null}"#), "");
    assert_eq!(settings("{}"), "");
}

#[test]
fn a_star_means_every_tool() {
    let text = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"x","matcher":"*"},{"bash":"y","matcher":""}]}}"#;
    assert_eq!(own(text), "1: preToolUse bash `x`\n1: preToolUse bash `y`");
}

#[test]
fn a_kind_that_occurs_twice_counts_twice() {
    let text = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"a"}],"preToolUse":[{"bash":"b"}]}}"#;
    assert_eq!(own(text), "1: preToolUse bash `a`\n1: preToolUse bash `b`");
}

#[test]
fn the_spelling_of_the_kind_selects_the_form() {
    let text = r#"{"version":1,"hooks":{"PreToolUse":[{"bash":"a","matcher":"Bash|Edit"}]}}"#;
    assert_eq!(own(text), "1: PreToolUse for Bash or Edit bash `a`");
}

#[test]
fn a_command_per_system() {
    let text = r#"{"hooks":{"PostToolUse":[{"type":"command","command":"npm run lint","windows":"npm.cmd run lint","linux":"./lint.sh","osx":"./lint.sh"},{"windows":"x.cmd"}]}}"#;
    assert_eq!(
        own(text),
        "1: PostToolUse bash `./lint.sh`\n\
         ! f, line 1: this PostToolUse hook is not used: it has commands for other systems only"
    );
}
