//! Limits are soft: the last call may exceed them, and no call begins after that.

use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn the_model_is_told_what_is_left() {
    check(
        &idle()
            .and(limited_to(5.0))
            .and(used(2))
            .and(queued("m1"))
            .and(taken(&["m1"])),
        || prepared(&["m1"]),
        r#"
        store user.message m1 text=hello! turn=0 queued
        store loopd.reminded text="<session_limits_status>\nRemaining session limits: 3 AI credits. Later se…"
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        "#,
    );
}

#[test]
fn no_message_reaches_the_model_when_the_credits_are_used_up() {
    check(
        &idle()
            .and(limited_to(5.0))
            .and(used(5))
            .and(queued("m1"))
            .and(taken(&["m1"])),
        || prepared(&["m1"]),
        r#"
        store user.message m1 queued
        store loopd.unqueued ids=[m1]
        store session.error session_limits code=session_limits_exhausted of=m1 "The session has used 5 of the 5 AI credits it may use. To go on, resume …"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn the_next_message_is_taken_and_fails_as_well() {
    let next = idle()
        .and(limited_to(5.0))
        .and(used(7))
        .and(queued("m1"))
        .and(taken(&["m1"]))
        .and(queued("m2"));
    check(
        &next,
        || prepared(&["m1"]),
        r#"
        store user.message m1 queued
        store loopd.unqueued ids=[m1]
        store session.error session_limits code=session_limits_exhausted of=m1 "The session has used 7 of the 5 AI credits it may use. To go on, resume …"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        "#,
    );
}

#[test]
fn after_tools_no_model_is_called_when_the_credits_are_used_up() {
    check(
        &calls_started(&["a"]).and(limited_to(5.0)).and(used(6)),
        || finished(0, "a", ok()),
        r#"
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store session.error session_limits code=session_limits_exhausted of=m1 "The session has used 6 of the 5 AI credits it may use. To go on, resume …"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn the_final_reply_may_exceed_the_limit() {
    check(
        &model_called().and(limited_to(5.0)).and(used(6)),
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
fn usage_of_sub_agents_counts() {
    let spent = event(
        "loopd.task_answered",
        json!({ "id": "x", "response": "done", "usage": { "nanoCredits": 5_000_000_000_u64 },
            "answeredAt": "1970-01-01T00:00:01.000Z" }),
    );
    let tired = calls_started(&["a"])
        .and(limited_to(5.0))
        .and(task("x", agent("x")))
        .and(spent);
    check(
        &tired,
        || finished(0, "a", ok()),
        r#"
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store session.error session_limits code=session_limits_exhausted of=m1 "The session has used 5 of the 5 AI credits it may use. To go on, resume …"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle tasks=[x:idle!]
        "#,
    );
}

#[test]
fn a_sub_agent_is_told_of_its_last_turn() {
    check(
        &calls_started(&["a"]).and(is_subagent(Some(2))),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store loopd.reminded text=LAST_TURN
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &calls_started(&["a"]).and(is_subagent(Some(3))),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_sub_agent_stops_after_its_last_turn() {
    check(
        &calls_started(&["a"]).and(is_subagent(Some(1))),
        || finished(0, "a", ok()),
        r#"
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store session.error max_turns code=max_turns of=m1 "the agent used all of its 1 turns without coming to an answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn only_sub_agents_have_a_number_of_turns() {
    check(
        &calls_started(&["a"]),
        || finished(0, "a", ok()),
        "
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn steering_gives_a_sub_agent_another_turn() {
    let steered = calls_started(&["a"]).and(is_subagent(Some(1)));
    let steered = steered
        .and(completed("a"))
        .and(steering("m2"))
        .and(taken(&["m2"]));
    check(
        &steered,
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
