//! What hooks cost a tool call: a thousand calls with a client hook that has nothing to say, beside a
//! thousand without.

use rustix::process::Signal;

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;

const CALLS: usize = 50;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "hooks", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    let session = client.create(Delivery::Whole).await;
    client.turn(&session, "bench:tools=5").await;
    let (mut plain, mut hooked) = <(Samples, Samples)>::default();
    // Both in turns, so that the machine is as busy for one as for the other.
    for _ in 0..bench.effort.rounds(20) {
        let session = client.create(Delivery::Whole).await;
        calls(bench, &mut client, &session, &mut plain).await;
        let session = client.create_hooked().await;
        calls(bench, &mut client, &session, &mut hooked).await;
    }
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    let more = hooked.median() - plain.median();
    vec![
        Row::new("per tool turn without hooks, p50", "ms", plain.median()),
        Row::new(
            "per tool turn with a client's hooks, p50",
            "ms",
            hooked.median(),
        ),
        Row::new("what the hooks of a client add to a tool turn", "ms", more).at_most(1.0),
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
