//! A daemon that is killed at any moment loses nothing it told anybody, and runs nothing twice.
//!
//! LOOPD_KILL_ROUNDS says how often (3 unless told), LOOPD_KILL_STEPS how long each loop is (5),
//! LOOPD_KILL_SEED makes a run happen again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_kernel::texts::OUTCOME_UNKNOWN;
use loopd_tests::binary::Loopd;
use loopd_tests::dice::{Dice, number};
use loopd_tests::script::Recorded;
use loopd_tests::{Script, Session, Turn, call, within};
use serde_json::{Value, json};

/// How many times the model asks for tools in one round.
fn steps_of_a_round() -> usize {
    number("LOOPD_KILL_STEPS").map_or(5, |steps| usize::try_from(steps).unwrap())
}

/// The longest time after which a daemon is killed.
const LIFE: Duration = Duration::from_millis(90);

/// When a daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// Right after so many events.
    Event(usize),
    /// When the model is asked for the so-manieth time.
    Request(usize),
    /// When so much time has passed.
    Time(Duration),
}

impl Moment {
    fn random(dice: &mut Dice) -> Self {
        let small = |number: u64| usize::try_from(number).unwrap() + 1;
        match dice.roll(3) {
            0 => Self::Event(small(dice.roll(12 * steps_of_a_round() as u64))),
            1 => Self::Request(small(dice.roll(steps_of_a_round() as u64 + 1))),
            _ => Self::Time(Duration::from_micros(
                dice.roll(u64::try_from(LIFE.as_micros()).unwrap()),
            )),
        }
    }
}

/// A model that asks for one or two tools at a time, each of which writes its call's id down.
async fn busy_model(ledger: PathBuf) -> Script {
    let mut calls = 0_usize;
    let mut ask = move |count: usize| {
        let next = (0..count).map(|_| {
            calls += 1;
            let id = format!("call_{calls}");
            let command = format!("echo {id} | tee -a {}", ledger.display());
            call(&id, "bash", json!({"command": command}))
        });
        Turn::any().calls(next.collect::<Vec<_>>())
    };
    Script::answering(move |request: &Recorded| {
        let messages = request.messages();
        let since = messages
            .iter()
            .rev()
            .take_while(|message| message["role"] != "user");
        let steps = since
            .filter(|message| message["role"] == "assistant")
            .count();
        let wanted = if request.last_user_text().contains("continue") {
            1
        } else {
            steps_of_a_round()
        };
        match steps {
            steps if steps >= wanted => Turn::any().says("done"),
            steps => ask(1 + steps % 2),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_it_keeps_its_word() {
    let rounds = number("LOOPD_KILL_ROUNDS").unwrap_or(3);
    let random = || {
        (ulid::Ulid::generate().0 & u128::from(u64::MAX))
            .try_into()
            .unwrap()
    };
    let seed = number("LOOPD_KILL_SEED").unwrap_or_else(random);
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let ledger = folder.path().join("ledger");
    let mut script = busy_model(ledger.clone()).await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let defaults = json!({"model": "scripted", "provider": provider});
    let (mut daemon, mut client) = Loopd::private(&home, defaults.clone());
    for round in 1..=rounds {
        let moment = Moment::random(&mut dice);
        let story = format!("seed {seed}, round {round}, killed at {moment:?}");
        let mut session = client.create(json!({"streaming": dice.roll(2) == 0})).await;
        session.approve_all().await;
        session.send("go").await;
        until(moment, &script, &mut session).await;
        daemon.kill_hard().await;
        // What was on its way is still received.
        client.closed().await;
        let received: Vec<Value> = session
            .events()
            .into_iter()
            .filter(|event| event["ephemeral"] != true)
            .collect();
        (daemon, client) = Loopd::private(&home, defaults.clone());
        let mut resumed = client.resume(&session.id, json!({})).await;
        let stored = resumed.messages().await;
        assert!(received.len() <= stored.len(), "{story}: events are gone");
        assert_eq!(
            stored[..received.len()],
            received[..],
            "{story}: not the events that were told"
        );
        check_calls(&stored, &ledger, &story);
        resumed.ask("continue").await;
        let stored = resumed.messages().await;
        let last = stored
            .iter()
            .rev()
            .find(|event| event["type"] == "assistant.message");
        assert_eq!(
            last.unwrap()["data"]["content"],
            "done",
            "{story}: it does not go on"
        );
        check_calls(&stored, &ledger, &story);
        let listed = client.call("session.list", json!({})).await;
        let listed = listed["sessions"].as_array().unwrap().len();
        assert_eq!(listed as u64, round, "{story}: sessions are gone");
    }
    daemon.kill_hard().await;
    script.finish();
}

/// Waits for the moment, or for the end of the loop when that comes first.
async fn until(moment: Moment, script: &Script, session: &mut Session) {
    let already = script.requests().len();
    let id = session.id.clone();
    let watcher = session.client().session(&id);
    let came = async {
        match moment {
            Moment::Event(count) => watcher.heard(count).await,
            Moment::Request(count) => {
                script.asked(already + count).await;
            }
            Moment::Time(time) => tokio::time::sleep(time).await,
        }
    };
    within("the moment to kill, or the end of the loop", async {
        tokio::select! {
            () = came => {}
            _ = session.next("session.idle") => {}
        }
    })
    .await;
}

/// Every call that was started has one result, which is true or says that nobody knows.
fn check_calls(stored: &[Value], ledger: &Path, story: &str) {
    let mut written: BTreeMap<String, usize> = BTreeMap::new();
    for id in std::fs::read_to_string(ledger).unwrap_or_default().lines() {
        *written.entry(id.to_owned()).or_default() += 1;
    }
    let twice: Vec<&String> = written
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(id, _)| id)
        .collect();
    assert!(twice.is_empty(), "{story}: run twice: {twice:?}");
    let of = |kind: &'static str| stored.iter().filter(move |event| event["type"] == kind);
    for start in of("tool.execution_start") {
        let id = start["data"]["toolCallId"].as_str().unwrap();
        let results: Vec<&Value> = of("tool.execution_complete")
            .filter(|event| event["data"]["toolCallId"] == id)
            .collect();
        assert_eq!(
            results.len(),
            1,
            "{story}: {id} has {} results",
            results.len()
        );
        let data = &results[0]["data"];
        if data["success"] == true {
            let content = data["result"]["content"].as_str().unwrap();
            assert!(
                content.contains(id),
                "{story}: {id} has another's result: {content}"
            );
            assert_eq!(
                written.get(id),
                Some(&1),
                "{story}: {id} succeeded without having run"
            );
        } else {
            assert_eq!(data["error"]["message"], OUTCOME_UNKNOWN, "{story}: {id}");
        }
    }
    let starts = of("tool.execution_start").count();
    let ends = of("tool.execution_complete").count();
    assert_eq!(starts, ends, "{story}: results without calls");
}
