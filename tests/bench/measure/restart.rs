//! A long history: what it adds to a turn, and how soon it is there again after a kill.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;

const TURNS: usize = 200;
/// How many turns at either end are looked at.
const ENDS: usize = 20;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "restart", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    let session = client.create(Delivery::Whole).await;
    let (mut early, mut late) = <(Samples, Samples)>::default();
    // A paragraph, so that the history has some size.
    let prompt = "Tell me more about this. ".repeat(40);
    let turns = bench.effort.rounds(TURNS);
    for turn in 0..turns {
        let time = client.turn(&session, &prompt).await;
        if turn < ENDS.min(turns / 2) {
            early.push_time(time);
        } else if turn + ENDS >= turns {
            late.push_time(time);
        }
    }
    let before = history(&client, &session).await;
    let size = megabytes(&before);
    let (mut resumed, mut answered) = <(Samples, Samples)>::default();
    let mut kept = true;
    for _ in 0..bench.effort.rounds(10) {
        bench.floors.sample();
        bed.end_daemon(Signal::KILL).await;
        client.lost().await;
        client = bed.start();
        client.connect().await;
        client.resume(&session).await;
        resumed.push_time(client.spawned.elapsed());
        kept &= history(&client, &session).await.len() >= before.len();
        client.leave().await;

        bed.end_daemon(Signal::KILL).await;
        client = bed.start();
        client.connect().await;
        client.resume(&session).await;
        client.send(&session, "Go on.").await;
        answered.push_time(client.until("assistant.message").await - client.spawned);
        client.until("session.idle").await;
    }
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    let empty = bench.floors.empty_program.median();
    vec![
        Row::new("turn without history", "ms", early.median()).at_most(3.0),
        Row::new(
            format!("turn after {turns} turns, {size:.1} MB"),
            "ms",
            late.median(),
        )
        .at_most(3.0 + size),
        Row::new(
            format!("restart to resumed, {turns} turns"),
            "ms",
            resumed.median(),
        )
        .floor(2.0 * empty, "two empty programs")
        .at_most(15.0),
        Row::new("restart to next answer", "ms", answered.median())
            .floor(2.0 * empty, "two empty programs")
            .at_most(25.0),
        Row::new(
            "acknowledged work kept over SIGKILL",
            "1 is yes",
            f64::from(u8::from(kept)),
        )
        .at_least(1.0),
    ]
}

/// Everything the daemon tells of a session.
async fn history(client: &Client, session: &str) -> Vec<Value> {
    let mut told = client
        .call("session.getMessages", json!({"sessionId": session}))
        .await;
    match told["events"].take() {
        Value::Array(events) => events,
        other => panic!("the history is a list, not {other}"),
    }
}

fn megabytes(events: &[Value]) -> f64 {
    let bytes: usize = events.iter().map(|event| event.to_string().len()).sum();
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1_000_000.0
}
