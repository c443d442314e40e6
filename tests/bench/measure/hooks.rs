//! What hooks cost a tool call: a thousand calls with a client hook that has nothing to say, beside a
//! thousand without.

use rustix::process::Signal;

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;

/// The calls of one session, and the sessions of each kind.
const CALLS: usize = 50;
const SESSIONS: usize = 20;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "hooks", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    let session = client.create(Delivery::Whole).await;
    client.turn(&session, "bench:tools=5").await;
    let (mut plain, mut hooked) = <(Samples, Samples)>::default();
    // Both in turns, so that the machine is as busy for one as for the other.
    for _ in 0..bench.effort.rounds(SESSIONS) {
        let session = client.create(Delivery::Whole).await;
        calls(bench, &mut client, &session, &mut plain).await;
        assert_eq!(client.guarded(), hooked.len(), "nobody guards these calls");
        let session = client.create_hooked().await;
        calls(bench, &mut client, &session, &mut hooked).await;
        assert_eq!(client.guarded(), hooked.len(), "each call is guarded once");
    }
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    let count = hooked.len();
    assert_eq!(plain.len(), count);
    let row = |what: &str, measured: f64| Row::new(format!("{what} {count} calls"), "ms", measured);
    vec![
        row("tool call without hooks, p50 of", plain.median()),
        row("tool call with a client's hooks, p50 of", hooked.median()),
        row(
            "what a client's hooks add to a call, p50 of",
            hooked.median() - plain.median(),
        )
        .at_most(1.0),
        row(
            "what a client's hooks add to a call, mean of",
            hooked.mean() - plain.mean(),
        ),
        row("tool call without hooks, p95 of", plain.percentile(95)),
        row(
            "tool call with a client's hooks, p95 of",
            hooked.percentile(95),
        ),
    ]
}

/// Makes calls one after the other; takes the time from one model request to the next.
async fn calls(bench: &Bench, client: &mut Client, session: &str, each: &mut Samples) {
    bench.mock.take_asked();
    client.turn(session, &format!("bench:tools={CALLS}")).await;
    let asked = bench.mock.take_asked();
    assert_eq!(asked.len(), CALLS + 1, "the model was asked once per call");
    for pair in asked.windows(2) {
        each.push_time(pair[1] - pair[0]);
    }
}
