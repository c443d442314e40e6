//! One session of many more tool turns than its model could read at once: whether a turn costs the same
//! at its end as at its beginning.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use super::{Bench, Effort};
use crate::client::fresh;
use crate::samples::milliseconds;
use crate::table::Row;
use crate::usage;

/// The window of the model, in tokens.
const WINDOW: u64 = 16_000;

/// After how many turns the figures are told, and over how many turns before that a time is a mean.
const MARKS: [(usize, usize); 3] = [(10, 9), (300, 100), (3_000, 300)];

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "long", &bench.program, &bench.mock);
    let lines = (1..=80).map(|line| format!("line {line} of some words about parsers\n"));
    std::fs::write(bed.work.join("notes.txt"), lines.collect::<String>()).unwrap();
    let most = match bench.effort {
        Effort::Full => 3_000,
        Effort::Quick => 600,
        Effort::Smoke => 40,
    };
    let mut client = bed.start();
    client.connect().await;
    let session = client
        .create_with(json!({
            "modelCapabilities": {"limits": {"max_context_window_tokens": WINDOW}},
            "availableTools": ["view"],
            "systemMessage": {"mode": "replace", "content": "You are an agent in a test."},
        }))
        .await;
    let daemon = bed.daemon();
    client.send(&session, &format!("bench:long={most}")).await;
    let mut rows = Vec::new();
    let mut ends: Vec<Instant> = vec![Instant::now()];
    let mut compactions = 0;
    loop {
        let heard = client.next().await;
        match heard.kind.as_str() {
            "session.idle" => break,
            "session.compaction_complete" => compactions += 1,
            "tool.execution_complete" => {
                ends.push(heard.at);
                let turn = ends.len() - 1;
                let is_last = turn == most;
                let mark = MARKS.iter().find(|(at, _)| *at == turn);
                if let Some((_, over)) = mark.or(is_last.then_some(&(0, 20))) {
                    rows.extend(figures(&ends, *over, daemon));
                }
            }
            _ => {}
        }
    }
    assert_eq!(ends.len() - 1, most, "every turn has its result");
    rows.push(Row::new(
        format!("long session: compactions in {most} turns"),
        "",
        f64::from(compactions),
    ));
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    rows
}

/// What the last turns took, and what the daemon has in memory now.
fn figures(ends: &[Instant], over: usize, daemon: u32) -> Vec<Row> {
    let turn = ends.len() - 1;
    let over = over.min(turn);
    let took = ends[turn] - ends[turn - over];
    let turns = f64::from(u32::try_from(over).unwrap_or(1));
    vec![
        Row::new(
            format!("long session, turn {turn}: per turn"),
            "ms",
            milliseconds(took) / turns,
        ),
        Row::new(
            format!("long session, turn {turn}: memory of the daemon"),
            "MB",
            usage::memory_of(daemon),
        ),
        Row::new(
            format!("long session, turn {turn}: CPU of the daemon so far"),
            "ms",
            milliseconds(usage::processor(&[daemon])),
        ),
    ]
}
