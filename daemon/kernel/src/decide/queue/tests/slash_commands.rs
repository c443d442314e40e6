//! Slash commands wait in the queue, and clients run them one at a time.

use crate::decide::tests::prelude::*;

#[test]
fn a_slash_command_goes_to_the_clients_when_the_session_is_idle() {
    check(
        &idle(),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        tell command.queued requestId=#2 command=/deploy
        now running /deploy
        ",
    );
    check(
        &idle().and(queued("m1")),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1] queue=[#1]
        ",
    );
    check(
        &model_called(),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        now turn i/0 model called queue=[#1]
        ",
    );
}

#[test]
fn after_a_slash_command_the_next_item_is_taken() {
    check(
        &commanding(),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &commanding().and(queued("m2")),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    check(
        &commanding().and(queued_command("c2")),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[c2]
        tell pending_messages.modified
        tell command.queued requestId=r-c2 command=/deploy
        now running /deploy
        ",
    );
}

#[test]
fn a_slash_command_can_stop_the_queue() {
    check(
        &commanding().and(queued("m2")),
        || command_stopped("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
}

#[test]
fn without_a_client_attached_the_queue_waits() {
    check(
        &commanding().and(queued("m2")).unattended(),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
}

#[test]
fn a_report_of_another_slash_command_changes_nothing() {
    declines(&commanding(), || command_handled("r-c9"));
    declines(&idle(), || command_handled("r-c1"));
}
