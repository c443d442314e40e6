//! Abort stops the turn at any point, empties the queue, and leaves every call with one result.

use crate::decide::tests::prelude::*;

#[test]
fn aborting_an_idle_session_changes_nothing() {
    check(
        &idle().and(queued("m2")),
        abort,
        "
        answer no
        now idle queue=[m2]
        ",
    );
    check(
        &closed(),
        abort,
        "
        answer no
        now idle closed
        ",
    );
}

#[test]
fn an_abort_ends_the_wait_for_agents_in_the_background() {
    check(
        &idle().and(task("x", agent("x"))),
        abort,
        "
        answer no
        tell session.idle aborted=true interactive
        now idle tasks=[x:running]
        ",
    );
    check(
        &idle()
            .and(task("x", agent("x")))
            .and(task_answered("x"))
            .and(delivered("x")),
        abort,
        "
        answer no
        now idle tasks=[x:idle]
        ",
    );
}

#[test]
fn a_message_that_is_being_prepared_enters_the_history_without_an_answer() {
    check(
        &preparing(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store user.message m1 queued
        store loopd.unqueued ids=[m1]
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn an_abort_ends_a_slash_command() {
    check(
        &commanding(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn a_woken_session_becomes_idle_and_the_model_is_notified_later() {
    check(
        &woken().and(task("sh", shell("sh"))).and(task_ended("sh")),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle tasks=[sh:ended!]
        ",
    );
}

#[test]
fn an_abort_ends_a_model_call() {
    check(
        &model_called(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn an_abort_empties_the_queue() {
    check(
        &model_called()
            .and(queued("m2"))
            .and(queued_command("c1"))
            .and(steering("m3")),
        abort,
        "
        answer yes removed=[m3 m2 c1]
        store abort reason=user_initiated removed=[m3 m2 c1]
        do cancel turn
        store loopd.unqueued ids=[m3 m2 c1]
        tell pending_messages.modified
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn running_calls_get_a_grace_time() {
    check(
        &two_calls().and(completed("b")),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        do start grace i/0
        now turn i/0 [a:started b:done] aborting
        ",
    );
}

#[test]
fn calls_that_wait_for_a_client_end_at_once() {
    check(
        &asking(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store permission.completed r-a a cancelled
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &client_runs(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &user_asked(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store loopd.answered requestId=r-a
        do withdraw r-a
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
fn a_waiting_call_ends_and_a_running_one_gets_a_grace_time() {
    check(
        &two_calls().and(client_asked("a")),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        do start grace i/0
        now turn i/0 [a:done b:started] aborting
        ",
    );
}

#[test]
fn a_second_abort_changes_nothing() {
    check(
        &aborting(),
        abort,
        "
        answer yes
        now turn i/0 [a:started b:started] aborting
        ",
    );
}

#[test]
fn working_sub_agents_do_not_delay_the_idle_event() {
    check(
        &model_called().and(task("x", agent("x"))),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn after_the_grace_time_open_calls_are_interrupted() {
    check(
        &aborting(),
        || grace_over(0),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &aborting().and(completed("b")),
        || grace_over(0),
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
fn the_grace_time_of_another_turn_or_without_an_abort_changes_nothing() {
    ignores(&aborting(), || grace_over(1));
    ignores(&two_calls(), || grace_over(0));
    ignores(&idle(), || grace_over(0));
}

#[test]
fn a_message_sent_during_the_abort_is_taken_when_the_grace_time_ends() {
    check(
        &aborting().and(queued("m2")),
        || grace_over(0),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    check(
        &aborting().and(steering("m2")),
        || grace_over(0),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
}

#[test]
fn a_second_abort_drops_the_messages_sent_since_the_first() {
    check(
        &aborting().and(queued("m2")).and(steering("m3")),
        abort,
        "
        answer yes removed=[m3 m2]
        store loopd.unqueued ids=[m3 m2]
        tell pending_messages.modified
        now turn i/0 [a:started b:started] aborting
        ",
    );
}

/// A turn of client `a` with a steering message of `b`, and messages of both in the queue.
fn of_two_clients() -> Given {
    idle()
        .and(queued_by("a", "m1"))
        .and(taken(&["m1"]))
        .and(turn_started(0))
        .and(steering_by("b", "m2"))
        .and(queued_by("a", "m3"))
        .and(queued_by("b", "m4"))
}

#[test]
fn a_client_drops_its_own_messages_and_those_of_others_run_next() {
    check(
        &of_two_clients(),
        || abort_by("a"),
        "
        answer yes removed=[m3]
        store abort reason=user_initiated by=a removed=[m3]
        do cancel turn
        store loopd.unqueued ids=[m3]
        tell pending_messages.modified
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] queue=[m4]
        ",
    );
    check(
        &of_two_clients(),
        || abort_by("b"),
        "
        answer yes removed=[m2 m4]
        store abort reason=user_initiated by=b removed=[m2 m4]
        do cancel turn
        store loopd.unqueued ids=[m2 m4]
        tell pending_messages.modified
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        store loopd.taken ids=[m3]
        tell pending_messages.modified
        do prepare [m3]
        now preparing [m3]
        ",
    );
}

#[test]
fn messages_of_unknown_senders_are_dropped_by_any_client() {
    check(
        &model_called().and(queued("m2")),
        || abort_by("a"),
        "
        answer yes removed=[m2]
        store abort reason=user_initiated by=a removed=[m2]
        do cancel turn
        store loopd.unqueued ids=[m2]
        tell pending_messages.modified
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn a_second_abort_drops_only_its_callers_messages() {
    check(
        &aborting()
            .and(queued_by("a", "m2"))
            .and(queued_by("b", "m3")),
        || abort_by("a"),
        "
        answer yes removed=[m2]
        store loopd.unqueued ids=[m2]
        tell pending_messages.modified
        now turn i/0 [a:started b:started] aborting queue=[m3]
        ",
    );
}

#[test]
fn an_interrupt_can_keep_what_waits() {
    check(
        &of_two_clients(),
        || interrupt_keeping("a"),
        "
        answer yes
        store abort reason=user_initiated by=a
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] queue=[m3 m4]
        ",
    );
}

#[test]
fn a_guarded_interrupt_spares_the_turns_of_other_messages() {
    let spared = "
        answer no spared m1 of a
        now turn i/0 model called queue=[m3 m4] steering=[m2]
        ";
    check(&of_two_clients(), || interrupt_only("m2"), spared);
    check(&of_two_clients(), || interrupt_only("m3"), spared);
    check(
        &model_called(),
        || interrupt_only("m1"),
        "
        answer yes
        store abort reason=user_initiated by=a
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &idle(),
        || interrupt_only("m1"),
        "
        answer no
        now idle
        ",
    );
    // m2 of client b joined the turn of client a.
    let joined = || of_two_clients().and(taken(&["m2"])).and(turn_started(1));
    check(
        &joined(),
        || interrupt_only("m2"),
        "
        answer no spared m1 of a
        now turn i/1 model called queue=[m3 m4]
        ",
    );
}
