//! Agents in the background under a daemon that is killed again and again: what comes of each is
//! told to its parent's model exactly once.
//!
//! LOOPD_AGENT_PARENTS says how many sessions start agents (3 unless told), LOOPD_AGENT_TASKS how
//! many each of them starts at least (5), LOOPD_AGENT_KILLS how often the daemon is killed (4),
//! LOOPD_AGENT_SEED makes the kills happen at the same moments again. `scripts/stress-agents` is the
//! long run.

mod judge;
mod model;
mod report;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use loopd_proto::id::SessionId;
use loopd_store::{Location, SqliteStore};
use loopd_tests::binary::Loopd;
use loopd_tests::dice::{Dice, number};
use loopd_tests::{Client, Session};
use serde_json::{Value, json};

use judge::{Figures, Judge};
use model::Memory;
use report::Report;

/// How often a parent is asked to go on before it is given up.
const PROMPTS: usize = 200;

fn knob(name: &str, default: usize) -> usize {
    number(name).map_or(default, |number| usize::try_from(number).unwrap())
}

/// The sizes of one run.
struct Run {
    parents: usize,
    tasks: usize,
    kills: usize,
    seed: u64,
    dice: Dice,
}

impl Run {
    fn chosen() -> Self {
        let seed = number("LOOPD_AGENT_SEED").unwrap_or_else(|| {
            let random = ulid::Ulid::generate().0 & u128::from(u64::MAX);
            random.try_into().unwrap()
        });
        Self {
            parents: knob("LOOPD_AGENT_PARENTS", 3),
            tasks: knob("LOOPD_AGENT_TASKS", 5),
            kills: knob("LOOPD_AGENT_KILLS", 4),
            seed,
            dice: Dice::new(seed),
        }
    }

    /// Waits for the moment to kill the daemon: after so many requests, events or milliseconds, of
    /// which there are more when there is more to do between two kills.
    async fn moment(&mut self, memory: &Memory, client: &Client) -> String {
        let work = (self.parents * self.tasks).div_ceil(self.kills.max(1)) as u64;
        let at_most = |number: u64| usize::try_from(number).unwrap();
        match self.dice.roll(3) {
            0 => {
                let count = at_most(1 + self.dice.roll(5 * work));
                let mut asked = memory.asked.subscribe();
                let until = *asked.borrow() + count;
                let wait = asked.wait_for(|asked| *asked >= until);
                // Less may be left to do than was thought.
                let came = tokio::time::timeout(Duration::from_secs(2), wait).await;
                format!("request {count} ({})", came.is_ok())
            }
            1 => {
                let count = at_most(1 + self.dice.roll(60 * work));
                let came = tokio::time::timeout(Duration::from_secs(2), client.heard(count)).await;
                format!("event {count} ({})", came.is_ok())
            }
            _ => {
                let time = Duration::from_millis(self.dice.roll(60 * work));
                tokio::time::sleep(time).await;
                format!("{time:?}")
            }
        }
    }
}

/// A daemon that allows everything, and its client.
fn start(home: &Path, defaults: &Value) -> (Loopd, Client) {
    let mut command = Loopd::command(home);
    command.env("LOOPD_AGENTS_MAX_CONCURRENT", "8");
    Loopd::spawn(command, &["--private", "--yolo"], defaults.clone())
}

/// A line of /proc/<pid>/status, in KiB.
fn memory_of(daemon: &Loopd, line: &str) -> usize {
    let path = format!("/proc/{}/status", daemon.child.id().unwrap());
    let status = std::fs::read_to_string(path).unwrap();
    let value = status.lines().find_map(|status| status.strip_prefix(line));
    let value = value.unwrap().trim_start_matches(':').trim();
    value.trim_end_matches(" kB").parse().unwrap()
}

/// How many processes were started by the daemon of this home.
fn alive(home: &Path) -> usize {
    let mark = format!("LOOPD_HOME={}", home.display());
    let mark = [mark.as_bytes(), b"\0"].concat();
    let entries = std::fs::read_dir("/proc").unwrap();
    let environments =
        entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("environ")).ok());
    environments
        .filter(|bytes| bytes.windows(mark.len()).any(|window| window == mark))
        .count()
}

