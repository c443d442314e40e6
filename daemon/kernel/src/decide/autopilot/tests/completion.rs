//! What the model says about its task, and whether that counts.

use serde_json::{Value, json};

use super::{flying, switched_to};
use crate::decide::tests::prelude::*;

/// The model called `task_complete` as `c`, and `edit` with the other ids.
fn completing(arguments: &Value, others: &[&str]) -> Given {
    let mut requests = vec![
        json!({ "toolCallId": "c", "name": "task_complete", "arguments": arguments, "type": "function" }),
    ];
    requests.extend(others.iter().map(
        |id| json!({ "toolCallId": id, "name": "edit", "arguments": {}, "type": "function" }),
    ));
    flying().and(event(
        "assistant.message",
        json!({ "messageId": "reply", "content": "", "toolRequests": requests }),
    ))
}

#[test]
fn a_completed_task_ends_the_loop() {
    check(
        &completing(&json!({ "summary": " all done " }), &[]),
        || finished(0, "c", ok()),
        r#"
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c ok turn=0
        store session.task_complete completed "all done" true
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped task_complete request=m1
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
    check(
        &completing(&json!({ "summary": "half", "blocked": "a key" }), &[]),
        || finished(0, "c", ok()),
        r#"
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c ok turn=0
        store session.task_complete blocked half false "a key"
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped blocked request=m1
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
}

#[test]
fn a_completion_beside_other_calls_counts_if_they_succeed() {
    let given = || completing(&json!({ "summary": "done" }), &["a"]);
    check(
        &given(),
        || finished(0, "c", ok()),
        "
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c ok turn=0
        now turn i/0 [c:done a:requested]
        ",
    );
    check(
        &given().and(completed("c")),
        || finished(0, "a", ok()),
        "
        store tool.execution_start a edit turn=0
        store tool.execution_complete a ok turn=0
        store session.task_complete completed done true
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped task_complete request=m1
        tell assistant.idle
        tell session.idle
        now idle
        ",
    );
    check(
        &given().and(completed("c")),
        || finished(0, "a", failed("broken")),
        r#"
        store tool.execution_start a edit turn=0
        store tool.execution_complete a broken "it failed" turn=0
        store session.task_complete continue done false OTHER_CALL_FAILED
        store loopd.reminded text=OTHER_CALL_FAILED
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_completion_that_failed_does_not_count() {
    check(
        &completing(&json!({ "summary": "" }), &[]),
        || refuses("c"),
        r#"
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c invalid "it failed" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

/// The model has called `task_complete` once more, and the call failed.
fn refused(given: Given, id: &str, turn: u32) -> Given {
    given
        .and(event(
            "assistant.turn_start",
            json!({ "turnId": turn.to_string(), "interactionId": "i" }),
        ))
        .and(event(
            "assistant.message",
            json!({ "messageId": id, "content": "", "toolRequests": [
                { "toolCallId": id, "name": "task_complete", "arguments": {}, "type": "function" }] }),
        ))
        .and(event(
            "tool.execution_complete",
            json!({ "toolCallId": id, "success": false, "error": { "message": "no" } }),
        ))
}

#[test]
fn the_third_completion_in_a_row_that_fails_ends_the_loop() {
    let once = refused(flying(), "c1", 1);
    let asked = |given: Given, id: &str, tool: &str| {
        given
            .and(event(
                "assistant.turn_start",
                json!({ "turnId": "3", "interactionId": "i" }),
            ))
            .and(event(
                "assistant.message",
                json!({ "messageId": "reply", "content": "", "toolRequests": [
                    { "toolCallId": id, "name": tool, "arguments": {}, "type": "function" }] }),
            ))
    };
    check(
        &asked(refused(once, "c2", 2), "c", "task_complete"),
        || finished(3, "c", failed("invalid")),
        r#"
        store tool.execution_start c task_complete turn=3
        store tool.execution_complete c invalid "it failed" turn=3
        store assistant.turn_end turnId=3
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped cap_reached request=m1 "The agent called task_complete 3 times in a row, and each call failed. L…"
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
    // Other work in between begins the count anew.
    let worked = asked(refused(refused(flying(), "c1", 1), "c2", 2), "e", "edit");
    check(
        &asked(worked.and(completed("e")), "c", "task_complete"),
        || finished(3, "c", failed("invalid")),
        r#"
        store tool.execution_start c task_complete turn=3
        store tool.execution_complete c invalid "it failed" turn=3
        store assistant.turn_end turnId=3
        store assistant.turn_start i 4
        do call model i/4
        now turn i/4 model called
        "#,
    );
}

#[test]
fn of_two_completions_the_strictest_counts() {
    let done = json!({ "summary": "done" });
    let stuck = json!({ "summary": "half", "blocked": "a key" });
    for (first, second) in [(&done, &stuck), (&stuck, &done)] {
        let requests = [("c", first), ("d", second)].map(|(id, arguments)| {
            json!({ "toolCallId": id, "name": "task_complete", "arguments": arguments, "type": "function" })
        });
        let given = flying().and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "", "toolRequests": requests }),
        ));
        check(
            &given.and(completed("c")),
            || finished(0, "d", ok()),
            r#"
            store tool.execution_start d task_complete turn=0
            store tool.execution_complete d ok turn=0
            store session.task_complete blocked half false "a key"
            store assistant.turn_end turnId=0
            store loopd.loop_ended outcome=done
            store session.autopilot_stopped blocked request=m1
            tell assistant.idle
            tell session.idle
            now idle
            "#,
        );
    }
}

#[test]
fn a_task_that_is_completed_again_stops_again() {
    let given = completing(&json!({ "summary": "once more" }), &[]).and(event(
        "session.autopilot_stopped",
        json!({ "reason": "task_complete", "requestId": "m1" }),
    ));
    check(
        &given,
        || finished(0, "c", ok()),
        r#"
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c ok turn=0
        store session.task_complete completed "once more" true
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped task_complete request=m1
        tell assistant.idle
        tell session.idle
        now idle
        "#,
    );
}

#[test]
fn a_completion_in_another_mode_does_not_count() {
    let given = completing(&json!({ "summary": "done" }), &[]).and(switched_to("interactive"));
    check(
        &given,
        || finished(0, "c", ok()),
        "
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c failure NO_TASK_TO_COMPLETE turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_sub_agent_completes_nothing() {
    let given = completing(&json!({ "summary": "done" }), &[]).and(is_subagent(None));
    check(
        &given,
        || finished(0, "c", ok()),
        r#"
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c failure "Only the main agent marks the task as complete. Put what you have done i…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn hooks_may_keep_a_task_from_being_complete() {
    let given = || completing(&json!({ "summary": "done" }), &[]).with_hooks();
    check(
        &given(),
        || finished(0, "c", ok()),
        "
        store tool.execution_start c task_complete turn=0
        store tool.execution_complete c ok turn=0
        do ask stop i/0
        now turn i/0 [c:done]
        ",
    );
    check(
        &given().and(completed("c")),
        || stop_answered(Some("test it")),
        r#"
        store session.task_complete continue done false "test it"
        store assistant.turn_end turnId=0
        store loopd.stop_blocked reason="test it" count=1
        store loopd.reminded text="test it"
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    check(
        &given().and(completed("c")),
        || stop_answered(None),
        "
        store session.task_complete completed done true
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        store session.autopilot_stopped task_complete request=m1
        tell assistant.idle
        tell session.idle
        now idle
        ",
    );
}
