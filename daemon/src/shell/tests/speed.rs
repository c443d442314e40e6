use std::time::Instant;

use super::*;

const ROUNDS: u32 = 100;

/// What a process costs is up to who starts it; the figure is printed for people.
#[expect(clippy::print_stderr, reason = "the figures are for people")]
#[tokio::test]
async fn a_command_in_a_live_shell_costs_no_more_than_a_bare_one() {
    let fixture = Fixture::new();
    let mut terminal = fixture.terminal().await;
    let mut process = fixture.process().await;
    let (mut bare, mut on_terminal, mut as_process) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = Instant::now();
        let output = tokio::process::Command::new("bash")
            .args(["-c", "echo hi"])
            .output()
            .await
            .unwrap();
        bare.push(before.elapsed());
        assert_eq!(output.stdout, b"hi\n");
        let before = Instant::now();
        assert_eq!(run(&mut terminal, "echo hi").await.0, "hi\n");
        on_terminal.push(before.elapsed());
        let before = Instant::now();
        assert_eq!(run(&mut process, "echo hi").await.0, "hi\n");
        as_process.push(before.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap()
    };
    let (bare, on_terminal, as_process) = (
        median(&mut bare),
        median(&mut on_terminal),
        median(&mut as_process),
    );
    eprintln!("bare {bare:?}, terminal {on_terminal:?}, process {as_process:?}");
    assert!(
        on_terminal <= bare,
        "{on_terminal:?} on a terminal, {bare:?} bare"
    );
}
