//! A new daemon loads a log and closes what ran in the old one.

use crate::decide::tests::prelude::*;

#[test]
fn after_a_crash_an_idle_session_stays_idle() {
    ignores(&idle().and(queued("m1")), recover);
}

#[test]
fn after_a_crash_a_form_is_closed_because_its_asker_is_gone() {
    check(
        &idle().and(elicitation("e")),
        recover,
        "
        store loopd.answered requestId=e
        now idle
        ",
    );
}

#[test]
fn after_a_crash_a_message_that_did_not_reach_the_model_is_queued_again() {
    check(
        &preparing().and(queued("m2")),
        recover,
        "
        store loopd.loop_ended outcome=interrupted
        now idle queue=[m1 m2]
        ",
    );
    check(
        &calls_started(&["a"])
            .and(completed("a"))
            .and(steering("m2"))
            .and(taken(&["m2"])),
        recover,
        "
        store loopd.loop_ended outcome=interrupted
        now idle queue=[m2]
        ",
    );
}

#[test]
fn after_a_crash_a_model_call_or_slash_command_is_interrupted() {
    check(
        &model_called().and(steering("m2")),
        recover,
        "
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle queue=[m2]
        ",
    );
    check(
        &commanding(),
        recover,
        "
        store session.warning warningType=command_failed message=\"The command /deploy failed: it was interrupted, and whether it took effe…\"
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
}

#[test]
fn after_a_crash_open_questions_stay_open() {
    ignores(&asking(), recover);
    ignores(&user_asked(), recover);
    ignores(
        &two_calls().and(client_asked("a")).and(completed("b")),
        recover,
    );
}

#[test]
fn after_a_crash_a_call_that_ran_has_an_unknown_outcome_and_ends_the_turn() {
    check(
        &two_calls(),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store tool.execution_complete b interrupted OUTCOME_UNKNOWN turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle
        ",
    );
}

#[test]
fn after_a_crash_a_question_beside_a_call_that_ran_stays_open() {
    for (asked, stage) in [
        (permission_asked("b", write("/work/file")), "asking"),
        (client_asked("b"), "at a client"),
        (question("b"), "asking the user"),
    ] {
        check(
            &two_calls().and(asked),
            recover,
            &format!(
                "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        now turn i/0 [a:done b:{stage}]
        "
            ),
        );
    }
}

#[test]
fn a_crash_during_an_abort_ends_the_turn() {
    check(
        &aborting(),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store tool.execution_complete b interrupted OUTCOME_UNKNOWN turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
}

#[test]
fn after_a_crash_the_commands_of_people_have_an_unknown_outcome() {
    check(
        &idle().and(user_command("u")),
        recover,
        "
        store tool.execution_complete u interrupted OUTCOME_UNKNOWN by_user=true
        now idle
        ",
    );
}

#[test]
fn after_a_crash_tasks_are_closed_as_their_own_logs_say() {
    let tasks = || idle().and(task("x", agent("x")));
    check(
        &tasks(),
        recover,
        "
        store loopd.task_ended x failed AGENT_LOST
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 AGENT_LOST
        now idle tasks=[x:ended!]
        ",
    );
    check(
        &tasks(),
        || recover_answered("x"),
        "
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        now idle tasks=[x:idle!]
        ",
    );
    check(
        &tasks(),
        || recover_failed("x"),
        r#"
        store loopd.task_ended x failed "no model"
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 "no model"
        now idle tasks=[x:ended!]
        "#,
    );
    check(
        &idle().and(task("sh", shell("sh"))),
        recover,
        "
        store loopd.task_ended sh failed SHELL_LOST
        tell session.background_tasks_changed
        now idle tasks=[sh:ended!]
        ",
    );
}

#[test]
fn work_that_outlives_the_daemon_continues_after_a_crash() {
    ignores(
        &idle()
            .and(task("d", detached("d")))
            .and(task("e", external())),
        recover,
    );
}

#[test]
fn after_a_crash_the_call_that_waited_for_an_agent_tells_how_far_it_got() {
    let waiting = || calls_started(&["call-x"]).and(task("x", waited_for("x")));
    check(
        &waiting(),
        || recover_failed("x"),
        "
        store loopd.task_ended x failed \"no model\"
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 \"no model\"
        store tool.execution_complete call-x interrupted \"The agent x did not finish: no model. It had not said anything yet.\\n\\nwri…\" turn=0
        store loopd.tasks_heard ids=[x]
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle tasks=[x:ended]
        ",
    );
    check(
        &waiting(),
        recover,
        "
        store loopd.task_ended x failed AGENT_LOST
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 AGENT_LOST
        store tool.execution_complete call-x interrupted \"The agent x did not finish: it was interrupted because the daemon stoppe…\" turn=0
        store loopd.tasks_heard ids=[x]
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle tasks=[x:ended]
        ",
    );
}
