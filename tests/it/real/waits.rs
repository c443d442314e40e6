//! Two hundred waits on twenty sessions, while turns are aborted, queues cleared, an app killed and then
//! the daemon itself: each wait ends as its contract says, and none hangs.

use std::collections::BTreeMap;

use loopd_proto::wire::{CallError, PendingCall};
use loopd_tests::binary::Loopd;
use loopd_tests::script::Recorded;
use loopd_tests::{Client, Gate, Script, Session, Turn, within};
use serde_json::{Value, json};

const SESSIONS: usize = 20;
const WAITS: usize = 10;
const METHOD: &str = "session.sendAndWait";

/// What happens to the waits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecoveredOutcome {
    Nothing,
    Abort,
    Clear,
    AppKilled,
    DaemonKilled,
}

const FATES: [RecoveredOutcome; 5] = [
    RecoveredOutcome::Nothing,
    RecoveredOutcome::Abort,
    RecoveredOutcome::Clear,
    RecoveredOutcome::AppKilled,
    RecoveredOutcome::DaemonKilled,
];

/// One session with its waits, the first of which is held back by the model unless nothing happens.
struct Scene {
    fate: RecoveredOutcome,
    session: Session,
    gate: Gate,
    waits: Vec<PendingCall>,
}

fn prompt(session: usize, wait: usize) -> String {
    format!("say {session}-{wait}.")
}

fn params(session: &str, scene: usize, wait: usize) -> Value {
    json!({"sessionId": session, "prompt": prompt(scene, wait), "messageId": format!("{scene}-{wait}")})
}

/// What a wait came to; nothing when its connection ended first.
async fn outcome(wait: PendingCall) -> Option<Value> {
    match within("a wait to end", wait).await {
        Ok(raw) => Some(serde_json::from_str(raw.get()).unwrap()),
        Err(CallError::Closed) => None,
        Err(error) => panic!("a wait failed: {error}"),
    }
}

async fn outcomes(waits: Vec<PendingCall>) -> Vec<Option<Value>> {
    let mut all = Vec::new();
    for wait in waits {
        all.push(outcome(wait).await);
    }
    all
}

/// What a wait came to, in a word: the answer, `aborted`, or `closed`.
fn word(outcome: Option<&Value>) -> String {
    match outcome {
        None => "closed".to_owned(),
        Some(completed) if completed["aborted"] == true => {
            assert_eq!(completed["response"], Value::Null);
            "aborted".to_owned()
        }
        Some(completed) => {
            let text = &completed["response"]["data"]["content"];
            text.as_str().unwrap().to_owned()
        }
    }
}

fn words(outcomes: &[Option<Value>]) -> Vec<String> {
    let words = outcomes.iter().map(|outcome| word(outcome.as_ref()));
    words.collect()
}

/// The answers of a scene's messages, each its own.
fn answers(scene: usize, waits: std::ops::Range<usize>) -> Vec<String> {
    waits.map(|wait| format!("{scene}-{wait}")).collect()
}

/// A model that repeats what it is to say, and holds back the first answer of some sessions.
async fn echo(gates: BTreeMap<String, Gate>) -> Script {
    Script::answering(move |request: &Recorded| {
        let text = request.last_user_text();
        let asked = text.rsplit("say ").next().unwrap_or_default();
        let name = asked.split('.').next().unwrap_or_default();
        let turn = Turn::any().says(name);
        match gates.get(name) {
            Some(gate) => turn.held_by(gate),
            None => turn,
        }
    })
    .await
}

/// Joins a session anew and asks about the same messages again.
async fn ask_again(client: &Client, scene: usize, id: &str) -> Vec<Option<Value>> {
    let session = client
        .resume(id, json!({"continuePendingWork": true}))
        .await;
    let waits = (0..WAITS).map(|wait| client.pending(METHOD, params(&session.id, scene, wait)));
    outcomes(waits.collect()).await
}

