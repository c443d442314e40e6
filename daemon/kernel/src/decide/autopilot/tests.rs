//! The autopilot in the loop.

mod completion;

use loopd_proto::event::Durable;
use loopd_proto::session::Mode;
use serde_json::json;

use crate::command::Command;
use crate::decide::tests::prelude::*;

fn switched_to(mode: &str) -> Durable {
    let data = json!({ "previousMode": "interactive", "newMode": mode });
    event("session.mode_changed", data)
}

/// The autopilot told the model to go on with the message `m1`.
fn nudged() -> Vec<Durable> {
    let message = json!({ "messageId": "n", "content": "", "transformedContent": "go on",
        "isAutopilotContinuation": true });
    let nudge = json!({ "requestId": "m1", "requiredTool": "task_complete" });
    vec![
        loop_ended("done"),
        event("user.message", message),
        event("loopd.nudged", nudge),
    ]
}

/// The model was called in autopilot mode.
fn flying() -> Given {
    model_called().and(switched_to("autopilot"))
}

/// The model was called after it was told to go on so many times, and called a tool each time or not.
fn after(times: u32, tools: bool) -> Given {
    let mut given = flying();
    for time in 0..times {
        let id = format!("x{time}");
        let call = json!({ "toolCallId": id, "name": "edit", "arguments": {}, "type": "function" });
        let requests = if tools { json!([call]) } else { json!([]) };
        given = given.and_all(nudged()).and(turn_started(0)).and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "", "toolRequests": requests }),
        ));
        if tools {
            let done = json!({ "toolCallId": id, "success": true, "result": { "content": "ok" } });
            given = given.and(event("tool.execution_complete", done));
        }
        given = given.and(turn_started(1));
    }
    given
}

/// Checks what follows when the model has answered without a tool call.
#[track_caller]
fn after_reply(given: &Given, number: u32, then: &str) {
    let reply = format!(
        "tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn={number}
        store assistant.turn_end turnId={number}"
    );
    check(given, || replied(number), &format!("{reply}\n{then}"));
}

/// What is stored when the model is told to go on, for the first time.
const NUDGE: &str = "
    store user.message m1-continue-1 text=GO_ON
    store loopd.nudged m1
    do prepare []
    now preparing []";

fn pause(paused: bool) -> Command {
    Command::PauseAutopilot(paused)
}

#[test]
fn the_model_is_told_to_go_on_when_it_stops() {
    after_reply(
        &flying(),
        0,
        &format!("store loopd.loop_ended outcome=done{NUDGE}"),
    );
}

#[test]
fn who_waits_goes_first() {
    after_reply(
        &flying().and(queued("m2")),
        0,
        "
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    after_reply(
        &flying().and(steering("m2")),
        0,
        "
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] into i/0
        ",
    );
    after_reply(
        &flying().and(task("t", agent("explore"))),
        0,
        "
        store loopd.loop_ended outcome=done
        tell assistant.idle
        now idle tasks=[t:running]
        ",
    );
}

#[test]
fn hooks_are_asked_before_the_model_is_told_to_go_on() {
    let answered = || {
        flying().with_hooks().and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "", "toolRequests": [] }),
        ))
    };
    check(
        &answered(),
        || stop_answered(Some("test it")),
        r#"
        store assistant.turn_end turnId=0
        store loopd.stop_blocked reason="test it" count=1
        store loopd.reminded text="test it"
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    check(
        &answered(),
        || stop_answered(None),
        &format!("store assistant.turn_end turnId=0\nstore loopd.loop_ended outcome=done{NUDGE}"),
    );
}

#[test]
fn the_autopilot_stops_at_its_limits() {
    after_reply(
        &after(5, true),
        1,
        r#"
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped cap_reached request=m1 "The agent was told to go on 5 times and has not marked the task as compl…"
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
    after_reply(
        &after(3, false),
        1,
        r#"
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped cap_reached request=m1 "The agent was told to go on 3 times in a row and called no tool. Look at…"
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
    after_reply(
        &after(2, false),
        1,
        "
        store loopd.loop_ended outcome=done
        store user.message m1-continue-3 text=GO_ON
        store loopd.nudged m1
        do prepare []
        now preparing []
        ",
    );
}

#[test]
fn the_autopilot_stops_with_an_error_and_with_an_abort() {
    check(
        &flying(),
        || model_failed(0),
        r#"
        tell model.call_failure top_level query code=down
        store assistant.turn_end turnId=0
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        store session.autopilot_stopped error request=m1
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
    check(
        &flying(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        store session.autopilot_stopped aborted request=m1
        tell assistant.idle aborted=true
        tell session.idle aborted=true
        now idle
        ",
    );
}

#[test]
fn switched_off_in_the_middle_of_a_turn_it_says_nothing_more() {
    check(
        &flying(),
        || set_mode(Mode::Interactive),
        "
        answer yes
        store session.mode_changed previousMode=autopilot newMode=interactive
        now turn i/0 model called
        ",
    );
    after_reply(
        &flying().and(switched_to("interactive")),
        0,
        "
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

#[test]
fn a_paused_autopilot_waits_and_goes_on() {
    let paused = || event("loopd.autopilot_paused", json!({ "paused": true }));
    check(
        &flying(),
        || pause(true),
        "
        answer yes
        store loopd.autopilot_paused paused=true
        tell loopd.autopilot_changed paused=true
        now turn i/0 model called
        ",
    );
    after_reply(
        &flying().and(paused()),
        0,
        "
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle
        now idle
        ",
    );
    let rests = || flying().and(paused()).and(loop_ended("done"));
    check(
        &rests(),
        || pause(false),
        &format!(
            "answer yes\nstore loopd.autopilot_paused paused=false\ntell loopd.autopilot_changed paused=false{NUDGE}"
        ),
    );
    declines(&rests(), || pause(true));
    declines(&idle(), || pause(true));
}

#[test]
fn nobody_attached_means_that_it_waits() {
    let rests = || flying().and(loop_ended("done"));
    after_reply(
        &flying().unattended(),
        0,
        "
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle
        now idle
        ",
    );
    check(&rests(), take_up, NUDGE);
    // Who resumes it and does not want pending work to go on has it wait for a message.
    let resumed = json!({ "resumeTime": "1970-01-01T00:00:00.000Z", "eventCount": 1,
        "continuePendingWork": false });
    ignores(&rests().and(event("session.resume", resumed)), take_up);
    let options = json!({ "options": { "autopilot": { "loopdUnattended": true } }, "workingDirectory": "/work" });
    let alone = flying()
        .and(event("loopd.configured", options))
        .unattended();
    after_reply(
        &alone,
        0,
        &format!("store loopd.loop_ended outcome=done{NUDGE}"),
    );
}

#[test]
fn a_crash_neither_repeats_nor_loses_what_the_model_was_told() {
    let told = || flying().and_all(nudged());
    check(
        &told(),
        recover,
        "
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle
        ",
    );
    let interrupted = || {
        event(
            "loopd.loop_ended",
            json!({ "outcome": "interrupted", "resumable": true }),
        )
    };
    check(
        &told().and(interrupted()),
        take_up,
        "
        store loopd.woken
        do prepare []
        now preparing []
        ",
    );
    check(
        &told().and(turn_started(0)),
        recover,
        "
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle
        ",
    );
}

#[test]
fn options_that_keep_the_tool_from_the_model_are_told() {
    after_reply(
        &flying().without_task_complete(),
        0,
        r#"
        store loopd.loop_ended outcome=done
        store session.warning warningType=autopilot_without_task_complete message="The autopilot does not go on by itself: the options of this session keep…"
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
}
