use loopd_proto::event::{Durable, read_durable};
use serde_json::{Value, json};

use super::*;
use crate::history::Entry;
use crate::model::Part;

/// A log that grows line by line, as a session would write it.
struct Log {
    lines: Vec<(Head, Durable)>,
    /// The state of a session that folds its log again after each rewind.
    live: State,
}

impl Log {
    fn new() -> Self {
        Self {
            lines: Vec::new(),
            live: State::new("s".into()),
        }
    }

    fn push(&mut self, kind: &str, data: Value) {
        let at = self.lines.len() + 1;
        let line = json!({ "type": kind, "data": data, "id": at.to_string(),
            "timestamp": "1970-01-01T00:00:00.000Z", "parentId": self.live.tip });
        let (head, event) = read_durable(&line.to_string()).unwrap();
        apply(&mut self.live, &head, &event);
        self.lines.push((head, event));
        let folded = self.fold();
        if kind == "loopd.rewound" {
            self.live = folded;
        } else {
            assert_eq!(self.live, folded, "after {at} events");
        }
    }

    fn user(&mut self, text: &str) {
        self.push(
            "user.message",
            json!({ "messageId": text, "content": text }),
        );
    }

    /// Goes back to a position.
    fn back(&mut self, to: u64) {
        let rewinds = &self.live.rewinds;
        let hidden = rewinds.hidden_before(Seq(to));
        let kept: Vec<u64> = (1..to)
            .filter(|seq| counts(&hidden, Seq(*seq)))
            .filter(|seq| {
                let (_, event) = &self.lines[usize::try_from(*seq).unwrap() - 1];
                event.visibility() == loopd_proto::event::Visibility::Public
            })
            .collect();
        let tip = kept.last().map(ToString::to_string);
        self.push(
            "loopd.rewound",
            json!({ "rewind": format!("r{to}"), "mode": "conversation", "eventId": to.to_string(),
                "position": to, "tip": tip, "kept": kept.len(), "eventsRemoved": 0 }),
        );
    }

    fn fold(&self) -> State {
        let numbered = || (1..).map(Seq).zip(&self.lines);
        let rewinds = numbered().filter_map(|(seq, (_, event))| match event {
            Durable::Rewound(rewound) => Some((seq, rewound)),
            _ => None,
        });
        let mut fold = Fold::new("s".into(), rewinds);
        for (seq, (head, event)) in numbered() {
            fold.apply(seq, head, event);
        }
        fold.finish(Seq(self.lines.len() as u64))
    }

    fn said(&self) -> Vec<&str> {
        let texts = self.live.history.iter().filter_map(|entry| match entry {
            Entry::User(parts) => parts.iter().find_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image { .. } | Part::Document { .. } => None,
            }),
            Entry::Assistant(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        });
        texts.collect()
    }
}

#[test]
fn a_rewind_its_undo_and_the_undo_of_that_come_to_what_each_should() {
    let mut log = Log::new();
    for text in ["one", "two", "three"] {
        log.user(text);
    }
    log.back(2);
    assert_eq!(log.said(), ["one"]);
    log.user("two again");
    assert_eq!(log.said(), ["one", "two again"]);
    // The rewind is event 4.
    log.back(4);
    assert_eq!(log.said(), ["one", "two", "three"]);
    log.user("four");
    assert_eq!(log.said(), ["one", "two", "three", "four"]);
    // The undo is event 6.
    log.back(6);
    assert_eq!(log.said(), ["one", "two again"]);
    log.back(1);
    assert_eq!(log.said(), Vec::<&str>::new());
    assert_eq!((&log.live.tip, log.live.visible), (&None, 0));
}

#[test]
fn what_no_longer_counts_still_costs_and_still_sets() {
    let mut log = Log::new();
    log.user("one");
    log.push(
        "session.mode_changed",
        json!({ "previousMode": "interactive", "newMode": "plan" }),
    );
    log.back(1);
    assert_eq!(log.live.totals.user_requests, 1);
    assert_eq!(log.live.mode, loopd_proto::session::Mode::Plan);
    assert_eq!(log.fold(), log.live);
}

/// The skills that were loaded, with their texts.
fn loaded(log: &Log) -> Vec<(&str, &str)> {
    let skills = log.live.skills.loaded().iter();
    skills
        .map(|skill| (&*skill.invoked.name, &*skill.invoked.content))
        .collect()
}

fn load(log: &mut Log, name: &str, content: &str, trigger: &str) {
    log.push(
        "skill.invoked",
        json!({ "name": name, "path": format!("/skills/{name}/SKILL.md"), "content": content,
            "trigger": trigger }),
    );
}

#[test]
fn a_skill_whose_text_was_taken_back_is_no_longer_loaded_and_comes_back_with_the_undo() {
    let mut log = Log::new();
    load(&mut log, "tidy", "old", "user-invoked");
    log.user("one");
    load(&mut log, "tidy", "new", "user-invoked");
    load(&mut log, "other", "text", "agent-invoked");
    load(&mut log, "own", "of the agent", "context-load");
    log.back(2);
    assert_eq!(loaded(&log), [("tidy", "old"), ("own", "of the agent")]);
    // The rewind is event 6.
    log.back(6);
    let all = [("tidy", "new"), ("other", "text"), ("own", "of the agent")];
    assert_eq!(loaded(&log), all);
}

#[test]
fn a_skill_that_was_put_out_of_use_stays_so_wherever_the_conversation_goes() {
    let mut log = Log::new();
    load(&mut log, "tidy", "text", "user-invoked");
    log.user("one");
    log.push(
        "loopd.skill_switched",
        json!({ "name": "tidy", "enabled": false }),
    );
    log.back(2);
    assert_eq!(loaded(&log), []);
}

/// The texts of the results of tools, as the model reads them.
fn results(log: &Log) -> Vec<&str> {
    let results = log.live.history.iter().filter_map(|entry| match entry {
        Entry::Result { text, .. } => Some(text.as_str()),
        Entry::User(_) | Entry::Assistant(_) | Entry::Image { .. } => None,
    });
    results.collect()
}

#[test]
fn what_was_shortened_after_the_point_is_whole_again() {
    let mut log = Log::new();
    log.user("one");
    let calls = json!([{ "toolCallId": "c", "name": "view", "arguments": {}, "type": "function" }]);
    log.push("assistant.turn_start", json!({ "turnId": "0" }));
    log.push(
        "assistant.message",
        json!({ "messageId": "m", "content": "", "toolRequests": calls, "turnId": "0" }),
    );
    log.push(
        "tool.execution_complete",
        json!({ "toolCallId": "c", "success": true, "result": { "content": "a long text" } }),
    );
    log.push("assistant.turn_end", json!({ "turnId": "0" }));
    let whole = results(&log).join("");
    assert!(whole.contains("a long text"), "{whole}");
    log.user("two");
    let second = log.lines.len() as u64;
    let all: Vec<Value> = (1..second)
        .map(|at| json!({ "at": at, "text": "short" }))
        .collect();
    log.push("loopd.pruned", json!({ "results": all }));
    assert_eq!(results(&log), ["short"]);
    log.back(second);
    assert_eq!(results(&log), [whole.as_str()]);
    // The rewind is undone.
    log.back(second + 2);
    assert_eq!(results(&log), ["short"]);
}
