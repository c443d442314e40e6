//! Room for the next model call.

use loopd_proto::event::Durable;
use loopd_proto::id::Seq;
use serde_json::json;

use crate::command::{Command, KeptOutput, RequestFacts, RoomNeed};
use crate::context_size::RequestSize;
use crate::context_window::{ContextWindow, RoomRules};
use crate::decide::tests::prelude::*;
use crate::prune::WholeText;

/// A model call of the turn i/1 with so many tokens, to a model that takes 10,000.
fn need(tokens: u64) -> Command {
    Command::MakeRoom(Box::new(RoomNeed {
        turn: turn(1),
        request: RequestFacts {
            model: "gpt".to_owned(),
            window: ContextWindow {
                limit: 10_000,
                output: None,
            },
            rules: RoomRules::default(),
            size: RequestSize {
                system: 500,
                tools: 500,
                conversation: tokens - 1_000,
            },
            factor: 1.0,
            overflowed: false,
        },
    }))
}

fn result(call: &str, tokens: usize) -> Durable {
    let content = " word".repeat(tokens);
    event(
        "tool.execution_complete",
        json!({"toolCallId": call, "success": true, "result": {"content": content}}),
    )
}

/// Two calls are done with results of so many tokens, the model has read them, and it is called again.
fn with_results(first: usize, second: usize) -> Given {
    calls_started(&["a", "b"])
        .and(result("a", first))
        .and(result("b", second))
        .and(event(
            "assistant.message",
            json!({"messageId": "said", "content": "well", "toolRequests": []}),
        ))
        .and(turn_started(1))
}

fn kept() -> Command {
    Command::OutputsKept {
        turn: turn(1),
        kept: vec![KeptOutput {
            at: Seq(12),
            whole: WholeText::File("/tmp/a.txt".to_owned()),
        }],
    }
}

#[test]
fn a_long_old_result_is_saved_before_it_is_shortened() {
    let given = with_results(2_000, 4_000);
    check(
        &given,
        || need(7_000),
        "
        store loopd.making_room saving=[12]
        do keep outputs i/1 at [12]
        now turn i/1 makes room
        ",
    );
    let saving = event("loopd.making_room", json!({"saving": [12]}));
    let waiting = with_results(2_000, 4_000).and(saving);
    let after = waiting.state().history.tokens();
    assert!(after > 6_000);
    let Command::OutputsKept { turn: key, kept } = kept() else {
        unreachable!("it is what was saved");
    };
    let decision = super::outputs_kept(&waiting.state(), &key, kept);
    let stored = format!("{:?}", decision.steps);
    assert!(
        stored.contains("/tmp/a.txt") && stored.contains("CallModel"),
        "{stored}"
    );
}

#[test]
fn the_call_goes_out_when_there_is_nothing_to_shorten() {
    check(
        &with_results(100, 4_000),
        || need(7_000),
        "
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_late_report_changes_nothing() {
    // The turn waits for nothing.
    ignores(&with_results(2_000, 4_000), kept);
    // It is being aborted.
    let saving = event("loopd.making_room", json!({"saving": [12]}));
    let given = with_results(2_000, 4_000)
        .and(saving)
        .and(event("abort", json!({"reason": "user_initiated"})));
    ignores(&given, kept);
    ignores(&idle(), || need(7_000));
}

#[test]
fn an_abort_ends_the_turn_that_waits_for_room() {
    let saving = event("loopd.making_room", json!({"saving": [12]}));
    check(
        &with_results(2_000, 4_000).and(saving),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=1
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}
