//! Compactions of a real process: killed at any step, and for thousands of turns.
//!
//! LOOPD_LONG_TURNS says how many turns the long session has (40 unless told). Its figures are printed:
//! `LOOPD_LONG_TURNS=3000 cargo nextest run -p loopd-tests --no-capture -E 'test(compactions::)'`.

#![expect(clippy::print_stdout, reason = "figures are for who watches the test")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopd_tests::binary::Loopd;
use loopd_tests::script::Recorded;
use loopd_tests::{Gate, Script, Turn, call};
use serde_json::{Value, json};

const COMPACT: &str = "session.history.compact";

fn asks_for_summary(request: &Recorded) -> bool {
    let asked = request.last_user_text();
    asked.starts_with("Please create a detailed summary")
}

/// When the daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// Clients were told that it begins.
    Began,
    /// The provider has the request for the summary.
    Asked,
    /// So long after the provider answers.
    Answered(Duration),
    /// Clients were told that it has ended.
    Ended,
}

/// Twenty moments. Most are around the answer: what is committed with it is what a kill could divide.
fn moments() -> Vec<Moment> {
    let answered = (0..17).map(|step| Moment::Answered(Duration::from_micros(step * 700)));
    let first = [Moment::Began, Moment::Asked];
    first
        .into_iter()
        .chain(answered)
        .chain([Moment::Ended])
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_step_the_history_is_as_before_or_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let (mut before, mut after) = (0, 0);
    for moment in moments() {
        let gate = Gate::new();
        let held = gate.clone();
        let script = Script::answering(move |request| {
            if asks_for_summary(request) {
                return Turn::any()
                    .says("<overview>They talked.</overview>")
                    .held_by(&held);
            }
            Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(30)))
        });
        let mut script = script.await;
        let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
        let defaults = json!({"model": "scripted", "provider": provider});
        let (daemon, client) = Loopd::private(folder.path(), defaults.clone());
        let mut session = client.create(json!({"availableTools": ["view"]})).await;
        for number in 1..=3 {
            session.ask(&format!("question {number}")).await;
        }
        // Nobody waits for the answer: the daemon may be gone before.
        let params = json!({"sessionId": session.id});
        let compacting = client.pending(COMPACT, params);
        match moment {
            Moment::Began => {
                session.next("session.compaction_start").await;
            }
            Moment::Asked => gate.reached().await,
            Moment::Answered(later) => {
                gate.reached().await;
                gate.open();
                tokio::time::sleep(later).await;
            }
            Moment::Ended => {
                gate.open();
                session.next("session.compaction_complete").await;
            }
        }
        daemon.kill_hard().await;
        client.closed().await;
        drop(compacting);
        gate.open();
        let (daemon, client) = Loopd::private(folder.path(), defaults);
        let mut resumed = client.resume(&session.id, json!({})).await;
        resumed.ask("and now?").await;
        let request = script.last_request();
        let text = Value::from(request.messages().to_vec()).to_string();
        let is_compacted = text.contains("They talked.");
        let messages = request.messages().len();
        let whole = text.matches("well, a town").count();
        match (is_compacted, messages, whole) {
            (false, 8, 3) => before += 1,
            (true, 3, 0) => after += 1,
            between => panic!("{moment:?}: {between:?}: {text}"),
        }
        let stored = resumed.messages().await;
        let count = |kind: &str| stored.iter().filter(|event| event["type"] == kind).count();
        assert_eq!(count("user.message"), 4, "{moment:?}");
        let ended = count("session.compaction_complete");
        assert_eq!(count("session.compaction_start"), ended, "{moment:?}");
        drop(client);
        daemon.kill_hard().await;
        script.finish();
    }
    println!("{before} as before, {after} compacted");
    assert!(before >= 2 && after >= 1, "{before} before, {after} after");
}

fn turns() -> usize {
    let given = std::env::var("LOOPD_LONG_TURNS").ok();
    given.map_or(40, |text| text.parse().unwrap())
}

/// The memory of a process that is not shared with a file, in kilobytes.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let mut words = line.unwrap().split_whitespace().skip(1);
    words.next().unwrap().parse().unwrap()
}

/// What the model saw at some turns: the turn, the memory of the daemon and the time since the last one.
type Figures = Vec<(usize, u64, Duration)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_session_takes_no_more_memory_with_every_turn() {
    let folder = tempfile::tempdir().unwrap();
    let most = turns();
    let figures: Arc<Mutex<Figures>> = Arc::default();
    let process = Arc::new(Mutex::new(0));
    let (noted, of) = (figures.clone(), process.clone());
    let (mut turn, mut since) = (0, Instant::now());
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            let text = format!("<overview>{}</overview>", "looked at notes ".repeat(40));
            return Turn::any().says(&text);
        }
        turn += 1;
        if [10, 100, 300, 1_000, 2_000, 3_000].contains(&turn) || turn > most {
            let figure = (turn, memory(*of.lock().unwrap()), since.elapsed());
            noted.lock().unwrap().push(figure);
            since = Instant::now();
        }
        if turn > most {
            return Turn::any().says("done");
        }
        let range = json!([turn % 40 + 1, turn % 40 + 30]);
        let look = json!({"path": "notes.txt", "view_range": range});
        Turn::any().calls([call(&format!("c{turn}"), "view", look)])
    });
    let mut script = script.await.forgetful();
    let lines = (1..=80).map(|line| format!("line {line} of some words about parsers\n"));
    std::fs::write(folder.path().join("notes.txt"), lines.collect::<String>()).unwrap();
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let defaults = json!({"model": "scripted", "provider": provider});
    let (daemon, client) = Loopd::permissive(folder.path(), defaults);
    *process.lock().unwrap() = daemon.child.id().unwrap();
    let mut session = client
        .create(json!({
            "modelCapabilities": {"limits": {"max_context_window_tokens": 16_000}},
            "availableTools": ["view"],
        }))
        .await;
    session.send("look").await;
    session
        .next_slowly("the end", |event| event["type"] == "session.idle")
        .await;
    let figures = figures.lock().unwrap().clone();
    let mut last = 0;
    for (turn, memory, elapsed) in &figures {
        let each = elapsed.as_millis() / (turn - last) as u128;
        println!("turn {turn}: {memory} kB, {each} ms a turn");
        last = *turn;
    }
    let at = |wanted: usize| figures.iter().find(|figure| figure.0 >= wanted);
    let (Some(early), Some(late)) = (at(300), figures.last()) else {
        daemon.kill_hard().await;
        return script.finish();
    };
    let grown = late.1.saturating_sub(early.1);
    assert!(grown < 8 * 1024, "{grown} kB more than at turn 300");
    daemon.kill_hard().await;
    script.finish();
}
