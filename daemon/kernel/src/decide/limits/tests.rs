//! The last call may exceed a limit, and no call begins after that.

use loopd_proto::event::budget::AgentSpent;
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::session::SessionOptions;
use serde_json::json;

use crate::command::Command;
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
        tell session_limits_exhausted.requested requestId=limits-7 maxAiCredits=5.0 usedAiCredits=5.0
        store loopd.loop_ended outcome=failed limited=true limitRequest=limits-7
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
        tell session_limits_exhausted.requested requestId=limits-8 maxAiCredits=5.0 usedAiCredits=7.0
        store loopd.loop_ended outcome=failed limited=true limitRequest=limits-8
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
        tell session_limits_exhausted.requested requestId=limits-12 maxAiCredits=5.0 usedAiCredits=6.0
        store loopd.loop_ended outcome=failed limited=true limitRequest=limits-12
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
        tell session_limits_exhausted.requested requestId=limits-13 maxAiCredits=5.0 usedAiCredits=5.0
        store loopd.loop_ended outcome=failed limited=true limitRequest=limits-13
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

/// The session may use this much.
fn limits(limits: &serde_json::Value) -> loopd_proto::event::Durable {
    event(
        "loopd.configured",
        json!({ "options": { "model": "gpt", "sessionLimits": limits }, "workingDirectory": "/work" }),
    )
}

/// The limits become these.
fn set_limits(limits: &serde_json::Value) -> Command {
    Command::UpdateOptions(Box::new(OptionsPatch {
        options: SessionOptions {
            session_limits: serde_json::from_value(limits.clone()).ok(),
            ..SessionOptions::default()
        },
        ..OptionsPatch::default()
    }))
}

#[test]
fn each_limit_ends_the_turn_by_its_name() {
    for (limit, code, words) in [
        (
            json!({"maxTokens": 2}),
            "session_limits_tokens",
            "2 of the 2 tokens it may use. To go on, resume it w…",
        ),
        (
            json!({"maxTurns": 1}),
            "session_limits_turns",
            "1 of the 1 model calls it may use. To go on, resume…",
        ),
        (
            json!({"maxCostUsd": 0}),
            "session_limits_cost",
            "0.0000 of the 0.0000 US dollars it may use. To go o…",
        ),
    ] {
        let then = format!(
            "
            store tool.execution_complete a ok turn=0
            store assistant.turn_end turnId=0
            store session.error session_limits code={code} of=m1 \"The session has used {words}\"
            store loopd.loop_ended outcome=failed limited=true
            tell assistant.idle
            tell session.idle interactive
            now idle
            "
        );
        check(
            &calls_started(&["a"]).and(limits(&limit)).and(used(0)),
            || finished(0, "a", ok()),
            &then,
        );
    }
}

#[test]
fn people_are_warned_when_most_is_used() {
    let given = idle().and(limits(&json!({"maxTokens": 10})));
    let spent = |tokens| {
        Command::AgentSpent(AgentSpent {
            estimated: false,
            id: "x".into(),
            tokens,
            nano_usd: 0,
            nano_credits: 0,
        })
    };
    let given = given.and(task("x", agent("x")));
    check(
        &given,
        || spent(8),
        r#"
        store loopd.agent_spent id=x tokens=8 nanoUsd=0 nanoCredits=0
        store session.warning warningType=session_limits message="The session has used 8 of the 10 tokens it may use; at the limit its tur…"
        now idle tasks=[x:running]
        "#,
    );
    check(
        &given.and(event("loopd.agent_spent", json!({"id": "x", "tokens": 8}))),
        || spent(1),
        "
        store loopd.agent_spent id=x tokens=1 nanoUsd=0 nanoCredits=0
        now idle tasks=[x:running]
        ",
    );
}

#[test]
fn without_limits_nothing_is_recorded_at_the_top() {
    ignores(&idle(), || {
        Command::AgentSpent(AgentSpent {
            estimated: false,
            id: "x".into(),
            tokens: 8,
            nano_usd: 1,
            nano_credits: 1,
        })
    });
}

/// A run that a limit has ended.
fn stopped_at(limit: &serde_json::Value) -> Given {
    model_called().and(limits(limit)).and(used(0)).and(event(
        "loopd.loop_ended",
        json!({"outcome": "failed", "limited": true}),
    ))
}

#[test]
fn the_run_goes_on_when_more_is_granted() {
    check(
        &stopped_at(&json!({"maxTokens": 2})),
        || set_limits(&json!({"maxTokens": 3})),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","sessionLimits":{"maxTokens":3}} workingDirectory=/work
        store session.session_limits_changed sessionLimits={"maxTokens":3}
        store loopd.woken
        do prepare []
        now preparing []
        "#,
    );
}

#[test]
fn the_run_rests_when_too_little_is_granted() {
    check(
        &stopped_at(&json!({"maxTokens": 2, "maxTurns": 1})),
        || set_limits(&json!({"maxTokens": 3, "maxTurns": 1})),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","sessionLimits":{"maxTokens":3,"maxTurns":1}} workingDirectory=/work
        store session.session_limits_changed sessionLimits={"maxTokens":3,"maxTurns":1}
        now idle
        "#,
    );
    ignores(&stopped_at(&json!({"maxTokens": 2})), || Command::TakeUp);
}

#[test]
fn time_stops_what_runs() {
    let given = calls_started(&["a"]).and(limits(&json!({"timeoutSeconds": 2})));
    check(
        &given,
        || Command::TimeUp,
        r#"
        store session.error session_limits code=session_limits_time of=m1 "The session has used 2 of the 2 seconds it may use. To go on, resume it …"
        store loopd.time_up
        do cancel turn
        do start grace i/0
        now turn i/0 [a:started] aborting
        "#,
    );
    let stopping = given.and(event("loopd.time_up", json!({})));
    ignores(&stopping, || Command::TimeUp);
    check(
        &stopping,
        || grace_over(0),
        "
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=failed limited=true
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

#[test]
fn time_that_is_left_stops_nothing() {
    ignores(
        &calls_started(&["a"]).and(limits(&json!({"timeoutSeconds": 2.001}))),
        || Command::TimeUp,
    );
}
