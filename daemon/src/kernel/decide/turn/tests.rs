//! From messages that are ready to the last word of the model.

use serde_json::json;

use crate::kernel::decide::tests::prelude::*;

#[test]
fn messages_that_are_ready_begin_a_turn() {
    check(
        &preparing(),
        || prepared(&["m1"]),
        "
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn the_first_message_names_a_session_without_a_name() {
    check(
        &nothing().and(queued("m1")).and(taken(&["m1"])),
        || prepared(&["m1"]),
        "
        store session.model_change newModel=gpt
        store loopd.named name=hello by=auto
        tell session.title_changed title=hello
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn a_changed_model_is_stored_and_an_unchanged_system_message_is_not() {
    let again = model_called()
        .and(loop_ended("done"))
        .and(queued("m2"))
        .and(taken(&["m2"]));
    check(
        &again,
        || prepared_for("claude", "system", &["m2"]),
        "
        store session.model_change previousModel=gpt newModel=claude
        store user.message m2 text=hello! turn=0 queued
        tell session.tools_updated model=claude
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn steering_joins_the_running_interaction() {
    let joined = calls_started(&["a"])
        .and(completed("a"))
        .and(steering("m2"))
        .and(taken(&["m2"]));
    check(
        &joined,
        || prepared(&["m2"]),
        "
        store user.message m2 text=hello! turn=1 queued
        tell session.tools_updated model=gpt
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_woken_session_tells_the_model_what_came_to_rest() {
    let rested = idle()
        .and(task("sh", shell("sh")))
        .and(task_ended("sh"))
        .and(event("loopd.woken", json!({})));
    check(
        &rested,
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store system.notification shell_completed sh
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called tasks=[sh:ended]
        ",
    );
}

#[test]
fn a_woken_session_with_nothing_to_tell_rests_again() {
    check(
        &woken(),
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &woken().and(queued("m2")),
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
}

#[test]
fn what_was_prepared_for_others_changes_nothing() {
    ignores(&preparing(), || prepared(&["m9"]));
    ignores(&model_called(), || prepared(&["m1"]));
    ignores(&preparing(), || prepare_failed(&["m9"]));
    ignores(&idle(), || prepare_failed(&["m1"]));
}

#[test]
fn messages_that_could_not_be_prepared_stay_in_the_history() {
    check(
        &preparing(),
        || prepare_failed(&["m1"]),
        r#"
        store user.message m1 queued
        store loopd.unqueued ids=[m1]
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
    check(
        &woken(),
        || prepare_failed(&[]),
        r#"
        store session.error query code=down "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn the_last_word_ends_the_loop() {
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
fn after_the_last_word_the_next_message_is_taken() {
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
fn after_the_last_word_steering_keeps_the_loop_going() {
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
fn after_the_last_word_a_task_that_came_to_rest_wakes_the_session() {
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
fn after_a_failure_messages_go_on_and_notifications_wait() {
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
