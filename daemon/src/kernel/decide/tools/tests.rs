//! A tool call from its assessment to its one result.

use serde_json::{Value, json};

use crate::kernel::decide::tests::prelude::*;

fn rule(kind: &str, argument: &str) -> Value {
    json!({ "kind": kind, "argument": argument })
}

fn one_call() -> crate::kernel::decide::tests::given::Given {
    calls_started(&["a"])
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
fn a_call_that_cannot_be_made_has_its_result_at_once() {
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
fn what_the_rules_allow_runs() {
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
fn what_the_rules_deny_has_its_result_at_once() {
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
fn what_no_rule_covers_is_asked() {
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
fn nobody_is_asked_when_nobody_answers() {
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
fn a_launch_that_allows_everything_is_not_asked() {
    check(
        &one_call(),
        || needs("a", write("/work/file")).allowing_all(),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
    let denied = permissions(json!({ "denied": [{ "kind": "write", "argument": null }] }));
    check(
        &one_call().and(denied),
        || needs("a", write("/work/file")).allowing_all(),
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
fn a_sub_agent_may_what_its_parents_may() {
    let own = permissions(json!({ "approveAll": true }));
    let subagent = || one_call().and(is_subagent(None)).and(own.clone());
    check(
        &subagent(),
        || needs("a", write("/work/file")).inheriting(json!({})),
        "
        store permission.requested #1 write a prompt=write
        now turn i/0 [a:asking]
        ",
    );
    let all = json!({ "approveAll": true });
    let strict = one_call().and(is_subagent(None));
    check(
        &strict,
        || needs("a", write("/work/file")).inheriting(all.clone()),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn managed_settings_want_a_person() {
    let managed = || {
        permissions(
            json!({ "approveAll": true, "managed": { "ask": [rule("write", "/work/**")] } }),
        )
    };
    check(
        &one_call().and(managed()),
        || needs("a", write("/work/file")),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
    check(
        &one_call().and(managed()),
        || needs("a", write("/work/file")).with_nobody_to_ask(),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn a_client_runs_its_tool() {
    check(
        &two_calls(),
        || call_client(0, "a"),
        "
        store external_tool.requested #1 a edit
        now turn i/0 [a:at a client b:started]
        ",
    );
}

#[test]
fn the_user_is_asked() {
    check(&one_call(), || ask_user(0, "a"), "
        store loopd.asked kind=userinput requestId=#1 question=Which? choices=[left right] allowFreeform=true toolCallId=a
        tell user_input.requested requestId=#1 question=Which? choices=[left right] allowFreeform=true toolCallId=a
        do ask clients #1
        now turn i/0 [a:asking the user]
        ");
}

#[test]
fn a_result_waits_for_the_other_calls() {
    check(
        &two_calls(),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        now turn i/0 [a:done b:started]
        ",
    );
    check(
        &two_calls(),
        || finished(0, "a", failed("broken")),
        r#"
        store tool.execution_complete a broken "it failed" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn the_last_result_moves_the_loop_on() {
    check(
        &two_calls().and(completed("b")),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &one_call(),
        || finished(0, "a", failed_in_other_words()),
        r#"
        store tool.execution_complete a "it failed" broken "for people" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn after_the_last_result_steering_goes_before_the_model() {
    check(
        &one_call().and(steering("m2")).and(queued("m3")),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] into i/0 queue=[m3]
        ",
    );
}

#[test]
fn after_the_last_result_the_model_is_told_of_tasks() {
    let rested = || {
        one_call()
            .and(task("sh", shell("sh")))
            .and(task_ended("sh"))
    };
    check(
        &rested(),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store system.notification shell_completed sh
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called tasks=[sh:ended]
        ",
    );
}

#[test]
fn what_the_result_told_is_not_told_again() {
    let rested = || {
        one_call()
            .and(task("x", agent("x")))
            .and(task_answered("x"))
    };
    check(
        &rested(),
        || finished(0, "a", ok_telling_of("x", 1)),
        "
        store tool.execution_complete a ok turn=0
        store loopd.tasks_heard ids=[x]
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called tasks=[x:idle]
        ",
    );
    // The task came to rest again in between: that is news.
    check(
        &rested(),
        || finished(0, "a", ok_telling_of("x", 0)),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store system.notification agent_idle x
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called tasks=[x:idle]
        ",
    );
}

#[test]
fn a_rejection_ends_the_loop_once_all_calls_are_done() {
    check(
        &one_call(),
        || finished(0, "a", failed("rejected")),
        r#"
        store tool.execution_complete a rejected "it failed" turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
    check(
        &two_calls(),
        || finished(0, "a", failed("rejected")),
        r#"
        store tool.execution_complete a rejected "it failed" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
    check(
        &two_calls().and(rejected("b")),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

#[test]
fn a_report_about_another_turn_changes_nothing() {
    ignores(&one_call(), || needs_nothing("a").of_turn(1));
    ignores(&one_call(), || call_client(1, "a"));
    ignores(&one_call(), || ask_user(1, "a"));
    ignores(&one_call(), || finished(1, "a", ok()));
    ignores(&idle(), || finished(0, "a", ok()));
}

#[test]
fn a_report_about_a_call_that_is_done_or_unknown_changes_nothing() {
    let done = || two_calls().and(completed("a"));
    ignores(&done(), || needs_nothing("a"));
    ignores(&done(), || finished(0, "a", ok()));
    ignores(&done(), || finished(0, "z", ok()));
}

#[test]
fn during_an_abort_every_report_ends_its_call_as_interrupted() {
    check(
        &aborting(),
        || needs_nothing("a"),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || call_client(0, "a"),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || ask_user(0, "a"),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
}

#[test]
fn the_last_report_ends_an_abort() {
    check(
        &aborting().and(completed("b")),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}
