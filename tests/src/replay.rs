//! The checks after every test. The log folds to the live state. A fresh daemon reaches the same
//! state. Every event that a client got is the stored one. The events of a log form one chain.

use std::collections::HashMap;
use std::sync::Arc;

use loopd::app::App;
use loopd::session::registry::Sessions;
use loopd_kernel::context;
use loopd_kernel::fold::Fold;
use loopd_kernel::state::{Phase, State};
use loopd_proto::event::{Durable, Head, read_durable};
use loopd_proto::id::{Seq, SessionId};
use loopd_store::{StoredEvent, Visibility};
use serde_json::Value;

use crate::client::Client;
use crate::validator::{as_chat, check_conversation};

/// Kinds that a client gets again if it attaches late.
const SHOWN_AGAIN: [&str; 2] = ["permission.requested", "external_tool.requested"];

/// Checks every session of the daemon, and stops those that are live.
pub(crate) async fn check(app: &Arc<App>, clients: &[Client]) {
    let records = app.services.store.list().await.unwrap();
    let ids: Vec<SessionId> = records.into_iter().map(|record| record.id).collect();
    for id in &ids {
        if let Some(live) = app.sessions.get(id) {
            let state = live.state(State::clone).await.unwrap();
            let folded = fold(id, &load(app, id).await, state.seq);
            assert_same("the live state is not the fold of its log", &folded, &state);
            live.stop().await;
        }
    }
    for id in &ids {
        let before = load(app, id).await;
        check_chain(id, &before);
        check_reopening(app, id, &before).await;
    }
    for client in clients {
        check_received(app, client).await;
    }
}

async fn load(app: &App, id: &SessionId) -> Vec<StoredEvent> {
    let loaded = app.services.store.load(id).await.unwrap();
    loaded.expect("a listed session has a log").1
}

/// Folds a log up to a position.
fn fold(id: &SessionId, log: &[StoredEvent], through: Seq) -> State {
    let lines = log.iter().take_while(|stored| stored.seq <= through);
    let mut expected = Seq::START;
    let lines = lines.map(|stored| {
        expected = expected.next();
        assert_eq!(expected, stored.seq, "the log of {id} has a gap");
        &*stored.json
    });
    fold_lines(id.clone(), lines)
}

/// Folds the lines of a whole log.
pub fn fold_lines<'a>(id: SessionId, lines: impl IntoIterator<Item = &'a str>) -> State {
    let events: Vec<(Seq, Head, Durable)> = (1..)
        .map(Seq)
        .zip(lines)
        .map(|(seq, line)| {
            let (head, event) = read_durable(line).unwrap_or_else(|error| {
                panic!("{id} has an event that cannot be read: {error}: {line}")
            });
            (seq, head, event)
        })
        .collect();
    let rewinds = events.iter().filter_map(|(seq, _, event)| match event {
        Durable::Rewound(rewound) => Some((*seq, rewound)),
        _ => None,
    });
    let mut fold = Fold::new(id, rewinds);
    for (seq, head, event) in &events {
        fold.apply(*seq, head, event);
    }
    fold.finish(events.last().map_or(Seq::START, |(seq, ..)| *seq))
}

/// Checks that a session that is opened again has the state of its log, and a valid conversation.
async fn check_reopening(app: &Arc<App>, id: &SessionId, before: &[StoredEvent]) {
    let all = Seq(u64::MAX);
    let stored = fold(id, before, all);
    let fresh = Arc::new(Sessions::new(app.services.clone()));
    let opened = fresh.open(id.clone());
    let state = opened.state(State::clone).await.unwrap();
    let folded = fold(id, &load(app, id).await, all);
    assert_same(
        "a reopened session is not the fold of its log",
        &folded,
        &state,
    );
    // Tasks that ran in the background ended when the session was stopped.
    let ran = stored.tasks.running().any(|task| !task.is_detached());
    // So did a compaction beside the conversation.
    let compacts = stored.compaction.running.is_some();
    if matches!(stored.phase, Phase::Idle) && !ran && !compacts && stored.user_calls.is_empty() {
        assert_same("reopening a resting session changed it", &stored, &state);
    }
    let conversation = as_chat(&context::messages(&state));
    if let Err(wrong) = check_conversation(&conversation) {
        panic!("the conversation of {id} is not valid after reopening: {wrong}");
    }
    opened.stop().await;
    fresh.drained().await;
}

