//! A tool call from its assessment to its only result.

mod verdict;

use serde_json::json;

use crate::command::CallOutcome;
use crate::decide::tests::prelude::*;
use crate::model::ModelMessage;

fn one_call() -> Given {
    calls_started(&["a"])
}

#[test]
fn a_client_runs_its_tool() {
    check(
        &two_calls(),
        || needs_nothing("a").of_a_client(),
        "
        store external_tool.requested #1 a edit
        now turn i/0 [a:at a client b:started]
        ",
    );
}

#[test]
fn the_user_is_asked() {
    check(&one_call(), || asks_the_user("a"), "
        store loopd.asked kind=userinput requestId=#1 question=Which? choices=[left right] allowFreeform=true toolCallId=a
        tell user_input.requested requestId=#1 question=Which? choices=[left right] allowFreeform=true toolCallId=a
        do ask clients #1
        now turn i/0 [a:asking the user]
        ");
}

#[test]
fn a_result_does_not_move_the_loop_on_while_other_calls_are_open() {
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
fn a_task_end_that_a_result_delivered_is_not_delivered_again() {
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
    // The task became idle again in between, and the model does not know that yet.
    check(
        &rested(),
        || finished(0, "a", ok_telling_of("x", 0)),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store system.notification agent_idle x idle
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
    ignores(&one_call(), || needs_nothing("a").of_a_client().of_turn(1));
    ignores(&one_call(), || asks_the_user("a").of_turn(1));
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
        || needs_nothing("a").of_a_client(),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || asks_the_user("a"),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || finished(0, "a", failed("failure")),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
}

#[test]
fn during_an_abort_a_result_tells_what_the_tool_has() {
    check(
        &aborting(),
        || finished(0, "a", CallOutcome::interrupted("half of it\n")),
        "
        store tool.execution_complete a interrupted \"The execution of this tool, or a previous tool was interrupted. This is …\" turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || finished(0, "a", CallOutcome::interrupted("")),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
    check(
        &aborting(),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a interrupted \"The execution of this tool, or a previous tool was interrupted. This cal…\" turn=0
        now turn i/0 [a:done b:started] aborting
        ",
    );
}

#[test]
fn the_last_report_ends_an_abort() {
    check(
        &aborting().and(completed("b")),
        || finished(0, "a", failed("failure")),
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

#[test]
fn changed_arguments_run_and_enter_the_history() {
    let changed = json!({ "path": "/work/other" });
    let intent = event(
        "tool.execution_start",
        json!({ "toolCallId": "a", "toolName": "edit", "arguments": changed, "turnId": "0" }),
    );
    let request = json!({ "toolCallId": "a", "name": "edit", "arguments": { "path": "/work/file" },
        "type": "function" });
    let said = event(
        "assistant.message",
        json!({ "messageId": "reply", "content": "", "toolRequests": [request] }),
    );
    let given = model_called().and(said).and(intent);
    let state = given.state();
    let arguments: Vec<_> = state.calls().map(|it| &it.call.arguments).collect();
    assert_eq!(arguments, [&changed], "what the tool is given");
    let told = crate::context::messages(&state).into_iter();
    let told = told.filter_map(|message| match message {
        ModelMessage::Assistant(said) => Some(said.calls),
        ModelMessage::System(_) | ModelMessage::User(_) | ModelMessage::ToolResult { .. } => None,
    });
    let told: Vec<_> = told.flatten().map(|call| call.arguments).collect();
    assert_eq!(told, [changed], "what the model is told that it asked for");
}
