//! Many sessions: what they hold while open, and how long they take when all work at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;
use crate::usage;

const FEW: usize = 20;
const MANY: usize = 100;
const TOOL_TURNS: usize = 10;
/// How often memory is looked at in the run that is not timed.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let mut rows = open(bench).await;
    rows.extend(at_once(bench).await);
    rows
}

/// Sessions that have had one turn each and stay open.
async fn open(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "open", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    let mut held = HashMap::new();
    for number in 1..=MANY {
        let session = client.create(Delivery::Whole).await;
        client.turn(&session, "Say something.").await;
        if [1, FEW, MANY].contains(&number) {
            held.insert(number, usage::memory(&client.pids()));
        }
    }
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    let each = (held[&MANY] - held[&1]) / 99.0;
    vec![
        Row::new("20 sessions open", "MB", held[&FEW]).at_most(12.0),
        Row::new("100 sessions open", "MB", held[&MANY]).at_most(20.0),
        Row::new("memory per session", "MB", each).at_most(0.1),
    ]
}

async fn at_once(bench: &mut Bench) -> Vec<Row> {
    let mut times = Samples::default();
    let mut peak = f64::NAN;
    let rounds = bench.effort.rounds(5);
    for round in 0..=rounds {
        bench.floors.sample();
        let bed = fresh(
            &bench.folder,
            &format!("crowd-{round}"),
            &bench.program,
            &bench.mock,
        );
        let mut client = bed.start();
        client.connect().await;
        // Looking at memory stops the looked-at for a moment: the last round is for that alone.
        if round < rounds {
            times.push(together(&mut client).await.as_secs_f64());
        } else {
            let watch = Watch::begin(client.pids());
            together(&mut client).await;
            peak = watch.end();
        }
        client.leave().await;
        bed.end_daemon(Signal::TERM).await;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = f64::from(u32::try_from(cores).unwrap_or(1));
    let bash = bench.floors.bash.median() / 1000.0;
    vec![
        Row::new("20 sessions × 10 tool turns at once", "s", times.median())
            .floor(200.0 * bash / cores, "200 bash on all cores")
            .at_most(0.6),
        Row::new("peak memory in that run", "MB", peak).at_most(30.0),
    ]
}

/// All sessions get their prompt, then all come to rest.
async fn together(client: &mut Client) -> Duration {
    let mut sessions = Vec::new();
    for _ in 0..FEW {
        sessions.push(client.create(Delivery::Whole).await);
    }
    let start = Instant::now();
    let prompt = format!("bench:tools={TOOL_TURNS}");
    futures::future::join_all(sessions.iter().map(|session| client.send(session, &prompt))).await;
    let mut end = start;
    for _ in &sessions {
        end = client.until("session.idle").await;
    }
    end - start
}

/// Looks at memory until told to stop.
struct Watch {
    stop: Arc<AtomicBool>,
    looking: std::thread::JoinHandle<f64>,
}

impl Watch {
    fn begin(pids: Vec<u32>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let looking = std::thread::spawn(move || {
            let mut peak = 0.0_f64;
            while !stopped.load(Ordering::Relaxed) {
                peak = peak.max(usage::memory(&pids));
                std::thread::sleep(LOOK);
            }
            peak
        });
        Self { stop, looking }
    }

    fn end(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.looking.join().unwrap()
    }
}