/// Checks that every event names the last visible event before it as its parent.
fn check_chain(id: &SessionId, log: &[StoredEvent]) {
    let mut parent = Value::Null;
    for stored in log {
        let event: Value = serde_json::from_str(&stored.json).unwrap();
        assert_eq!(
            event["id"],
            stored.id.as_str(),
            "an event of {id} is stored under another id"
        );
        assert_eq!(
            event["type"], *stored.kind,
            "an event of {id} is stored as another kind"
        );
        assert_eq!(
            event["parentId"], parent,
            "the chain of {id} is broken at {event}"
        );
        assert_ne!(
            event["ephemeral"], true,
            "an ephemeral event of {id} was stored: {event}"
        );
        if stored.visible == Visibility::Public {
            parent = event["id"].clone();
        }
        // After a rewind the chain goes on from the last event that counts.
        if &*stored.kind == "loopd.rewound" && event["data"]["mode"] != "files" {
            parent = event["data"]["tip"].clone();
        }
    }
}

/// Checks that the durable events that a client got are the stored ones, in order, each once.
async fn check_received(app: &App, client: &Client) {
    let mut logs: HashMap<String, Option<Vec<StoredEvent>>> = HashMap::new();
    let mut last: HashMap<String, u64> = HashMap::new();
    let agents = logs_of_agents(app).await;
    for seen in client.all_events() {
        let event = seen.event;
        let kind = event["type"].as_str().unwrap_or_default();
        if event["ephemeral"] == true {
            continue;
        }
        assert!(
            !kind.starts_with("loopd."),
            "a client got our bookkeeping: {event}"
        );
        if !logs.contains_key(&seen.session) {
            let id = SessionId::from(seen.session.as_str());
            let loaded = app.services.store.load(&id).await.unwrap();
            logs.insert(seen.session.clone(), loaded.map(|(_, log)| log));
        }
        // A deleted session has no log to compare with.
        let Some(log) = &logs[&seen.session] else {
            continue;
        };
        let find = |log: &[StoredEvent]| {
            let mut log = log.iter();
            log.find(|stored| event["id"] == stored.id.as_str())
                .cloned()
        };
        let own = find(log).map(|stored| (seen.session.clone(), stored));
        // The events of a sub-agent are in the sub-agent's own log.
        let stored = own.or_else(|| {
            let mut agents = agents.iter().filter(|_| event["agentId"].is_string());
            agents.find_map(|(id, log)| Some((format!("{} {id}", seen.session), find(log)?)))
        });
        let (log, stored) =
            stored.unwrap_or_else(|| panic!("a client got an event that is not stored: {event}"));
        let line: Value = serde_json::from_str(&stored.json).unwrap();
        assert_eq!(
            line, event,
            "a client got another event than the stored one"
        );
        let before = last.entry(log).or_default();
        if stored.seq.0 > *before {
            *before = stored.seq.0;
        } else {
            assert!(
                SHOWN_AGAIN.contains(&kind),
                "a client got an event twice or too late: {event}"
            );
        }
    }
}

/// Loads the logs of all sessions of sub-agents.
async fn logs_of_agents(app: &App) -> Vec<(SessionId, Vec<StoredEvent>)> {
    let mut logs = Vec::new();
    for record in app.services.store.list().await.unwrap() {
        if record.agent.is_some()
            && let Some((record, log)) = app.services.store.load(&record.id).await.unwrap()
        {
            logs.push((record.id, log));
        }
    }
    logs
}

/// Fails with the first difference between two states.
pub fn assert_same(what: &str, folded: &State, live: &State) {
    if folded != live {
        let (folded, live) = (format!("{folded:#?}"), format!("{live:#?}"));
        panic!("{what}:\n{}", first_difference(&folded, &live));
    }
}

/// Shows where two texts begin to differ.
fn first_difference(folded: &str, live: &str) -> String {
    const AROUND: usize = 6;
    let (folded, live): (Vec<&str>, Vec<&str>) = (folded.lines().collect(), live.lines().collect());
    let same = folded
        .iter()
        .zip(&live)
        .take_while(|(one, other)| one == other)
        .count();
    let part = |lines: &[&str]| {
        let until = (same + AROUND).min(lines.len());
        lines[same.saturating_sub(AROUND).min(until)..until].join("\n")
    };
    format!(
        "folded, from line {same}:\n{}\nlive:\n{}",
        part(&folded),
        part(&live)
    )
}