/// How many agents a session's log says were started.
async fn started(session: &Session) -> usize {
    let events = session.messages().await;
    let starts = events
        .iter()
        .filter(|event| event["type"] == "subagent.started");
    starts.count()
}

async fn rest(session: &mut Session) {
    let idle = |event: &Value| event["type"] == "session.idle";
    session.next_slowly("a session at rest", idle).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_each_is_told_of_once() {
    let began = Instant::now();
    let mut run = Run::chosen();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap().join("home");
    std::fs::create_dir(&home).unwrap();
    let (mut script, memory) = model::start(run.tasks).await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let defaults = json!({"model": "scripted", "provider": provider});
    let (mut daemon, client) = start(&home, &defaults);
    let mut sessions = Vec::new();
    for _ in 0..run.parents {
        sessions.push(client.create(json!({})).await);
    }
    let mut story = format!("seed {}", run.seed);
    let mut peak = 0;
    for _ in 0..run.kills {
        prompt(&sessions).await;
        let client = sessions[0].client().clone();
        let moment = run.moment(&memory, &client).await;
        story = format!("{story}, {moment}");
        peak = peak.max(memory_of(&daemon, "VmHWM"));
        daemon.kill_hard().await;
        client.closed().await;
        let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
        let (next, client) = start(&home, &defaults);
        daemon = next;
        let resumed = ids
            .iter()
            .map(|id| client.resume(id, json!({"continuePendingWork": true})));
        sessions = join_all(resumed).await;
    }
    finish(&mut sessions, run.tasks, &story).await;
    peak = peak.max(memory_of(&daemon, "VmHWM"));
    let resting = memory_of(&daemon, "VmRSS");
    let status = sessions[0]
        .client()
        .call("loopd.daemonStatus", json!({}))
        .await;
    let live = status["sessions"].as_array().unwrap();
    assert_eq!(
        live.len(),
        run.parents,
        "{story}: agents are still in memory"
    );
    let ids: Vec<SessionId> = sessions.iter().map(|it| it.id.as_str().into()).collect();
    sessions[0].client().vanish().await;
    assert!(daemon.exited().await.success(), "{story}");
    assert_eq!(alive(&home), 0, "{story}: processes are left");
    let figures = judge(&home, &ids, &memory, &story).await;
    assert!(figures.tasks >= run.parents * run.tasks, "{story}");
    let size = home.join("loopd.db").metadata().unwrap().len();
    let report = Report {
        run: &run,
        figures: &figures,
        time: began.elapsed(),
        peak,
        resting,
        database: size,
    };
    report.tell();
    script.finish();
}

/// Lets all parents start more agents.
async fn prompt(sessions: &[Session]) {
    for (number, session) in sessions.iter().enumerate() {
        session.send(&format!("parent {number}: go on")).await;
    }
}

/// Asks until every parent has started all it should and everything has come to rest.
async fn finish(sessions: &mut [Session], tasks: usize, story: &str) {
    for _ in 0..PROMPTS {
        prompt(sessions).await;
        join_all(sessions.iter_mut().map(rest)).await;
        let counts = join_all(sessions.iter().map(started)).await;
        if counts.iter().all(|count| *count >= tasks) {
            // Whatever was told when the daemon died is now sent to the model for certain.
            prompt(sessions).await;
            join_all(sessions.iter_mut().map(rest)).await;
            return;
        }
    }
    panic!("{story}: the parents do not get on");
}

async fn judge(home: &Path, ids: &[SessionId], memory: &Arc<Memory>, story: &str) -> Figures {
    let opened = SqliteStore::open(Location::File(home.join("loopd.db")))
        .await
        .unwrap();
    let mut judge = Judge {
        store: &opened,
        story,
        figures: Figures::default(),
    };
    let last = memory.last.lock().unwrap().clone();
    for (number, id) in ids.iter().enumerate() {
        judge.parent(id, &last[&number]).await;
    }
    judge.figures
}
