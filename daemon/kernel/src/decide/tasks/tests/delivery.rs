//! When the model, clients and parents learn that a task ended or became idle.

use loopd_proto::event::task::TaskOutcome;

use serde_json::json;

use crate::command::Step;
use crate::decide::tests::decided;
use crate::decide::tests::prelude::*;

#[test]
fn the_end_of_a_task_wakes_an_idle_session_with_a_client() {
    check(
        &idle().and(task("sh", shell("sh"))),
        || end_task("sh", TaskOutcome::Failed),
        r#"
        answer yes
        store loopd.task_ended sh failed "so it is"
        tell session.background_tasks_changed
        store loopd.woken
        do prepare []
        now preparing [] tasks=[sh:ended!]
        "#,
    );
    check(
        &idle().and(task("sh", shell("sh"))).unattended(),
        || end_task("sh", TaskOutcome::Failed),
        r#"
        answer yes
        store loopd.task_ended sh failed "so it is"
        tell session.background_tasks_changed
        now idle tasks=[sh:ended!]
        "#,
    );
    check(
        &model_called().and(task("sh", shell("sh"))),
        || end_task("sh", TaskOutcome::Failed),
        r#"
        answer yes
        store loopd.task_ended sh failed "so it is"
        tell session.background_tasks_changed
        now turn i/0 model called tasks=[sh:ended!]
        "#,
    );
}

#[test]
fn the_end_of_a_task_wakes_no_session_that_was_woken_as_often_as_it_may_be() {
    let woken_once = || {
        woken()
            .and(loop_ended("done"))
            .and(task("x", agent("x")))
            .waking_up_to(1)
    };
    let told = event(
        "session.warning",
        json!({"warningType": "wake_limit", "message": "enough"}),
    );
    let message = event("user.message", json!({"content": "go on"}));
    for (given, then) in [
        (woken_once(), "tells people, becomes idle"),
        (woken_once().and(told.clone()), "becomes idle"),
        (woken_once().and(told).and(message), "wakes"),
    ] {
        let decision = decided(&given, task_answers("x"));
        let kind = |step: &Step| match step {
            Step::Store(event) => Some(event.kind()),
            Step::Tell(event) => Some(event.kind()),
            Step::Do(_) => None,
        };
        let stores = |name: &str| decision.steps.iter().any(|step| kind(step) == Some(name));
        let mut words = Vec::new();
        words.extend(stores("session.warning").then_some("tells people"));
        words.extend(stores("session.idle").then_some("becomes idle"));
        words.extend(stores("loopd.woken").then_some("wakes"));
        assert_eq!(words.join(", "), then);
    }
}

#[test]
fn an_end_that_the_model_knows_starts_no_loop() {
    check(
        &idle().and(task("sh", shell("sh"))),
        || end_known_task("sh"),
        "
        answer yes
        store loopd.task_ended sh completed exit=0
        tell session.background_tasks_changed
        store loopd.tasks_heard ids=[sh]
        now idle tasks=[sh:ended]
        ",
    );
    check(
        &idle().and(task("sh", shell("sh"))).and(delivered("sh")),
        || end_task("sh", TaskOutcome::Completed),
        r#"
        answer yes
        store loopd.task_ended sh completed "so it is"
        tell session.background_tasks_changed
        store loopd.tasks_heard ids=[sh]
        now idle tasks=[sh:ended]
        "#,
    );
}

#[test]
fn an_end_is_delivered_once() {
    declines(
        &idle().and(task("sh", shell("sh"))).and(task_ended("sh")),
        || end_known_task("sh"),
    );
    declines(&idle(), || end_known_task("sh"));
}

#[test]
fn the_last_sub_agent_lets_the_session_be_idle() {
    let one = || idle().and(task("x", agent("x")));
    check(
        &one(),
        || task_answers_known("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.tasks_heard ids=[x]
        tell session.idle interactive
        now idle tasks=[x:idle]
        ",
    );
    check(
        &one().unattended(),
        || task_answers("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        tell session.idle interactive
        now idle tasks=[x:idle!]
        ",
    );
    check(
        &one().and(task("y", agent("y"))),
        || task_answers_known("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.tasks_heard ids=[x]
        now idle tasks=[x:idle y:running]
        ",
    );
}

#[test]
fn after_an_abort_only_a_parent_is_told_that_the_session_is_idle() {
    let aborted = || {
        idle()
            .and(task("x", waited_for("x")))
            .and(loop_ended("aborted"))
    };
    check(
        &aborted(),
        || end_known_task("x"),
        "
        answer yes
        store loopd.task_ended x completed exit=0
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.tasks_heard ids=[x]
        now idle tasks=[x:ended]
        ",
    );
    check(
        &aborted().and(is_subagent(None)),
        || end_known_task("x"),
        "
        answer yes
        store loopd.task_ended x completed exit=0
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.tasks_heard ids=[x]
        tell session.idle interactive
        now idle tasks=[x:ended]
        ",
    );
}

#[test]
fn an_answer_wakes_the_session_and_the_sub_agent_stays_listed() {
    check(
        &idle().and(task("x", agent("x"))),
        || task_answers("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.woken
        do prepare []
        now preparing [] tasks=[x:idle!]
        ",
    );
    check(
        &model_called().and(task("x", agent("x"))),
        || task_answers_known("x"),
        "
        answer yes
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        store loopd.tasks_heard ids=[x]
        now turn i/0 model called tasks=[x:idle]
        ",
    );
    declines(
        &idle().and(task("x", agent("x"))).and(task_answered("x")),
        || task_answers("x"),
    );
}

#[test]
fn only_what_was_not_delivered_is_marked_as_delivered() {
    let tasks = idle()
        .and(task("x", agent("x")))
        .and(task("y", agent("y")))
        .and(delivered("y"));
    check(
        &tasks,
        || deliver(&["x", "y", "z"]),
        "
        store loopd.tasks_heard ids=[x]
        now idle tasks=[x:running y:running]
        ",
    );
    ignores(&tasks, || deliver(&["y"]));
}
