use std::time::Instant;

use super::*;

/// How much the memory of this process may grow, in bytes.
const GROWTH: u64 = 16 * 1024 * 1024;

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[expect(clippy::print_stderr, reason = "the figures are for people")]
/// Runs a command with much output; checks memory, file, beginning and end.
async fn flood(mut shell: Shell, command: &str, bytes: u64, ends_with: &str) {
    let before = resident();
    let started = Instant::now();
    let run = shell.start(command).await.unwrap();
    let mut most = before;
    let mut changes = run.changes();
    while !matches!(run.state(), CommandState::Ended(_)) {
        timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
        most = most.max(resident());
    }
    let took = started.elapsed();
    assert_eq!(run.state(), CommandState::Ended(CommandEnd::Exited(0)));
    let OutputBody::Preview {
        bytes: total,
        tail,
        saved: SavedOutput::File { path, bytes: saved },
        ..
    } = run.output().body
    else {
        unreachable!("{:?}", run.output());
    };
    assert_eq!(total, bytes);
    assert_eq!(saved, bytes);
    assert_eq!(path.metadata().unwrap().len(), bytes);
    assert!(tail.ends_with(ends_with), "{tail}");
    let growth = most.saturating_sub(before);
    eprintln!("{command}: {took:?}, memory +{} KiB", growth / 1024);
    assert!(growth < GROWTH, "{command}: memory grew by {growth}");
}

#[tokio::test]
async fn a_hundred_megabytes_of_lines_cost_no_memory() {
    let fixture = Fixture::new();
    let command = "yes 0123456789abcde | head -c 100000000; echo end";
    flood(fixture.terminal().await, command, 100_000_004, "end").await;
    flood(fixture.process().await, command, 100_000_004, "end").await;
}

#[tokio::test]
async fn one_line_of_a_hundred_megabytes_costs_no_memory() {
    let fixture = Fixture::new();
    let command = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end";
    flood(fixture.terminal().await, command, 100_000_005, "x\nend").await;
}

#[tokio::test]
async fn noise_is_read_as_text_and_costs_no_memory() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let before = resident();
    let command =
        "stty -echo; head -c 2000000 /dev/urandom; printf '\\030\\033c\\033\\\\\\nend\\n'";
    // Without echo: the noise contains queries, and their replies would be echoed at the end.
    let run = shell.start(command).await.unwrap();
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    let growth = resident().saturating_sub(before);
    assert!(growth < GROWTH, "memory grew by {growth}");
    let OutputBody::Preview {
        tail,
        saved: SavedOutput::File { path, .. },
        ..
    } = run.output().body
    else {
        unreachable!("{:?}", run.output());
    };
    assert!(tail.ends_with("end"), "{tail}");
    let saved = std::fs::read_to_string(path).unwrap();
    let wrong = |shown: &char| shown.is_control() && !matches!(shown, '\n' | '\t');
    assert_eq!(
        saved.chars().find(wrong),
        None,
        "noise left a control character"
    );
}

#[tokio::test]
async fn a_flood_is_stopped_at_once() {
    let fixture = Fixture::new();
    for mut shell in [fixture.terminal().await, fixture.process().await] {
        let run = shell.start("yes").await.unwrap();
        until(&run, |run| {
            matches!(run.output().body, OutputBody::Preview { .. })
        })
        .await;
        let before = Instant::now();
        run.stop().await;
        assert!(
            before.elapsed() < Duration::from_millis(300),
            "{:?}",
            before.elapsed()
        );
        assert_eq!(run.state(), CommandState::Ended(CommandEnd::Interrupted));
    }
}

#[tokio::test]
async fn an_escape_sequence_without_an_end_costs_no_memory() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let before = resident();
    let command =
        "printf '\\033]0;'; head -c 20000000 /dev/zero | tr '\\0' x; printf '\\007end\\n'";
    assert_eq!(
        run(&mut shell, command).await,
        ("end\n".to_owned(), CommandEnd::Exited(0))
    );
    let growth = resident().saturating_sub(before);
    assert!(growth < GROWTH, "memory grew by {growth}");
}
