use std::time::Instant;

use super::*;

const ROUNDS: u32 = 100;

/// What a command costs beyond what a person would pay for it.
#[tokio::test]
async fn a_command_costs_little_more_than_a_bare_one() {
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
        times[times.len() / 2]
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
    assert!(
        as_process <= bare * 2,
        "{as_process:?} as a process, {bare:?} bare"
    );
}
