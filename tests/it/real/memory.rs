//! Output of any size costs the daemon no memory, on either kind of shell.
//!
//! LOOPD_OUTPUT_MB says how much each command prints (4 unless told; the long run takes 100).

use loopd_tests::binary::Loopd;
use loopd_tests::{Script, Turn, call};
use serde_json::json;

/// How much more memory the daemon may have used at most, in kilobytes.
const ROOM_KB: u64 = 16 * 1024;

fn megabytes() -> usize {
    let told = std::env::var("LOOPD_OUTPUT_MB").ok();
    told.map_or(4, |text| text.parse().unwrap())
}

/// The most memory that a process has had at once, in kilobytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let mut words = line.unwrap().split_whitespace().skip(1);
    words.next().unwrap().parse().unwrap()
}

async fn takes_no_room(backend: &str) {
    let bytes = megabytes() * 1_000_000;
    let commands = [
        format!("yes | head -c {bytes}"),
        format!("head -c {bytes} /dev/zero | tr '\\0' x"),
        format!("head -c {bytes} /dev/urandom"),
    ];
    let run = |id: usize, command: &str| {
        let arguments = json!({"command": command, "initial_wait": 600});
        call(&format!("call_{id}"), "bash", arguments)
    };
    let mut turns = vec![Turn::user("go").calls([run(0, "echo warm")])];
    for (index, command) in commands.iter().enumerate() {
        turns.push(Turn::results(["exited with exit code 0"]).calls([run(index + 1, command)]));
    }
    turns.push(Turn::results(["exited with exit code 0"]).says("done"));
    let mut script = Script::play(turns).await;
    let folder = tempfile::tempdir().unwrap();
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let mut command = Loopd::command(folder.path());
    command.env("LOOPD_SHELL_BACKEND", backend);
    let defaults = json!({"model": "scripted", "provider": provider});
    let (daemon, client) = Loopd::spawn(command, &["--private", "--yolo"], defaults);
    let process = daemon.child.id().unwrap();
    let mut session = client.create(json!({})).await;
    session.send("go").await;
    let done = |id: &str| {
        let id = id.to_owned();
        move |event: &serde_json::Value| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id.as_str()
        }
    };
    session
        .next_where("the first command", done("call_0"))
        .await;
    let mut before = peak(process);
    for (index, command) in commands.iter().enumerate() {
        let id = format!("call_{}", index + 1);
        session.next_slowly(command, done(&id)).await;
        let now = peak(process);
        let grown = now.saturating_sub(before);
        assert!(
            grown < ROOM_KB,
            "{command} took {grown} kB of the daemon's memory ({backend})"
        );
        before = now;
    }
    session.next("session.idle").await;
    drop(client);
    daemon.kill_hard().await;
    script.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_on_a_terminal_prints_is_not_kept_in_memory() {
    takes_no_room("terminal").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_without_a_terminal_prints_is_not_kept_in_memory() {
    takes_no_room("process").await;
}
