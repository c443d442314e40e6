//! Streamed answers: how many deltas a second, and how late one is.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::process::Signal;

use super::Bench;
use crate::client::{Client, Delivery, fresh};
use crate::samples::Samples;
use crate::table::Row;

const DELTAS: usize = 2000;
const PACED: usize = 50;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let bed = fresh(&bench.folder, "stream", &bench.program, &bench.mock);
    let mut client = bed.start();
    client.connect().await;
    let session = client.create(Delivery::Streamed).await;
    client.turn(&session, "Warm up.").await;
    let (mut limit, mut rate) = <(Samples, Samples)>::default();
    for _ in 0..bench.effort.rounds(10) {
        bench.floors.sample();
        limit.push(bare_rate(bench));
        rate.push(burst(bench, &mut client, &session).await);
    }
    let mut late = Samples::default();
    for _ in 0..bench.effort.rounds(10) {
        bench.floors.sample();
        late.extend(&paced(bench, &mut client, &session).await);
    }
    client.leave().await;
    bed.end_daemon(Signal::TERM).await;
    let round_trip = bench.floors.round_trip.median();
    vec![
        Row::new("2000 streamed deltas", "deltas/s", rate.median())
            .floor(limit.median(), "the mock read directly")
            .at_least(100_000.0),
        Row::new("added latency of a paced delta, p50", "ms", late.median())
            .floor(round_trip, "socket round trip")
            .at_most(0.2),
        Row::new(
            "added latency of a paced delta, p95",
            "ms",
            late.percentile(95),
        )
        .at_most(0.5),
    ]
}

async fn burst(bench: &Bench, client: &mut Client, session: &str) -> f64 {
    client
        .send(session, &format!("bench:deltas={DELTAS}"))
        .await;
    let mut last = None;
    let mut seen = 0;
    loop {
        let heard = client.next().await;
        match heard.kind.as_str() {
            "assistant.message_delta" => {
                seen += 1;
                last = Some(heard.at);
            }
            "session.idle" => break,
            _ => {}
        }
    }
    assert_eq!(seen, DELTAS, "deltas were dropped");
    per_second(bench.mock.burst_began(), last.expect("a delta came"))
}

/// The same burst, read by nothing but a socket and a search for line ends.
fn bare_rate(bench: &Bench) -> f64 {
    let mut stream = TcpStream::connect(bench.mock.address()).unwrap();
    let body = format!(
        r#"{{"stream":true,"messages":[{{"role":"user","content":"bench:deltas={DELTAS}"}}]}}"#
    );
    let length = body.len();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
    write!(stream, "{head} {length}\r\n\r\n{body}").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let deltas = lines
        .filter(|line| line.contains("\"content\":\"word"))
        .take(DELTAS);
    assert_eq!(deltas.count(), DELTAS);
    per_second(bench.mock.burst_began(), Instant::now())
}

fn per_second(from: Instant, to: Instant) -> f64 {
    f64::from(u32::try_from(DELTAS).unwrap_or(u32::MAX)) / (to - from).as_secs_f64()
}

async fn paced(bench: &Bench, client: &mut Client, session: &str) -> Samples {
    client.send(session, &format!("bench:paced={PACED}")).await;
    let mut late = Samples::default();
    loop {
        let heard = client.next().await;
        let sent = heard
            .text
            .as_deref()
            .and_then(|text| bench.mock.sent_at(text));
        match (heard.kind.as_str(), sent) {
            ("assistant.message_delta", Some(sent)) => late.push_time(heard.at - sent),
            ("session.idle", _) => break,
            _ => {}
        }
    }
    assert_eq!(late.len(), PACED, "deltas were joined or dropped");
    late
}
