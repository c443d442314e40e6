//! Messages that wait in the queue, and messages that steer the running turn.

mod slash_commands;

use loopd_proto::event::Durable;
use loopd_proto::event::fact::QueueItem;
use serde_json::json;

use super::{QUEUE_BYTES, QUEUE_LIMIT};
use crate::decide::tests::decided;
use crate::decide::tests::prelude::*;

#[test]
fn a_message_to_an_idle_session_starts_the_loop() {
    check(
        &idle(),
        || send("m1"),
        "
        answer m1
        store loopd.queued m1 idle last
        tell pending_messages.modified
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1]
        ",
    );
    check(
        &idle(),
        || send("").without_id(),
        "
        answer #1
        store loopd.queued #1 idle last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        do prepare [#1]
        now preparing [#1]
        ",
    );
}

#[test]
fn a_message_to_a_busy_session_waits() {
    check(
        &model_called(),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 queued last
        tell pending_messages.modified
        now turn i/0 model called queue=[m2]
        ",
    );
    check(
        &preparing(),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 queued last
        tell pending_messages.modified
        now preparing [m1] queue=[m2]
        ",
    );
    check(
        &commanding(),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 queued last
        tell pending_messages.modified
        now running /deploy queue=[m2]
        ",
    );
}

#[test]
fn a_message_that_goes_first_is_put_before_the_others() {
    check(
        &model_called().and(queued("m2")),
        || send("m3").first(),
        "
        answer m3
        store loopd.queued m3 queued first
        tell pending_messages.modified
        now turn i/0 model called queue=[m3 m2]
        ",
    );
    check(
        &idle().and(queued("m2")),
        || send("m3").first(),
        "
        answer m3
        store loopd.queued m3 idle first
        tell pending_messages.modified
        store loopd.taken ids=[m3]
        tell pending_messages.modified
        do prepare [m3]
        now preparing [m3] queue=[m2]
        ",
    );
}

#[test]
fn an_immediate_message_steers_the_running_turn() {
    check(
        &two_calls(),
        || send("m2").immediately(),
        "
        answer m2
        store loopd.queued m2 steering steering
        tell pending_messages.modified
        now turn i/0 [a:started b:started] steering=[m2]
        ",
    );
    check(
        &preparing(),
        || send("m2").immediately(),
        "
        answer m2
        store loopd.queued m2 steering steering
        tell pending_messages.modified
        now preparing [m1] steering=[m2]
        ",
    );
}

#[test]
fn an_immediate_message_goes_first_when_there_is_no_turn_to_steer() {
    check(
        &idle().and(queued("m2")),
        || send("m3").immediately(),
        "
        answer m3
        store loopd.queued m3 idle first
        tell pending_messages.modified
        store loopd.taken ids=[m3]
        tell pending_messages.modified
        do prepare [m3]
        now preparing [m3] queue=[m2]
        ",
    );
    check(
        &commanding().and(queued("m2")),
        || send("m3").immediately(),
        "
        answer m3
        store loopd.queued m3 queued first
        tell pending_messages.modified
        now running /deploy queue=[m3 m2]
        ",
    );
}

#[test]
fn an_idle_session_takes_the_first_queued_message() {
    check(
        &idle().and(queued("m1")),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 idle last
        tell pending_messages.modified
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1] queue=[m2]
        ",
    );
}

#[test]
fn a_message_that_was_accepted_is_not_accepted_again() {
    check(
        &model_called(),
        || send("m1"),
        "
        answer m1
        now turn i/0 model called
        ",
    );
    check(
        &model_called().and(queued("m2")),
        || send("m2"),
        "
        answer m2
        now turn i/0 model called queue=[m2]
        ",
    );
}

#[test]
fn a_repeated_message_is_taken_if_it_waits_in_an_idle_session() {
    check(
        &idle().and(queued("m1")),
        || send("m1"),
        "
        answer m1
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1]
        ",
    );
}

#[test]
fn an_id_with_another_text_is_refused() {
    check(
        &model_called(),
        || send("m1").text("other"),
        "
        refused the messageId m1 was used for another message; give each message an id of its own
        now turn i/0 model called
        ",
    );
}

#[test]
fn a_full_queue_refuses_messages_and_commands() {
    let ids = (0..QUEUE_LIMIT).map(|number| queued(&format!("q{number}")));
    let full = model_called().and_all(ids);
    check(
        &full,
        || send("m2"),
        "
        refused the queue of this session is full (1000 items); wait for it to drain or clear it
        now turn i/0 model called queue=1000
        ",
    );
    check(
        &full,
        || slash_command("/deploy"),
        "
        refused the queue of this session is full (1000 items); wait for it to drain or clear it
        now turn i/0 model called queue=1000
        ",
    );
}

#[test]
fn files_that_managed_settings_deny_cannot_be_attached() {
    let rules = json!({ "managed": { "deny": [{ "kind": "read", "argument": "/work/secret" }] } });
    let managed = || idle().and(permissions(rules.clone()));
    check(
        &managed(),
        || send("m1").with_file("secret/key"),
        "
        refused attachments: secret/key may not be read, by the managed settings of this session
        now idle
        ",
    );
    check(
        &managed(),
        || send("m1").with_file("open/key"),
        "
        answer m1
        store loopd.queued m1 idle last
        tell pending_messages.modified
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1]
        ",
    );
}

#[test]
fn clearing_the_queue_removes_every_item() {
    check(
        &model_called()
            .and(queued("m2"))
            .and(queued_command("c1"))
            .and(steering("m3")),
        clear_queue,
        "
        answer yes
        store loopd.unqueued ids=[m2 c1 m3]
        tell pending_messages.modified
        now turn i/0 model called
        ",
    );
    declines(&model_called(), clear_queue);
}

#[test]
fn the_last_item_is_removed_and_steering_only_when_nothing_else_waits() {
    check(
        &model_called()
            .and(steering("m2"))
            .and(queued("m3"))
            .and(queued("m4")),
        remove_last,
        "
        answer yes
        store loopd.unqueued ids=[m4]
        tell pending_messages.modified
        now turn i/0 model called queue=[m3] steering=[m2]
        ",
    );
    check(
        &model_called().and(steering("m2")).and(steering("m3")),
        remove_last,
        "
        answer yes
        store loopd.unqueued ids=[m3]
        tell pending_messages.modified
        now turn i/0 model called steering=[m2]
        ",
    );
    declines(&model_called(), remove_last);
}

#[test]
fn the_items_that_wait_have_a_limit_in_bytes_together() {
    let large = |id: &str, bytes: usize| {
        let mut event = queued(id);
        if let Durable::Queued(queued) = &mut event
            && let QueueItem::Message(message) = &mut queued.item
        {
            message.prompt = "x".repeat(bytes);
        }
        event
    };
    let full = || model_called().and(large("m2", QUEUE_BYTES - 1));
    let refused = format!(
        "{} bytes wait in the queue of this session already, and it holds at most {QUEUE_BYTES}; wait for it to drain or clear it",
        QUEUE_BYTES - 1
    );
    // One byte fits, and two do not.
    decided(&full(), send("m3").text("x"));
    is_refused(&full(), || send("m3"), &refused);
    is_refused(&full(), || slash_command("/deploy"), &refused);
    is_refused(
        &full().and(queued("m3")),
        || edit_item("m3", "longer"),
        &refused,
    );
    // The item that is changed makes room itself.
    decided(&full(), edit_item("m2", "a short text"));
    // One item alone may have more.
    let text = "x".repeat(QUEUE_BYTES + 1);
    decided(&model_called(), send("m2").text(&text));
}