#[tokio::test]
async fn each_of_two_hundred_waits_ends_as_its_contract_says() {
    let home = tempfile::tempdir().unwrap();
    let gates: Vec<Gate> = (0..SESSIONS).map(|_| Gate::new()).collect();
    let held = gates.iter().enumerate();
    let held = held.filter(|(scene, _)| FATES[scene % FATES.len()] != RecoveredOutcome::Nothing);
    let held = held.map(|(scene, gate)| (format!("{scene}-0"), gate.clone()));
    let mut script = echo(held.collect()).await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let defaults = json!({"model": "scripted", "provider": provider});
    let start = || Loopd::relay(home.path(), defaults.clone());
    let ((calm, calm_client), (doomed, doomed_client), (orphaned, orphaned_client)) =
        (start(), start(), start());
    let mut scenes = Vec::new();
    for (scene, gate) in gates.iter().enumerate() {
        let fate = FATES[scene % FATES.len()];
        let client = match fate {
            RecoveredOutcome::Nothing | RecoveredOutcome::Abort | RecoveredOutcome::Clear => {
                &calm_client
            }
            RecoveredOutcome::AppKilled => &doomed_client,
            RecoveredOutcome::DaemonKilled => &orphaned_client,
        };
        let session = client.create(json!({})).await;
        let waits = (0..WAITS).map(|wait| client.pending(METHOD, params(&session.id, scene, wait)));
        let waits = waits.collect();
        scenes.push(Scene {
            fate,
            session,
            gate: gate.clone(),
            waits,
        });
    }
    let mut ended = 0;
    let mut left_by_app = Vec::new();
    let mut left_by_daemon = Vec::new();
    for (number, scene) in scenes.into_iter().enumerate() {
        let Scene {
            fate,
            session,
            gate,
            mut waits,
        } = scene;
        match fate {
            RecoveredOutcome::Nothing => {
                let words = words(&outcomes(waits).await);
                assert_eq!(words, answers(number, 0..WAITS));
                ended += WAITS;
            }
            RecoveredOutcome::Abort => {
                gate.reached().await;
                session.call("session.abort", json!({})).await;
                let words = words(&outcomes(waits).await);
                assert_eq!(words, vec!["aborted"; WAITS]);
                ended += WAITS;
            }
            RecoveredOutcome::Clear => {
                gate.reached().await;
                session.call("session.queue.clear", json!({})).await;
                let first = waits.remove(0);
                let removed = outcomes(waits).await;
                assert_eq!(words(&removed), vec!["aborted"; WAITS - 1]);
                let quiet = removed.iter().flatten();
                assert!(quiet.clone().all(|it| it["completionEventId"].is_null()));
                gate.open();
                let first = outcome(first).await;
                assert_eq!(words(&[first]), answers(number, 0..1));
                ended += WAITS;
            }
            RecoveredOutcome::AppKilled => {
                gate.reached().await;
                left_by_app.push((number, session, gate, waits));
            }
            RecoveredOutcome::DaemonKilled => {
                gate.reached().await;
                left_by_daemon.push((number, session, gate, waits));
            }
        }
    }
    doomed.kill_hard().await;
    for (number, session, gate, waits) in left_by_app {
        assert_eq!(words(&outcomes(waits).await), vec!["closed"; WAITS]);
        gate.open();
        // The work went on without its app: whoever asks again gets every answer.
        let again = ask_again(&calm_client, number, &session.id).await;
        assert_eq!(words(&again), answers(number, 0..WAITS));
        ended += WAITS;
    }
    let status = calm_client.call("loopd.daemonStatus", json!({})).await;
    let pid = status["pid"].as_u64().unwrap().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status();
    assert!(killed.unwrap().success());
    for relay in [calm, orphaned] {
        assert_eq!(relay.exited().await.code(), Some(1));
    }
    let (_heir, heir_client) = start();
    for (number, session, gate, waits) in left_by_daemon {
        assert_eq!(words(&outcomes(waits).await), vec!["closed"; WAITS]);
        gate.open();
        let again = ask_again(&heir_client, number, &session.id).await;
        assert_eq!(
            words(&again),
            answers(number, 0..WAITS),
            "what was cut short goes on, and so does what waited"
        );
        ended += WAITS;
    }
    assert_eq!(ended, SESSIONS * WAITS);
    gates.iter().for_each(Gate::open);
    script.finish();
}
