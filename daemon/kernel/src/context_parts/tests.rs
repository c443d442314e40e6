use loopd_proto::id::SessionId;
use serde_json::json;

use super::*;
use crate::model::AssistantTurn;

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.to_owned(),
        arguments,
    }
}

fn result(id: &str, text: &str) -> Entry {
    Entry::Result {
        call: id.into(),
        text: text.to_owned(),
        interrupted: false,
        pruned: false,
    }
}

fn state() -> State {
    let mut state = State::new(SessionId::from("s"));
    let long = "word ".repeat(100);
    let time = "<current_datetime>now</current_datetime>\n\nlook  at\nthis";
    let entries = [
        Entry::User(vec![Part::Text(time.to_owned())]),
        Entry::Assistant(AssistantTurn {
            calls: vec![
                call("a", "bash", json!({"command": "ls"})),
                call("b", "skill", json!({"skill": "tmux"})),
                call("c", "task", json!({"agent_type": "explore"})),
            ],
            ..AssistantTurn::default()
        }),
        result("a", &long),
        result("b", "use it so"),
        result("c", "found"),
        Entry::Image {
            label: None,
            part: Part::Image {
                media_type: "image/png".to_owned(),
                base64: String::new(),
            },
        },
    ];
    for (at, entry) in entries.into_iter().enumerate() {
        state.history.push(Seq(at as u64 + 1), entry);
    }
    state
}

#[test]
fn every_message_is_counted_where_it_comes_from() {
    let state = state();
    let parts = parts(&state);
    let messages: Vec<_> = parts
        .iter()
        .map(|(source, it)| (source, it.messages))
        .collect();
    assert_eq!(
        messages,
        [
            (&PartSource::User, 1),
            (&PartSource::Assistant, 1),
            (&PartSource::Tool("bash".to_owned()), 1),
            (&PartSource::Skill("tmux".to_owned()), 1),
            (&PartSource::Subagent("explore".to_owned()), 2),
        ]
    );
    let sum: u64 = parts.values().map(|part| part.tokens).sum();
    assert_eq!(sum, state.conversation_tokens());
}

#[test]
fn the_largest_messages_come_first() {
    let found = heaviest(&state(), 2);
    let positions: Vec<_> = found.iter().map(|it| it.seq).collect();
    assert_eq!(positions, [Seq(6), Seq(3)]);
    let shown: Vec<_> = found.iter().map(|it| it.shown.as_str()).collect();
    assert!(
        matches!(shown.as_slice(), ["an image", long] if long.ends_with('…')),
        "{shown:?}"
    );
    let all = heaviest(&state(), 9);
    let asked = all.iter().find(|it| it.source == PartSource::User);
    assert_eq!(asked.map(|it| it.shown.as_str()), Some("look at this"));
}

#[test]
fn instructions_are_found_in_the_system_message() {
    let system = "You are.\n\n<custom_instructions>\n<instructions>x</instructions>\n</custom_instructions>\n\nEnd.";
    let found = instructions(system).unwrap_or_default();
    assert!(found.contains('x') && !found.contains("End"), "{found}");
    assert_eq!(instructions("none"), None);
}
