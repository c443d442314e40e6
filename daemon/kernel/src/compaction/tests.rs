//! The request for a summary, and what is kept of long texts.

#![expect(clippy::indexing_slicing, reason = "a failed step fails the test")]

use loopd_proto::id::Seq;

use super::middle_left_out;
use super::request::{Summarisable, SummaryRequest};
use crate::history::Entry;
use crate::model::{AssistantTurn, ModelMessage, Part, ToolCall};
use crate::state::State;
use crate::tokens;

fn with_results(results: u64) -> State {
    let mut state = State::new("s".into());
    state.system = Some("be good".to_owned());
    let user = Entry::User(vec![Part::Text("go".to_owned())]);
    state.history.push(Seq(1), user);
    for n in 1..=results {
        let id = format!("c{n}");
        let call = ToolCall {
            id: id.as_str().into(),
            name: "view".to_owned(),
            arguments: serde_json::json!({}),
        };
        let turn = AssistantTurn {
            calls: vec![call],
            ..AssistantTurn::default()
        };
        state.history.push(Seq(n * 2), Entry::Assistant(turn));
        let result = Entry::Result {
            call: id.as_str().into(),
            text: " word".repeat(1_000),
            interrupted: false,
            pruned: false,
        };
        state.history.push(Seq(n * 2 + 1), result);
    }
    state
}

fn size(messages: &[ModelMessage]) -> u64 {
    messages
        .iter()
        .map(|it| tokens::count(&format!("{it:?}")))
        .sum()
}

#[test]
fn the_request_begins_as_the_conversation_does_if_that_fits() {
    let state = with_results(3);
    let asked = Summarisable::of(&state).request(100_000, &["dwell on names".to_owned()]);
    let Some(SummaryRequest { messages, left_out }) = asked else {
        unreachable!("the conversation fits");
    };
    assert_eq!(left_out, 0);
    let conversation = crate::context::messages(&state);
    assert_eq!(messages[..conversation.len()], conversation[..]);
    let Some(ModelMessage::User(parts)) = messages.last() else {
        unreachable!("the question is the last message");
    };
    let asked = format!("{parts:?}");
    assert!(asked.contains("Please create a detailed summary of the conversation so far. The history is being compacted"));
    assert!(asked.contains("dwell on names"));
}

#[test]
fn a_conversation_that_does_not_fit_is_shortened_and_stays_valid() {
    for room in [6_000, 3_000, 1_500] {
        let state = with_results(20);
        let Some(asked) = Summarisable::of(&state).request(room, &[]) else {
            unreachable!("a part fits into {room}");
        };
        let messages = asked.messages;
        let kept = messages
            .iter()
            .filter(|it| !matches!(it, ModelMessage::System(_)));
        // The note about what was left out and the question are no part of the conversation.
        let kept = kept.count() as u64 - if asked.left_out > 0 { 2 } else { 1 };
        assert_eq!(asked.left_out + kept, 41, "{room}");
        assert!(
            size(&messages) < room + 2_500,
            "{room}: {}",
            size(&messages)
        );
        for pair in messages.windows(2) {
            if let ModelMessage::ToolResult { call, .. } = &pair[1] {
                let ModelMessage::Assistant(turn) = &pair[0] else {
                    unreachable!("a result follows its call");
                };
                assert_eq!(turn.calls[0].id, *call);
            }
        }
    }
}

#[test]
fn there_is_no_request_for_a_summary_of_next_to_nothing() {
    let state = with_results(20);
    for room in [0, 700, 800, 900] {
        let asked = Summarisable::of(&state).request(room, &[]);
        assert!(asked.is_none(), "{room}: {asked:?}");
    }
}

#[test]
fn long_texts_keep_their_ends() {
    assert_eq!(middle_left_out("short", 10), "short");
    let cut = middle_left_out(&format!("begin{}end", "ä".repeat(1_000)), 90);
    assert!(
        cut.starts_with("begin") && cut.ends_with("end") && cut.len() < 300,
        "{cut}"
    );
}
