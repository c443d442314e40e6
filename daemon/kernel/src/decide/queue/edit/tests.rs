//! Items of the queue change their place or text, or are taken back.

use crate::decide::tests::prelude::*;

#[test]
fn an_item_is_moved_and_positions_beyond_the_queue_mean_its_end() {
    let three = || {
        model_called()
            .and(queued("m2"))
            .and(queued_command("c1"))
            .and(queued("m3"))
    };
    check(
        &three(),
        || move_item("m3", 0),
        "
        answer yes
        store loopd.queue_moved id=m3 place={\"at\":0}
        tell pending_messages.modified
        now turn i/0 model called queue=[m3 m2 c1]
        ",
    );
    check(
        &three(),
        || move_item("m2", 9),
        "
        answer yes
        store loopd.queue_moved id=m2 place={\"at\":2}
        tell pending_messages.modified
        now turn i/0 model called queue=[c1 m3 m2]
        ",
    );
    declines(&three(), || move_item("c1", 1));
    declines(&three(), || move_item("m3", 9));
}

#[test]
fn what_does_not_wait_is_named() {
    let gone = "
        refused m1 does not wait in the queue: a turn has taken it or it was removed; session.queue.pendingItems lists what waits
        now turn i/0 model called steering=[m2]
        ";
    let given = || model_called().and(steering("m2"));
    check(&given(), || move_item("m1", 0), gone);
    check(&given(), || edit_item("m1", "other"), gone);
    check(&given(), || steer_item("m1"), gone);
    declines(&given(), || remove_item("m1"));
}

#[test]
fn only_a_message_is_edited_or_steered() {
    let refused = "
        refused c1 is a slash command, not a message; remove it and queue another command instead
        now turn i/0 model called queue=[c1]
        ";
    let given = || model_called().and(queued_command("c1"));
    check(&given(), || edit_item("c1", "/other"), refused);
    check(&given(), || steer_item("c1"), refused);
}

#[test]
fn an_edit_that_changes_nothing_is_no_edit() {
    check(
        &model_called().and(queued("m2")),
        || edit_item("m2", "better"),
        "
        answer yes
        store loopd.queue_edited id=m2 prompt=better
        tell pending_messages.modified
        now turn i/0 model called queue=[m2]
        ",
    );
    declines(&model_called().and(queued("m2")), || {
        edit_item("m2", "hello")
    });
}

#[test]
fn an_edited_message_is_still_recognised_by_the_text_that_was_sent() {
    let edited = event(
        "loopd.queue_edited",
        serde_json::json!({ "id": "m2", "prompt": "better" }),
    );
    check(
        &model_called().and(queued("m2")).and(edited),
        || send("m2"),
        "
        answer m2
        now turn i/0 model called queue=[m2]
        ",
    );
}

#[test]
fn an_item_or_a_steering_message_is_removed() {
    let given = || model_called().and(queued("m2")).and(steering("m3"));
    check(
        &given(),
        || remove_item("m2"),
        "
        answer yes
        store loopd.unqueued ids=[m2]
        tell pending_messages.modified
        now turn i/0 model called steering=[m3]
        ",
    );
    check(
        &given(),
        || remove_item("m3"),
        "
        answer yes
        store loopd.unqueued ids=[m3]
        tell pending_messages.modified
        now turn i/0 model called queue=[m2]
        ",
    );
}

#[test]
fn a_message_is_steered_into_a_turn_that_runs() {
    check(
        &two_calls().and(steering("m2")).and(queued("m3")),
        || steer_item("m3"),
        "
        answer yes
        store loopd.queue_moved id=m3 place=steering
        tell pending_messages.modified
        now turn i/0 [a:started b:started] steering=[m2 m3]
        ",
    );
    declines(&idle().and(queued("m3")), || steer_item("m3"));
    declines(&commanding().and(queued("m3")), || steer_item("m3"));
    declines(&aborting().and(queued("m3")), || steer_item("m3"));
}

#[test]
fn a_message_is_inserted_at_its_position() {
    let given = || model_called().and(queued("m2")).and(queued("m3"));
    check(
        &given(),
        || send("m4").at(1),
        "
        answer m4
        store loopd.queued m4 queued {\"at\":1}
        tell pending_messages.modified
        now turn i/0 model called queue=[m2 m4 m3]
        ",
    );
    check(
        &given(),
        || send("m4").at(7),
        "
        answer m4
        store loopd.queued m4 queued {\"at\":7}
        tell pending_messages.modified
        now turn i/0 model called queue=[m2 m3 m4]
        ",
    );
    check(
        &idle().and(queued("m2")),
        || send("m4").at(0),
        "
        answer m4
        store loopd.queued m4 idle {\"at\":0}
        tell pending_messages.modified
        store loopd.taken ids=[m4]
        tell pending_messages.modified
        do prepare [m4]
        now preparing [m4] queue=[m2]
        ",
    );
}

#[test]
fn an_unchanged_message_is_withdrawn() {
    let given = || model_called().and(queued("m2")).and(steering("m3"));
    check(
        &given(),
        || withdraw("m2", "hello"),
        "
        answer removed=true interrupted=false
        store loopd.unqueued ids=[m2]
        tell pending_messages.modified
        now turn i/0 model called steering=[m3]
        ",
    );
    check(
        &given(),
        || withdraw("m3", "hello"),
        "
        answer removed=true interrupted=false
        store loopd.unqueued ids=[m3]
        tell pending_messages.modified
        now turn i/0 model called queue=[m2]
        ",
    );
    let stays = "
        answer removed=false interrupted=false
        now turn i/0 model called queue=[m2] steering=[m3]
        ";
    check(&given(), || withdraw("m2", "other"), stays);
    check(&given(), || withdraw("m1", "hello"), stays);
}

#[test]
fn a_message_that_starts_a_turn_is_withdrawn_until_the_conversation_has_it() {
    check(
        &preparing(),
        || withdraw("m1", "hello"),
        "
        answer removed=true interrupted=true
        do cancel turn
        store loopd.unqueued ids=[m1]
        tell pending_messages.modified
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &preparing().and(queued("m2")),
        || withdraw("m1", "hello"),
        "
        answer removed=false interrupted=false
        now preparing [m1] queue=[m2]
        ",
    );
}
