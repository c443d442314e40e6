//! The events about sub-agents for clients, and a copied log that becomes a sub-agent's.

use loopd_proto::event::task::TaskOutcome;

use crate::decide::tests::prelude::*;

#[test]
fn clients_are_told_that_a_sub_agent_begins() {
    check(
        &two_calls(),
        || start_task("x", agent("x")),
        "
        answer yes
        store loopd.task_started x agent
        store subagent.started call-x explore background
        tell session.background_tasks_changed
        now turn i/0 [a:started b:started] tasks=[x:running]
        ",
    );
    check(
        &two_calls(),
        || start_task("x", waited_for("x")),
        "
        answer yes
        store loopd.task_started x agent
        store subagent.started call-x explore sync
        tell session.background_tasks_changed
        now turn i/0 [a:started b:started] tasks=[x:running]
        ",
    );
}

#[test]
fn a_sub_agent_that_no_call_started_is_known_by_its_own_id() {
    check(
        &idle(),
        || start_task_of(None, "x", agent("x")),
        "
        answer yes
        store loopd.task_started x agent
        store subagent.started x explore background
        tell session.background_tasks_changed
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn a_sub_agent_of_a_sub_agent_names_its_parent() {
    check(
        &idle().and(is_subagent(None)),
        || start_task("x", agent("x")),
        "
        answer yes
        store loopd.task_started x agent
        store subagent.started call-x explore parent=me background
        tell session.background_tasks_changed
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn clients_are_told_how_a_sub_agent_ended() {
    let busy = || model_called().and(task("x", agent("x")));
    check(
        &busy(),
        || end_task("x", TaskOutcome::Completed),
        r#"
        answer yes
        store loopd.task_ended x completed "so it is"
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        now turn i/0 model called tasks=[x:ended!]
        "#,
    );
    check(
        &busy(),
        || end_task("x", TaskOutcome::Failed),
        r#"
        answer yes
        store loopd.task_ended x failed "so it is"
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 "so it is"
        now turn i/0 model called tasks=[x:ended!]
        "#,
    );
    check(
        &busy(),
        || end_task("x", TaskOutcome::Cancelled),
        r#"
        answer yes
        store loopd.task_ended x cancelled "so it is"
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000 cancelled=true
        now turn i/0 model called tasks=[x:ended!]
        "#,
    );
    check(
        &busy(),
        || task_answers("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        now turn i/0 model called tasks=[x:idle!]
        ",
    );
}

#[test]
fn the_model_is_notified_of_idle_and_ended_sub_agents() {
    let idle_one = woken().and(task("x", agent("x"))).and(task_answered("x"));
    check(
        &idle_one,
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store system.notification agent_idle x idle
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called tasks=[x:idle]
        ",
    );
    let ended = woken().and(task("x", agent("x"))).and(task_ended("x"));
    check(
        &ended,
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store system.notification agent_completed x completed
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called tasks=[x:ended]
        ",
    );
    let external = woken().and(task("e", external())).and(task_ended("e"));
    check(
        &external,
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store system.notification agent_completed e completed
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called tasks=[e:ended]
        ",
    );
}

#[test]
fn a_copy_has_the_same_short_answer_for_every_open_call() {
    check(
        &two_calls().and(completed("b")),
        || adopt(None),
        "
        store tool.execution_complete a FORKED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store loopd.enlisted top me
        now idle
        ",
    );
    check(
        &two_calls().and(client_asked("a")),
        || adopt(None),
        "
        store tool.execution_complete a FORKED turn=0
        store tool.execution_complete b FORKED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store loopd.enlisted top me
        now idle
        ",
    );
}

#[test]
fn nothing_waits_or_runs_in_a_copy() {
    let full = model_called()
        .and(queued("m2"))
        .and(steering("m3"))
        .and(task("x", agent("x")))
        .and(task("sh", shell("sh")));
    check(
        &full,
        || adopt(None),
        "
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store loopd.unqueued ids=[m2 m3]
        store loopd.tasks_removed ids=[sh x]
        store loopd.enlisted top me
        now idle
        ",
    );
}

#[test]
fn a_copy_can_work_in_another_directory() {
    check(
        &idle(),
        || adopt(Some("/copy")),
        r#"
        store loopd.configured options={"model":"gpt"} workingDirectory=/copy
        store loopd.loop_ended outcome=done
        store loopd.enlisted top me
        now idle
        "#,
    );
}

#[test]
fn a_form_that_was_open_is_not_open_in_a_copy() {
    check(
        &idle().and(elicitation("e")),
        || adopt(None),
        "
        store loopd.loop_ended outcome=done
        store loopd.enlisted top me
        now idle
        ",
    );
}
