//! Tasks start, get more to do, and leave the list.

use loopd_proto::event::task::TaskOutcome;
use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn a_command_goes_on_in_the_background() {
    check(
        &two_calls(),
        || start_task("sh", shell("sh")),
        "
        answer yes
        store loopd.task_started sh shell
        tell session.background_tasks_changed
        now turn i/0 [a:started b:started] tasks=[sh:running]
        ",
    );
}

#[test]
fn a_task_id_is_used_once_except_for_the_commands_of_a_shell() {
    check(
        &idle().and(task("x", agent("x"))),
        || start_task("x", agent("x")),
        "
        refused there is a task x already; choose another id
        now idle tasks=[x:running]
        ",
    );
    check(
        &idle().and(task("x", agent("x"))),
        || start_task("x", shell("x")),
        "
        refused there is a task x already; choose another id
        now idle tasks=[x:running]
        ",
    );
    check(
        &idle().and(task("sh", shell("sh"))),
        || start_task("sh", agent("sh")),
        "
        refused there is a task sh already; choose another id
        now idle tasks=[sh:running]
        ",
    );
    check(
        &idle().and(task("sh", shell("sh"))).and(task_ended("sh")),
        || start_task("sh", shell("sh")),
        "
        answer yes
        store loopd.task_started sh shell
        tell session.background_tasks_changed
        now idle tasks=[sh:running]
        ",
    );
}

#[test]
fn the_id_of_a_removed_agent_is_accepted_again() {
    let removed = event("loopd.tasks_removed", json!({ "ids": ["x"] }));
    let gone = idle()
        .and(task("x", agent("x")))
        .and(task_ended("x"))
        .and(removed);
    check(
        &gone,
        || start_task("x", agent("x")),
        "
        answer yes
        store loopd.task_started x agent
        store subagent.started call-x explore background
        tell session.background_tasks_changed
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn the_process_of_a_command_is_stored_when_it_is_new() {
    check(
        &idle().and(task("sh", shell("sh"))),
        || task_process("sh", 7),
        "
        store loopd.task_process id=sh pid=7
        tell session.background_tasks_changed
        now idle tasks=[sh:running]
        ",
    );
    let known = idle()
        .and(task("sh", shell("sh")))
        .and(event("loopd.task_process", json!({ "id": "sh", "pid": 7 })));
    ignores(&known, || task_process("sh", 7));
    ignores(&idle().and(task("x", agent("x"))), || task_process("x", 7));
}

#[test]
fn a_sub_agent_that_the_loop_waits_for_can_move_to_the_background() {
    check(
        &two_calls().and(task("x", waited_for("x"))),
        || promote("x"),
        "
        answer yes
        store loopd.task_promoted id=x
        tell session.background_tasks_changed
        now turn i/0 [a:started b:started] tasks=[x:running]
        ",
    );
    declines(&two_calls().and(task("x", agent("x"))), || promote("x"));
    declines(&two_calls(), || promote("x"));
}

#[test]
fn only_an_idle_or_ended_agent_gets_more_to_do() {
    check(
        &idle().and(task("x", agent("x"))).and(task_answered("x")),
        || continue_task("x"),
        "
        answer yes
        store loopd.task_continued x more
        tell session.background_tasks_changed
        now idle tasks=[x:running]
        ",
    );
    check(
        &idle().and(task("x", agent("x"))).and(task_ended("x")),
        || continue_task("x"),
        "
        answer yes
        store loopd.task_continued x more
        tell session.background_tasks_changed
        now idle tasks=[x:running]
        ",
    );
    check(
        &idle().and(task("e", external())).and(task_ended("e")),
        || continue_task("e"),
        "
        answer yes
        store loopd.task_continued e more
        tell session.background_tasks_changed
        now idle tasks=[e:running]
        ",
    );
    declines(&idle().and(task("x", agent("x"))), || continue_task("x"));
    declines(
        &idle().and(task("sh", shell("sh"))).and(task_ended("sh")),
        || continue_task("sh"),
    );
}

#[test]
fn only_external_work_takes_progress_notes() {
    check(
        &idle().and(task("e", external())),
        || note("e"),
        "
        answer yes
        store loopd.task_noted id=e note=half
        tell session.background_tasks_changed
        now idle tasks=[e:running]
        ",
    );
    declines(&idle().and(task("x", agent("x"))), || note("x"));
    declines(
        &idle().and(task("e", external())).and(task_ended("e")),
        || note("e"),
    );
}

#[test]
fn only_a_task_that_does_not_run_is_removed() {
    check(
        &idle().and(task("x", agent("x"))).and(task_answered("x")),
        || remove_task("x"),
        "
        answer yes
        store loopd.tasks_removed ids=[x]
        tell session.background_tasks_changed
        now idle
        ",
    );
    declines(&idle().and(task("x", agent("x"))), || remove_task("x"));
    declines(&idle(), || remove_task("x"));
}

#[test]
fn a_command_of_a_person_is_not_a_tool_call_of_the_model() {
    check(
        &two_calls(),
        || start_user_command("u"),
        "
        answer yes
        store tool.execution_start u bash
        now turn i/0 [a:started b:started]
        ",
    );
    check(
        &two_calls().and(user_command("u")),
        || end_user_command("u", ok()),
        "
        answer yes
        store tool.execution_complete u ok by_user=true
        now turn i/0 [a:started b:started]
        ",
    );
    check(
        &idle().and(user_command("u")),
        || end_user_command("u", failed("broken")),
        r#"
        answer yes
        store tool.execution_complete u broken "it failed" by_user=true
        now idle
        "#,
    );
    declines(&idle(), || end_user_command("u", ok()));
}

#[test]
fn a_shell_that_waits_for_input_is_sent_but_not_stored() {
    check(
        &idle(),
        shell_waits,
        "
        tell loopd.shell_waiting shellId=sh command=make shown=Name:
        now idle
        ",
    );
}

#[test]
fn an_idle_agent_that_is_stopped_makes_no_second_idle_event() {
    check(
        &idle()
            .and(task("x", agent("x")))
            .and(task_answered("x"))
            .and(delivered("x")),
        || end_task("x", TaskOutcome::Cancelled),
        "
        answer yes
        store loopd.task_ended x cancelled \"so it is\"
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=1000 cancelled=true
        store loopd.tasks_heard ids=[x]
        now idle tasks=[x:ended]
        ",
    );
}
