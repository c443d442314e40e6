//! An assessed call runs, is refused, or a person is asked.

use serde_json::{Value, json};

use super::one_call;
use crate::decide::tests::prelude::*;

fn rule(kind: &str, argument: &str) -> Value {
    json!({ "kind": kind, "argument": argument })
}

#[test]
fn a_call_that_needs_no_permission_runs() {
    check(
        &one_call(),
        || needs_nothing("a"),
        "
        do run i/0 a
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn a_refused_call_has_its_result_at_once() {
    check(
        &one_call(),
        || refuses("a"),
        r#"
        store tool.execution_complete a invalid "it failed" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    check(
        &two_calls(),
        || refuses("a"),
        r#"
        store tool.execution_complete a invalid "it failed" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn a_call_that_the_rules_allow_runs() {
    let allowed = permissions(json!({ "approved": [{ "kind": "write", "argument": null }] }));
    check(
        &one_call().and(allowed),
        || needs("a", write("/work/file")),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
    let all = permissions(json!({ "approveAll": true }));
    check(
        &one_call().and(all),
        || needs("a", write("/work/file")),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn a_call_that_the_rules_deny_has_its_result_at_once() {
    let denied = || {
        permissions(
            json!({ "denied": [{ "kind": "write", "argument": null }], "approveAll": true }),
        )
    };
    check(
        &one_call().and(denied()),
        || needs("a", write("/work/file")),
        r#"
        store tool.execution_complete a denied "Permission denied by the rule write." turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    let narrow = permissions(json!({ "denied": [rule("write", "/work/secret")] }));
    check(
        &two_calls().and(narrow),
        || needs("a", write("/work/secret/key")),
        r#"
        store tool.execution_complete a denied "Permission denied by the rule write(/work/secret)." turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn a_call_that_no_rule_covers_is_asked_about() {
    check(
        &one_call(),
        || needs("a", write("/work/file")),
        "
        store permission.requested #1 write a prompt=write
        now turn i/0 [a:asking]
        ",
    );
    check(
        &one_call(),
        || needs("a", command_line("make")),
        "
        store permission.requested #1 shell a prompt=commands
        now turn i/0 [a:asking]
        ",
    );
    check(
        &two_calls(),
        || needs("b", fetch("https://example.com")),
        "
        store permission.requested #1 url b prompt=url
        now turn i/0 [a:started b:asking]
        ",
    );
}

#[test]
fn a_call_is_denied_if_no_client_answers_questions() {
    check(
        &one_call(),
        || needs("a", write("/work/file")).with_nobody_to_ask(),
        "
        store tool.execution_complete a denied COULD_NOT_ASK turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_launch_that_allows_everything_asks_nothing() {
    check(
        &one_call().allowing_all(),
        || needs("a", write("/work/file")),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
    let denied = permissions(json!({ "denied": [{ "kind": "write", "argument": null }] }));
    check(
        &one_call().and(denied).allowing_all(),
        || needs("a", write("/work/file")),
        r#"
        store tool.execution_complete a denied "Permission denied by the rule write." turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_sub_agent_has_the_permissions_of_its_parents() {
    let own = permissions(json!({ "approveAll": true }));
    let subagent = || one_call().and(is_subagent(None)).and(own.clone());
    check(
        &subagent().inheriting(&json!({})),
        || needs("a", write("/work/file")),
        "
        store permission.requested #1 write a prompt=write
        now turn i/0 [a:asking]
        ",
    );
    let all = json!({ "approveAll": true });
    let strict = one_call().and(is_subagent(None));
    check(
        &strict.inheriting(&all),
        || needs("a", write("/work/file")),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn managed_settings_require_the_decision_of_a_person() {
    let managed = || {
        permissions(json!({ "approveAll": true, "managed": { "ask": [rule("write", "/work")] } }))
    };
    check(
        &one_call().and(managed()),
        || needs("a", write("/work/file")),
        "
        store permission.requested #1 write a managed=true prompt=write
        now turn i/0 [a:asking]
        ",
    );
    check(
        &one_call().and(managed()),
        || needs("a", write("/work/file")).with_nobody_to_ask(),
        "
        store tool.execution_complete a denied \"Permission denied and could not request permission from user. The settin…\" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_shell_is_opened_ahead_unless_the_call_is_refused() {
    let wants = || needs("a", command_line("make")).wanting_a_shell();
    check(
        &one_call().allowing_all(),
        wants,
        "
        do open shell ahead
        do run i/0 a granted shell
        now turn i/0 [a:started]
        ",
    );
    check(
        &one_call(),
        wants,
        "
        store permission.requested #1 shell a prompt=commands
        do open shell ahead
        now turn i/0 [a:asking]
        ",
    );
    let denied = permissions(json!({ "denied": [{ "kind": "shell", "argument": null }] }));
    check(
        &two_calls().and(denied),
        wants,
        r#"
        store tool.execution_complete a denied "Permission denied by the rule shell." turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
    check(
        &two_calls(),
        || wants().with_nobody_to_ask(),
        "
        store tool.execution_complete a denied COULD_NOT_ASK turn=0
        now turn i/0 [a:done b:started]
        ",
    );
}

#[test]
fn a_permitted_call_of_a_clients_tool_goes_to_the_client() {
    let lookup = || json!({ "kind": "custom-tool", "toolName": "edit", "toolDescription": "" });
    check(
        &one_call().allowing_all(),
        || needs("a", lookup()).of_a_client(),
        "
        store external_tool.requested #1 a edit
        now turn i/0 [a:at a client]
        ",
    );
    check(
        &one_call().and(permission_asked("a", lookup())),
        || permit("r-a", json!({ "kind": "approve-once" })),
        "
        answer yes
        store permission.completed r-a a approved
        store external_tool.requested #1 a edit
        now turn i/0 [a:at a client]
        ",
    );
}

#[test]
fn a_call_ends_if_the_client_of_its_tool_has_left() {
    let lookup = json!({ "kind": "custom-tool", "toolName": "edit", "toolDescription": "" });
    check(
        &two_calls()
            .and(permission_asked("a", lookup))
            .without_client_tools(),
        || permit("r-a", json!({ "kind": "approve-once" })),
        r#"
        answer yes
        store permission.completed r-a a approved
        store tool.execution_complete a failure "The tool 'edit' is no longer available: who provided it has left. Go on …" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}
