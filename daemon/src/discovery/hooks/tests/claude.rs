//! Files in Claude's format.

use super::{own, settings};

#[test]
fn a_group_with_a_matcher() {
    let text = r#"{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh" }
        ]
      }
    ]
  }
}"#;
    assert_eq!(
        settings(text),
        "7: PreToolUse for Bash bash `\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh`"
    );
}

#[test]
fn several_groups_and_hooks() {
    let text = r#"{"permissions":{"allow":["Bash(ls:*)"]},"hooks":{
"PostToolUse":[
 {"matcher":"Edit|Write","hooks":[{"type":"command","command":"prettier"},{"type":"command","command":"eslint","timeout":60}]},
 {"matcher":"mcp__.*","hooks":[{"type":"command","command":"log"}]}],
"Stop":[{"hooks":[{"type":"command","command":"say done"}]}],
"UserPromptSubmit":[{"hooks":[{"type":"command","command":"date"}]}]}}"#;
    assert_eq!(
        settings(text),
        "3: PostToolUse for Edit or Write bash `prettier`\n\
         3: PostToolUse for Edit or Write bash `eslint` 60s\n\
         4: PostToolUse like ^(?:mcp__.*)$ bash `log`\n\
         5: Stop bash `say done`\n\
         6: UserPromptSubmit bash `date`"
    );
}

#[test]
fn arguments_make_a_program() {
    let text = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"node","args":["a.js"]}]}]}}"#;
    assert_eq!(settings(text), "1: PreToolUse program node [\"a.js\"]");
}

#[test]
fn a_condition_on_the_call() {
    let text = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x","if":"Bash(git push *)"}]}]}}"#;
    assert_eq!(
        settings(text),
        "1: PreToolUse for Bash if Bash git push * bash `x`"
    );
}

#[test]
fn what_failure_means() {
    let text = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x","onFailure":"continue"},{"type":"command","command":"y","onFailure":"block"}]}]}}"#;
    assert_eq!(
        settings(text),
        "1: PreToolUse bash `x` on failure Continue\n1: PreToolUse bash `y` on failure Block"
    );
}

#[test]
fn in_the_background_and_once() {
    let text = r#"{"hooks":{"SessionStart":[{"matcher":"startup","hooks":[{"type":"command","command":"x","async":true,"once":true,"statusMessage":"warming up"}]}]}}"#;
    assert_eq!(
        settings(text),
        "1: SessionStart for startup bash `x` in background once"
    );
}

#[test]
fn notifications_and_agents_have_matchers() {
    let text = r#"{"hooks":{
"Notification":[{"matcher":"permission_prompt","hooks":[{"type":"command","command":"a"}]}],
"SubagentStop":[{"matcher":"code-review","hooks":[{"type":"command","command":"b"}]}],
"PreCompact":[{"matcher":"auto","hooks":[{"type":"command","command":"c"}]}],
"SessionEnd":[{"matcher":"clear|logout","hooks":[{"type":"command","command":"d"}]}]}}"#;
    assert_eq!(
        settings(text),
        "2: Notification for permission_prompt bash `a`\n\
         3: SubagentStop for code-review bash `b`\n\
         4: PreCompact for auto bash `c`\n\
         5: SessionEnd for clear or logout bash `d`"
    );
}

#[test]
fn an_address() {
    let text = r#"{"hooks":{"PermissionRequest":[{"matcher":"*","hooks":[{"type":"http","url":"https://guard.example.com"}]}]}}"#;
    assert_eq!(
        settings(text),
        "1: PermissionRequest POST https://guard.example.com {} []"
    );
}

#[test]
fn groups_and_plain_hooks_in_one_list() {
    let text = r#"{"hooks":{"Stop":[{"bash":"a"},{"hooks":[{"command":"b"}]}]}}"#;
    assert_eq!(own(text), "1: Stop bash `a`\n1: Stop bash `b`");
}

#[test]
fn a_file_of_a_plugin() {
    let text = r#"{"description":"Formats code","hooks":{"PostToolUse":[{"matcher":"Write","hooks":[{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/format.sh"}]}]}}"#;
    assert_eq!(
        own(text),
        "1: PostToolUse for Write bash `${CLAUDE_PLUGIN_ROOT}/format.sh`"
    );
}
