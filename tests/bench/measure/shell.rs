//! A command in either kind of shell, beside the same command run bare.

use std::collections::BTreeMap;
use std::time::Instant;

use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::{Lifetime, Processes};
use loopd_exec::terminal::{Backend, Shell, ShellSpec};

use super::Bench;
use crate::samples::Samples;
use crate::table::Row;

const ROUNDS: usize = 100;

pub(crate) async fn measure(bench: &mut Bench) -> Vec<Row> {
    let folder = bench.folder.join("shell");
    std::fs::create_dir_all(&folder).unwrap();
    let processes = Processes::new(&folder, KeepAlive::default());
    let spec = || ShellSpec {
        cwd: folder.clone(),
        env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        scratch: folder.join("scratch"),
        name_output: || "output.txt".to_owned(),
        filters: std::sync::Arc::new(loopd::redaction::file::FileMasks::default()),
        session: "bench".into(),
        lifetime: Lifetime::Turn,
        label: "bench".to_owned(),
        sandbox: None,
    };
    let open = |backend| Shell::open(&processes, backend, spec());
    let mut terminal = open(Backend::Terminal).await.unwrap();
    let mut process = open(Backend::Process).await.unwrap();
    let (mut bare, mut live, mut each) = <(Samples, Samples, Samples)>::default();
    for _ in 0..bench.effort.rounds(ROUNDS) {
        let before = Instant::now();
        let mut command = tokio::process::Command::new("bash");
        let output = command.args(["-c", "echo hi"]).output().await.unwrap();
        assert_eq!(output.stdout, b"hi\n");
        bare.push_time(before.elapsed());
        for (shell, times) in [(&mut terminal, &mut live), (&mut process, &mut each)] {
            let before = Instant::now();
            let run = shell.start("echo hi").await.unwrap();
            run.ended().await;
            times.push_time(before.elapsed());
        }
    }
    processes.shutdown().await;
    let bare = bare.median();
    let row = |what: &str, times: &Samples, limit: f64| {
        Row::new(what, "ms", times.median())
            .floor(bare, "bash -c 'echo hi'")
            .at_most(bare * limit)
    };
    vec![
        row("a command in a live terminal shell", &live, 1.0),
        row("a command as a process of its own", &each, 1.3),
    ]
}
