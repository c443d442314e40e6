//! The replies of the model, and how the loop continues or ends.

mod beginning;

use crate::command::{Effect, Step};
use crate::decide::tests::decided;
use crate::decide::tests::prelude::*;
use crate::history::Entry;
use crate::model::Finish;

#[test]
fn a_reply_without_calls_ends_the_loop() {
    check(
        &model_called(),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

#[test]
fn of_too_many_calls_the_first_run_and_the_others_are_closed_at_once() {
    let given = model_called();
    let ids: Vec<String> = (0..3000).map(|number| format!("c{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let decision = decided(&given, replied_with_calls(0, &ids));
    let mut assessed = 0;
    let mut stored = Vec::new();
    for step in decision.steps {
        match step {
            Step::Store(event) => stored.push(event),
            Step::Do(Effect::Assess { .. }) => assessed += 1,
            Step::Do(_) | Step::Tell(_) => {}
        }
    }
    assert_eq!(assessed, 128);
    let state = given.and_all(stored).state();
    let (open, closed): (Vec<_>, Vec<_>) = state.calls().partition(|call| call.is_open());
    assert_eq!((open.len(), closed.len()), (128, 3000 - 128));
    assert_eq!(open[127].call.id.as_str(), "c127");
    let told = state.history.iter().next_back().unwrap();
    assert!(
        matches!(told, Entry::Result { text, .. } if text.contains("at most 128 calls")),
        "{told:?}"
    );
}

#[test]
fn after_the_final_reply_the_next_message_is_taken() {
    check(
        &model_called().and(queued("m2")).and(queued("m3")),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] queue=[m3]
        ",
    );
    check(
        &model_called().and(queued("m2")).unattended(),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
}

#[test]
fn after_the_final_reply_steering_keeps_the_loop_going() {
    check(
        &model_called()
            .and(queued("m2"))
            .and(steering("m3"))
            .and(steering("m4")),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.taken ids=[m3 m4]
        tell pending_messages.modified
        do prepare [m3 m4]
        now preparing [m3 m4] into i/0 queue=[m2]
        ",
    );
}

#[test]
fn after_the_final_reply_a_task_that_ended_wakes_the_session() {
    check(
        &model_called()
            .and(task("sh", shell("sh")))
            .and(task_ended("sh")),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.woken
        do prepare []
        now preparing [] tasks=[sh:ended!]
        ",
    );
}

#[test]
fn the_session_is_not_idle_while_sub_agents_work() {
    check(
        &model_called().and(task("x", agent("x"))),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn calls_are_announced_and_assessed() {
    check(
        &model_called(),
        || replied_with_calls(0, &["a", "b"]),
        r#"
        tell assistant.usage calls=2 tool_calls conversation-agent
        store loopd.usage credits=0
        store assistant.message "" [a b] of=m1 turn=0
        store tool.execution_start a edit turn=0
        store tool.execution_start b edit turn=0
        do assess i/0 a edit
        do assess i/0 b edit
        now turn i/0 [a:started b:started]
        "#,
    );
}

#[test]
fn calls_with_the_same_id_are_told_apart() {
    check(
        &model_called(),
        || replied_with_calls(0, &["a", "a"]),
        r#"
        tell assistant.usage calls=2 tool_calls conversation-agent
        store loopd.usage credits=0
        store assistant.message "" [a a-1] of=m1 turn=0
        store tool.execution_start a edit turn=0
        store tool.execution_start a-1 edit turn=0
        do assess i/0 a edit
        do assess i/0 a-1 edit
        now turn i/0 [a:started a-1:started]
        "#,
    );
}

#[test]
fn what_a_sub_agent_uses_is_counted_as_such() {
    check(
        &model_called().and(is_subagent(None)),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-subagent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &model_called().and(is_subagent(None)),
        || model_failed(0),
        r#"
        tell model.call_failure subagent query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn a_late_reply_changes_nothing() {
    ignores(&model_called(), || replied(1));
    ignores(&two_calls(), || replied(0));
    ignores(&idle(), || replied(0));
    ignores(&model_called(), || model_failed(1));
    ignores(&two_calls(), || model_failed(0));
}

#[test]
fn a_failed_model_call_ends_the_loop_with_an_error() {
    check(
        &model_called(),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn after_a_failure_messages_continue_and_notifications_wait() {
    check(
        &model_called().and(queued("m2")),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        "#,
    );
    check(
        &model_called()
            .and(task("sh", shell("sh")))
            .and(task_ended("sh")),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle tasks=[sh:ended!]
        "#,
    );
}

#[test]
fn steering_that_came_too_late_for_a_failed_turn_is_taken_first() {
    check(
        &model_called().and(queued("m2")).and(steering("m3")),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        store loopd.taken ids=[m3]
        tell pending_messages.modified
        do prepare [m3]
        now preparing [m3] queue=[m2]
        "#,
    );
    check(
        &model_called().and(steering("m3")).and(steering("m4")),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        store loopd.taken ids=[m3]
        tell pending_messages.modified
        do prepare [m3]
        now preparing [m3] queue=[m4]
        "#,
    );
}

#[test]
fn a_cut_reply_is_told_before_the_loop_ends() {
    for (finish, reason, warning) in [
        (
            Finish::Length,
            "length",
            "warningType=answer_cut message=\"The answer is not complete: the model reached its limit of output tokens…\"",
        ),
        (
            Finish::ContentFilter,
            "content_filter",
            "warningType=answer_filtered message=\"The answer is not complete: the provider's content filter withheld it or…\"",
        ),
    ] {
        let expected = format!(
            "
            tell assistant.usage calls=0 {reason} conversation-agent
            store loopd.usage credits=0
            store assistant.message hi [] of=m1 turn=0
            store session.warning {warning}
            store assistant.turn_end turnId=0
            store loopd.loop_ended outcome=done
            tell assistant.idle
            tell session.idle interactive
            now idle
            "
        );
        check(&model_called(), || replied_cut(0, finish), &expected);
    }
}
