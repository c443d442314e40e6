//! The bench: a release `loopd` against a model that answers at once, beside the floors of the same
//! machine in the same run. `scripts/bench` builds and runs it.
//!
//! It prints one table and judges nothing: a noisy machine is no failure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench fails by panicking, reads the clock and prints"
)]

mod client;
mod floor;
mod measure;
mod mock;
mod samples;
mod table;
mod usage;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use floor::Floors;
use measure::{Bench, Effort, crowd, hooks, long, restart, shell, start, stream, turn};
use mock::Mock;
use table::Row;

/// How the table is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Text,
    Json,
}

fn main() {
    let (mut output, mut effort, mut program) = (Output::Text, Effort::Full, None);
    let mut only = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => output = Output::Json,
            "--quick" => effort = Effort::Quick,
            "--loopd" => program = arguments.next().map(PathBuf::from),
            part if !part.starts_with('-') => only.push(part.to_owned()),
            _ => {
                eprintln!(
                    "usage: bench [--json] [--quick] [--loopd PATH] [start|turn|hooks|shell|stream|crowd|restart|long]…"
                );
                std::process::exit(2);
            }
        }
    }
    let program = program.unwrap_or_else(loopd_tests::binary::path);
    let rows = run(&program, effort, &only);
    match output {
        Output::Text => print!("{}", table::text(&rows)),
        Output::Json => println!("{}", table::json(&rows)),
    }
}

/// Measures all parts, or those that were named, in a folder that is removed afterwards.
fn run(program: &Path, effort: Effort, only: &[String]) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::Builder::new()
        .prefix("loopd-bench")
        .tempdir()
        .unwrap();
    let mock = Mock::start();
    let mut bench = Bench {
        program: program.to_path_buf(),
        folder: folder.path().to_path_buf(),
        floors: Floors::new(folder.path(), &mock.address()),
        mock,
        effort,
    };
    let wanted = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    let mut rows = runtime.block_on(async {
        let mut rows = Vec::new();
        if wanted("start") {
            rows.extend(start::measure(&mut bench).await);
        }
        if wanted("turn") {
            rows.extend(turn::measure(&mut bench).await);
        }
        if wanted("hooks") {
            rows.extend(hooks::measure(&mut bench).await);
        }
        if wanted("shell") {
            rows.extend(shell::measure(&mut bench).await);
        }
        if wanted("stream") {
            rows.extend(stream::measure(&mut bench).await);
        }
        if wanted("crowd") {
            rows.extend(crowd::measure(&mut bench).await);
        }
        if wanted("restart") {
            rows.extend(restart::measure(&mut bench).await);
        }
        if wanted("long") {
            rows.extend(long::measure(&mut bench).await);
        }
        rows
    });
    rows.push(installed(program));
    rows.extend(floors(&bench.floors));
    rows
}

fn installed(program: &Path) -> Row {
    let bytes = program.metadata().map_or(0, |file| file.len());
    let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
    Row::new("installed size", "MB", bytes / 1_000_000.0).at_most(25.0)
}

fn floors(floors: &Floors) -> Vec<Row> {
    vec![
        Row::new(
            "floor: an empty program",
            "ms",
            floors.empty_program.median(),
        ),
        Row::new("floor: bash -c 'echo hi'", "ms", floors.bash.median()),
        Row::new("floor: socket round trip", "ms", floors.round_trip.median()),
        Row::new(
            "floor: HTTP round trip, 40 kB",
            "ms",
            floors.http_round_trip.median(),
        ),
        Row::new("floor: committed append", "ms", floors.commit.median()),
    ]
}
