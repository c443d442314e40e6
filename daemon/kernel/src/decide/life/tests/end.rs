//! Suspend and shutdown stop what runs and keep the log.

use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn a_suspended_session_stops_and_keeps_its_queue() {
    check(
        &idle(),
        suspend,
        "
        do cancel turn
        do cancel agents
        now idle
        ",
    );
    check(
        &preparing().and(queued("m2")),
        suspend,
        "
        do cancel turn
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        do cancel agents
        now idle queue=[m1 m2]
        ",
    );
    check(
        &two_calls().and(user_command("u")),
        suspend,
        "
        do cancel turn
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        store tool.execution_complete u interrupted INTERRUPTED by_user=true
        do cancel agents
        now idle
        ",
    );
}

#[test]
fn a_suspended_session_ends_external_work_too() {
    check(
        &idle().and(task("e", external())),
        suspend,
        "
        do cancel turn
        store loopd.task_ended e cancelled CLOSED
        tell session.background_tasks_changed
        do cancel agents
        now idle tasks=[e:ended!]
        ",
    );
}

#[test]
fn a_suspended_session_ends_its_attached_tasks() {
    let tasks = idle()
        .and(task("d", detached("d")))
        .and(task("sh", shell("sh")))
        .and(task("x", agent("x")));
    check(
        &tasks,
        suspend,
        "
        do cancel turn
        store loopd.task_ended sh cancelled CLOSED
        tell session.background_tasks_changed
        store loopd.task_ended x cancelled CLOSED
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000 cancelled=true
        do cancel agents
        now idle tasks=[d:running sh:ended! x:ended!]
        ",
    );
}

#[test]
fn a_shutdown_reports_what_the_session_used() {
    let past = model_called()
        .and(used(1))
        .and(event("assistant.turn_end", json!({ "turnId": "0" })));
    check(
        &past.and(loop_ended("done")),
        shutdown,
        "
        do cancel turn
        do cancel agents
        store session.shutdown routine requests=1 ms=10 calls=1
        now idle closed
        ",
    );
    check(
        &idle(),
        || shutdown_by("disk full"),
        r#"
        do cancel turn
        do cancel agents
        store session.shutdown error error="disk full" requests=0 ms=0
        now idle closed
        "#,
    );
}

#[test]
fn a_shutdown_stops_running_work() {
    check(
        &client_runs().and(task("sh", shell("sh"))),
        shutdown,
        "
        do cancel turn
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        store loopd.task_ended sh cancelled CLOSED
        tell session.background_tasks_changed
        do cancel agents
        store session.shutdown routine requests=1 ms=0
        now idle tasks=[sh:ended!] closed
        ",
    );
}

#[test]
fn a_closed_session_is_not_closed_again() {
    check(
        &closed(),
        shutdown,
        "
        do cancel turn
        do cancel agents
        now idle closed
        ",
    );
}
