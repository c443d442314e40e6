//! From nothing to a handshake and a first answer, and what an idle daemon holds.

use std::time::Duration;

use rustix::process::Signal;

use super::Bench;
use crate::client::{Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;
use crate::usage;

/// How long a daemon is left alone before its idle memory is taken.
const SETTLE: Duration = Duration::from_millis(100);

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let (mut cold, mut warm, mut answer) = <(Samples, Samples, Samples)>::default();
    let (mut idle, mut relay, mut used) = <(Samples, Samples, Samples)>::default();
    for round in 0..bench.effort.rounds(10) {
        bench.floors.sample();
        let bed = fresh(
            &bench.folder,
            &format!("start-{round}"),
            &bench.program,
            &bench.mock,
        );
        let first = bed.start();
        first.connect().await;
        cold.push_time(first.spawned.elapsed());
        tokio::time::sleep(SETTLE).await;
        idle.push(usage::memory(&first.pids()));
        relay.push(usage::memory_of(first.relay()));
        let second = bed.start();
        second.connect().await;
        warm.push_time(second.spawned.elapsed());
        second.leave().await;
        first.leave().await;
        bed.end_daemon(Signal::TERM).await;

        let bed = fresh(
            &bench.folder,
            &format!("answer-{round}"),
            &bench.program,
            &bench.mock,
        );
        let mut client = bed.start();
        client.connect().await;
        let session = client.create(Delivery::Whole).await;
        client.send(&session, "Say something.").await;
        answer.push_time(client.until("assistant.message").await - client.spawned);
        client.until("session.idle").await;
        tokio::time::sleep(SETTLE).await;
        used.push(usage::memory(&client.pids()));
        client.leave().await;
        bed.end_daemon(Signal::TERM).await;
    }
    let empty = bench.floors.empty_program.median();
    vec![
        Row::new("spawn to handshake, no daemon", "ms", cold.median())
            .floor(2.0 * empty, "two empty programs")
            .at_most(15.0),
        Row::new("spawn to handshake, daemon running", "ms", warm.median())
            .floor(empty, "an empty program")
            .at_most(5.0),
        Row::new("spawn to first answer, no daemon", "ms", answer.median())
            .floor(2.0 * empty, "two empty programs")
            .at_most(25.0),
        Row::new("idle memory, relay and daemon", "MB", idle.median()).at_most(8.0),
        Row::new("idle memory, relay alone", "MB", relay.median()).at_most(2.0),
        Row::new("memory after one turn", "MB", used.median()).at_most(10.0),
    ]
}
