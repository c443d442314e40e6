//! One session: creating it, plain turns, tool turns, and what they cost.

use std::time::Instant;

use rustix::process::Signal;

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::{Samples, milliseconds};
use crate::table::Row;
use crate::usage;

const TOOL_TURNS: usize = 50;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "turn", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    // The first of everything is another row.
    let session = client.create(Delivery::Whole).await;
    client.turn(&session, "Warm up.").await;
    let mut rows = vec![create(bench, &client).await];
    rows.extend(plain(bench, &mut client).await);
    rows.extend(tools(bench, &mut client).await);
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    rows
}

async fn create(bench: &mut Bench, client: &Client) -> Row {
    let mut created = Samples::default();
    for _ in 0..bench.effort.rounds(25) {
        bench.floors.sample();
        let start = Instant::now();
        client.create(Delivery::Whole).await;
        created.push_time(start.elapsed());
    }
    Row::new("session create, warm", "ms", created.median())
        .floor(bench.floors.commit.median(), "a commit")
        .at_most(1.0)
}

async fn plain(bench: &mut Bench, client: &mut Client) -> Vec<Row> {
    let (mut turn, mut leaves) = <(Samples, Samples)>::default();
    let session = client.create(Delivery::Whole).await;
    client.turn(&session, "Warm up.").await;
    let rounds = bench.effort.rounds(50);
    for _ in 0..rounds {
        bench.floors.sample();
        bench.mock.take_asked();
        let start = Instant::now();
        turn.push_time(client.turn(&session, "Say something.").await);
        leaves.push_time(bench.mock.take_asked()[0] - start);
    }
    let before = usage::processor(&client.pids());
    for _ in 0..2 * rounds {
        client.turn(&session, "Say something.").await;
    }
    let spent = usage::processor(&client.pids()).saturating_sub(before);
    let each = milliseconds(spent) / f64::from(u32::try_from(2 * rounds).unwrap_or(1));
    let http = bench.floors.http_round_trip.median();
    vec![
        Row::new("one turn, prompt to idle", "ms", turn.median())
            .floor(
                http + 2.0 * bench.floors.commit.median(),
                "HTTP round trip + 2 commits",
            )
            .at_most(2.5),
        Row::new("one turn, p95", "ms", turn.percentile(95)),
        Row::new("prompt to model request leaves", "ms", leaves.median()).at_most(1.0),
        Row::new("CPU per turn", "ms", each).at_most(2.0),
    ]
}

async fn tools(bench: &mut Bench, client: &mut Client) -> Vec<Row> {
    let (mut whole, mut each, mut spent) = <(Samples, Samples, Samples)>::default();
    for _ in 0..bench.effort.rounds(5) {
        bench.floors.sample();
        let session = client.create(Delivery::Whole).await;
        bench.mock.take_asked();
        let before = usage::processor(&client.pids());
        let prompt = format!("bench:tools={TOOL_TURNS}");
        whole.push_time(client.turn(&session, &prompt).await);
        spent.push_time(usage::processor(&client.pids()).saturating_sub(before));
        let asked = bench.mock.take_asked();
        assert_eq!(
            asked.len(),
            TOOL_TURNS + 1,
            "the model was asked once per call"
        );
        for pair in asked.windows(2) {
            each.push_time(pair[1] - pair[0]);
        }
    }
    let floors = &bench.floors;
    let floor = floors.bash.median() + floors.http_round_trip.median() + floors.commit.median();
    let of = "bash + HTTP round trip + commit";
    vec![
        Row::new("50 tool turns of `echo hi`", "ms", whole.median())
            .floor(50.0 * floor, of)
            .at_most(200.0),
        Row::new("per tool turn, p50", "ms", each.median())
            .floor(floor, of)
            .at_most(4.0),
        Row::new("per tool turn, p95", "ms", each.percentile(95)).at_most(6.0),
        Row::new("CPU for those 50 turns", "ms", spent.median()).at_most(150.0),
    ]
}
