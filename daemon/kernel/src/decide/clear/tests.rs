//! Clearing: when it is possible, what goes and what stays, and what the model reads next.

use loopd_proto::event::fact::ClientRef;
use serde_json::json;

use crate::command::{CallOutcome, ClearOrder, Command};
use crate::context;
use crate::decide::tests::decided;
use crate::decide::tests::prelude::*;
use crate::model::{ModelMessage, Part};

fn at_rest() -> Command {
    Command::ClearContext(ClearOrder::AtRest)
}

fn in_call() -> Command {
    Command::ClearContext(ClearOrder::InCall {
        prompt: "begin anew".to_owned(),
        sender: ClientRef {
            id: "client".to_owned(),
            name: None,
        },
    })
}

/// A session whose first turn has ended.
fn talked() -> Given {
    model_called()
        .and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "hi", "toolRequests": [] }),
        ))
        .and(event("assistant.turn_end", json!({ "turnId": "0" })))
        .and(loop_ended("done"))
}

#[test]
fn a_session_that_rests_is_cleared() {
    check(
        &talked(),
        at_rest,
        "
        answer cleared 2
        store session.context_cleared 2
        now idle
        ",
    );
    check(
        &commanding(),
        at_rest,
        "
        answer cleared 0
        store session.context_cleared 0
        now running /deploy
        ",
    );
}

#[test]
fn a_running_compaction_ends_with_the_conversation() {
    let given = talked().and(event(
        "loopd.compacting",
        json!({"id": "c", "through": 8, "trigger": "manual"}),
    ));
    check(
        &given,
        at_rest,
        "
        answer cleared 2
        store session.compaction_complete false manual \"The conversation was cleared meanwhile.\"
        do cancel summary
        store session.context_cleared 2
        now idle
        ",
    );
}

#[test]
fn a_busy_session_is_not_cleared_from_outside_of_a_call() {
    let why = "the conversation is cleared while the session rests; wait for the turn, abort it, or queue /clear";
    is_refused(&model_called(), at_rest, why);
    is_refused(&two_calls(), at_rest, why);
    is_refused(&preparing(), at_rest, why);
}

#[test]
fn without_a_call_in_flight_there_is_nothing_to_clear_from() {
    let why = "no tool call is in flight: session.history.clearContext works only from inside of one; /clear clears the \
               conversation of a session that rests";
    is_refused(&idle(), in_call, why);
    is_refused(&model_called(), in_call, why);
    is_refused(&aborting(), in_call, why);
}

#[test]
fn a_clear_inside_of_a_call_brings_the_first_message_of_the_new_conversation() {
    check(
        &client_runs(),
        in_call,
        "
        answer cleared 2
        store session.context_cleared 2 seed=\"begin anew\"
        store loopd.queued #1 steering steering
        tell pending_messages.modified
        now turn i/0 [a:at a client] steering=[#1]
        ",
    );
}

#[test]
fn results_of_calls_that_were_cleared_are_not_told() {
    let given = two_calls()
        .and(event(
            "session.context_cleared",
            json!({ "messagesCleared": 2 }),
        ))
        .and(event(
            "tool.execution_complete",
            json!({ "toolCallId": "a", "success": true, "result": { "content": "found" } }),
        ));
    let messages = context::messages(&given.state());
    assert!(
        matches!(&messages[..], [ModelMessage::System(_)]),
        "{messages:?}"
    );
    let later = given.and(event(
        "user.message",
        json!({ "messageId": "m2", "content": "begin anew" }),
    ));
    let messages = context::messages(&later.state());
    let seed = vec![Part::Text("begin anew".to_owned())];
    assert_eq!(messages.get(1..), Some(&[ModelMessage::User(seed)][..]));
}

#[test]
fn what_is_not_of_the_conversation_stays() {
    let given = talked()
        .and(event(
            "todo.updated",
            json!({ "todos": [{ "id": "t", "content": "build", "status": "pending", "priority": "high", "createdAt": "" }] }),
        ))
        .and(event(
            "session.context_cleared",
            json!({ "messagesCleared": 2 }),
        ));
    let state = given.state();
    assert_eq!(state.todos.list.todos.len(), 1);
    assert_eq!(state.system.as_deref(), Some("system"));
    assert_eq!(state.conversation_tokens(), 0);
    let through = state.compaction.replaced_through;
    assert_eq!(through, Some(state.seq));
}

#[test]
fn a_tool_that_ends_the_turn_ends_it_when_it_succeeds() {
    let given = || calls_started(&["a"]).with_terminal_tools();
    check(
        &given(),
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
    check(
        &given(),
        || finished(0, "a", failed("broken")),
        "
        store tool.execution_complete a broken \"it failed\" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn hooks_do_not_keep_a_turn_from_ending_that_a_person_or_a_hook_has_ended() {
    let two = || {
        calls_started(&["a", "b"])
            .with_terminal_tools()
            .with_hooks()
    };
    let asks = |given: &Given, outcome: CallOutcome| {
        let decided = decided(given, finished(0, "b", outcome));
        format!("{decided:?}").contains("AskStop")
    };
    let complete = event(
        "tool.execution_complete",
        json!({ "toolCallId": "a", "success": true, "result": { "content": "ok" } }),
    );
    assert!(asks(&two().and(complete.clone()), ok()));
    assert!(!asks(&two().and(rejected("a")), ok()));
    let mut stopped = ok();
    stopped.stops = Some("enough".to_owned());
    assert!(!asks(&two().and(complete), stopped));
}
