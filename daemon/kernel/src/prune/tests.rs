use loopd_proto::id::SessionId;
use serde_json::Value;

use super::*;
use crate::model::{AssistantTurn, Part, ToolCall};

/// A conversation of turns, each with a call of a tool and a result of about so many tokens.
fn state(turns: &[(&str, usize)]) -> State {
    let mut state = State::new(SessionId::from("s"));
    let mut seq = 0;
    let mut push = |entry| {
        seq += 1;
        state.history.push(Seq(seq), entry);
    };
    push(Entry::User(vec![Part::Text("go".to_owned())]));
    for (at, (tool, tokens)) in turns.iter().enumerate() {
        let id = ToolCallId::new(format!("c{at}"));
        push(Entry::Assistant(AssistantTurn {
            calls: vec![ToolCall {
                id: id.clone(),
                name: (*tool).to_owned(),
                arguments: Value::Null,
            }],
            ..AssistantTurn::default()
        }));
        push(Entry::Result {
            call: id,
            text: " word".repeat(*tokens),
            interrupted: false,
            pruned: false,
        });
    }
    state
}

/// The positions of the results of these turns.
fn results(turns: &[u64]) -> Vec<Seq> {
    turns.iter().map(|turn| Seq(2 * turn + 3)).collect()
}

#[test]
fn old_results_are_shortened_when_that_wins_a_tenth_of_the_window() {
    let long = ("bash", 1_000);
    for (turns, limit, shortened) in [
        // The newest 3,000 tokens are kept, which are three results.
        (vec![long; 8], 10_000, vec![0, 1, 2, 3, 4]),
        (vec![long; 5], 10_000, vec![0, 1]),
        // One alone is not worth it.
        (vec![long; 4], 10_000, vec![]),
        // Short ones stay.
        (vec![("bash", 300); 40], 10_000, vec![]),
        // Those of a skill stay, whatever happens.
        (
            [vec![("skill", 5_000), ("bash", 2_000)], vec![long; 3]].concat(),
            10_000,
            vec![1],
        ),
    ] {
        let found = candidates(&state(&turns), limit);
        assert_eq!(found, results(&shortened), "{turns:?} of {limit}");
    }
}

#[test]
fn what_the_model_has_not_read_stays_however_much_it_is() {
    let found = candidates(&state(&[("bash", 50_000)]), 10_000);
    assert_eq!(found, []);
    let found = candidates(&state(&[("bash", 50_000), ("bash", 50_000)]), 10_000);
    assert_eq!(found, results(&[0]));
}

#[test]
fn nothing_is_shortened_twice() {
    let mut state = state(&[("bash", 1_000); 8]);
    for at in candidates(&state, 10_000) {
        let whole = WholeText::File("/tmp/x".to_owned());
        state
            .history
            .shorten(at, shortened(&" word".repeat(1_000), &whole));
    }
    assert_eq!(candidates(&state, 10_000), []);
}

#[test]
fn a_shortened_result_says_how_much_is_left_out_and_where_it_is() {
    let text = format!("{}{}", "ä".repeat(2_000), "z".repeat(2_000));
    let short = shortened(&text, &WholeText::File("/home/x/out.txt".to_owned()));
    assert!(short.starts_with(&"ä".repeat(HEAD_CHARS)), "{short}");
    assert!(short.ends_with(&"z".repeat(TAIL_CHARS)), "{short}");
    assert!(short.contains("/home/x/out.txt"), "{short}");
    assert!(short.contains("5000 of 6000 bytes"), "{short}");
    let short = shortened(&text, &WholeText::Unsaved("the disk is full".to_owned()));
    assert!(short.contains("the disk is full"), "{short}");
}
