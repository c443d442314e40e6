//! Commands end with their lifetime while the daemon runs.

use super::nasty::NastyChildren;
use super::*;

const MANY: usize = 100;

#[tokio::test]
async fn a_command_is_listed_until_it_ends() {
    let (home, processes) = processes();
    let mut owned = processes
        .spawn(bash("echo out; echo err >&2; exit 3"))
        .await
        .unwrap();
    assert_eq!(processes.list(), [owned.entry()]);
    let mut said = String::new();
    let mut pipe = owned.output.take().unwrap();
    pipe.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "out\nerr\n");
    assert_eq!(owned.exit().await, Exit::Code(3));
    owned.gone().await;
    assert_eq!(processes.list(), []);
    let ledger = std::fs::read_dir(home.path().join("processes")).unwrap();
    let left: Vec<_> = ledger.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["holder"], "only the running holder is noted");
}

#[tokio::test]
async fn a_stopped_command_gets_sigterm_and_then_sigkill() {
    let (_home, processes) = processes();
    let polite = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 100; done";
    for (command, grace, expected) in [
        (polite, Duration::from_secs(30), Exit::Code(7)),
        (stubborn, Duration::from_millis(50), Exit::Signal(9)),
    ] {
        let mut owned = processes.spawn(bash(command)).await.unwrap();
        let mut byte = [0];
        let pipe = owned.output.as_mut().unwrap();
        pipe.read_exact(&mut byte).await.unwrap();
        assert_eq!(owned.stop(grace).await, expected);
        assert!(owned.is_gone());
    }
}

#[tokio::test]
async fn a_hundred_nasty_children_end_when_they_are_stopped() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = children
        .start(&processes, MANY, "s", &Lifetime::Daemon)
        .await;
    assert!(children.alive() >= MANY);
    let stops = owned
        .iter()
        .map(|owned| owned.stop(Duration::from_millis(100)));
    futures::future::join_all(stops).await;
    assert_eq!(children.alive(), 0, "they are dead when the stop resolves");
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn a_hundred_nasty_children_of_each_class_end_with_their_session() {
    let (_home, processes) = processes();
    let (children, other) = (NastyChildren::new(), NastyChildren::new());
    let turn = children.start(&processes, MANY, "s", &Lifetime::Turn).await;
    let session = children
        .start(&processes, MANY, "s", &Lifetime::Session)
        .await;
    // Dropping the handle of a session's command does not end it.
    drop(session);
    let neighbour = other.start(&processes, 6, "t", &Lifetime::Session).await;
    assert!(children.alive() >= 2 * MANY);
    processes.end_session(&"s".into()).await;
    assert_eq!(children.alive(), 0, "they are dead when it resolves");
    assert!(other.alive() >= neighbour.len(), "another session goes on");
    assert!(turn.iter().all(OwnedProcess::is_gone));
    processes.shutdown().await;
    assert_eq!(other.alive(), 0);
}

#[tokio::test]
async fn a_command_of_a_turn_ends_when_its_handle_is_dropped() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    drop(children.start(&processes, 12, "s", &Lifetime::Turn).await);
    children.is_dead("they were dropped").await;
}

#[tokio::test]
async fn processes_that_a_command_leaves_behind_are_listed_and_killed() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let mut spawn = children.child(0, Lifetime::Session);
    spawn.args = ["-c", "(setsid sleep 1000 >/dev/null 2>&1 &)"]
        .map(Into::into)
        .to_vec();
    let owned = processes.spawn(spawn).await.unwrap();
    assert_eq!(owned.exit().await, Exit::Code(0));
    assert_eq!(owned.entry().state, State::LeftBehind);
    assert_eq!(children.alive(), 1);
    owned.kill_leftovers().await;
    assert_eq!(children.alive(), 0);
    assert_eq!(owned.exit().await, Exit::Code(0));
}

#[tokio::test]
async fn shutdown_kills_all_commands_and_refuses_new_ones() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    for lifetime in [Lifetime::Turn, Lifetime::Session, Lifetime::Daemon] {
        std::mem::forget(children.start(&processes, 24, "s", &lifetime).await);
    }
    processes.shutdown().await;
    assert_eq!(children.alive(), 0);
    let late = processes.spawn(bash("true")).await;
    assert!(matches!(late, Err(SpawnError::Ending)), "{late:?}");
}

#[tokio::test]
async fn a_killed_holder_ends_its_commands_and_is_replaced() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = children.start(&processes, 24, "s", &Lifetime::Daemon).await;
    let keeper = parent(owned.first().unwrap().pid);
    kill(parent(keeper));
    children.is_dead("the holder was killed").await;
    for owned in &owned {
        owned.gone().await;
    }
    assert_eq!(output(&processes, bash("echo again")).await, "again\n");
}

#[tokio::test]
async fn the_processes_of_a_killed_keeper_are_killed() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = children.start(&processes, 6, "s", &Lifetime::Daemon).await;
    let holder = parent(parent(owned.first().unwrap().pid));
    for keeper in children_of(holder) {
        kill(keeper);
    }
    children.is_dead("the keepers were killed").await;
    for owned in &owned {
        owned.gone().await;
    }
    assert_eq!(owned.first().unwrap().exit().await, Exit::Unknown);
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn a_command_inherits_only_what_it_is_given() {
    let (_home, processes) = processes();
    let _secret = std::fs::File::open("/dev/null").unwrap();
    let mut spawn =
        bash("echo /proc/self/fd/*; grep -E 'Sig(Blk|Ign)' /proc/self/status; env; pwd");
    spawn.env.insert("GIVEN".to_owned(), "a=b c".to_owned());
    spawn.cwd = "/usr".into();
    let said = output(&processes, spawn).await;
    let mut lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("LOOPD_PROCESS="))
        .collect();
    assert_eq!(
        lines.remove(0),
        "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3",
        "the last one lists the others"
    );
    assert_eq!(lines.remove(0), "SigBlk:\t0000000000000000");
    let ignored = lines.remove(0).strip_prefix("SigIgn:\t").unwrap();
    // The two signals above 31 are reserved by the C library.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0);
    assert_eq!(lines.pop(), Some("/usr"));
    lines.retain(|line| {
        !["PATH=", "PWD=", "SHLVL=", "_="]
            .iter()
            .any(|shell| line.starts_with(shell))
    });
    assert_eq!(lines, ["GIVEN=a=b c"]);
}

#[tokio::test]
async fn a_command_that_cannot_start_reports_why() {
    let (_home, processes) = processes();
    let mut no_folder = bash("true");
    no_folder.cwd = "/does/not/exist".into();
    let mut no_program = bash("true");
    no_program.program = "no-such-program-anywhere".into();
    let mut no_terminal = bash("true");
    no_terminal.io = Io::Terminal {
        tty: "/dev/pts/none".into(),
    };
    let mut no_log = bash("true");
    no_log.io = Io::Log;
    let mut zero = bash("true");
    zero.args.push("a\0b".into());
    for (spawn, expected) in [
        (
            no_folder,
            "the working directory /does/not/exist does not exist",
        ),
        (
            no_program,
            "no-such-program-anywhere could not be started: No such file",
        ),
        (
            no_terminal,
            "the terminal /dev/pts/none could not be opened: No such file",
        ),
        (no_log, "has to be detached"),
        (zero, "bash could not be started: invalid input"),
    ] {
        let error = processes.spawn(spawn).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn input_output_and_errors_have_separate_pipes() {
    use tokio::io::AsyncWriteExt;
    let (_home, processes) = processes();
    let mut spawn = bash("read -r line; echo out $line; echo err $line >&2");
    spawn.io = Io::Piped;
    let mut owned = processes.spawn(spawn).await.unwrap();
    owned
        .input
        .take()
        .unwrap()
        .write_all(b"it\n")
        .await
        .unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    owned
        .output
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    owned
        .errors
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("out it\n", "err it\n"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nobody_takes_away_input_that_is_given_or_writes_output_for_its_command() {
    let (_home, processes) = processes();
    // The first program opens the input anew, as a stranger would; both read all of it.
    let mut spawn = bash(
        "exec 2>/dev/null; cat /proc/$$/fd/0; cat; echo more >/proc/$$/fd/0 || echo sealed; \
         echo forged >/proc/$$/fd/1 || echo closed",
    );
    spawn.io = Io::Given {
        input: b"all of it\n".as_slice().into(),
    };
    let mut owned = processes.spawn(spawn).await.unwrap();
    assert!(owned.input.is_none());
    let mut out = String::new();
    assert!(owned.output.is_none());
    let output = owned.output_socket.take().unwrap();
    { output }.read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "all of it\nall of it\nsealed\nclosed\n");
}

#[tokio::test]
async fn a_terminal_is_the_controlling_terminal_of_its_command() {
    let (_home, processes) = processes();
    let helper = "import os, pty, sys\nmaster, slave = pty.openpty()\nprint(os.ttyname(slave), flush=True)\n\
        sys.stdin.readline()\nos.close(slave)\ntry:\n  while True: sys.stdout.write(os.read(master, 4096).decode())\n\
        except OSError: pass";
    let mut terminal = bash("");
    terminal.program = "python3".into();
    terminal.args = ["-c", helper].map(Into::into).to_vec();
    terminal.io = Io::Piped;
    let mut terminal = processes.spawn(terminal).await.unwrap();
    let mut shown = tokio::io::BufReader::new(terminal.output.take().unwrap());
    let mut tty = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut shown, &mut tty)
        .await
        .unwrap();
    let mut spawn =
        bash("tty; echo to the terminal > /dev/tty; ps -o sid= -p $$ | tr -d ' '; echo $$");
    spawn.io = Io::Terminal {
        tty: tty.trim().into(),
    };
    let owned = processes.spawn(spawn).await.unwrap();
    assert_eq!(owned.exit().await, Exit::Code(0));
    drop(terminal.input.take());
    let mut said = String::new();
    shown.read_to_string(&mut said).await.unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let pid = owned.pid.to_string();
    assert_eq!(lines, [tty.trim(), "to the terminal", &pid, &pid], "{said}");
}

#[tokio::test]
async fn a_running_command_keeps_an_idle_daemon_alive() {
    let home = TempDir::new().unwrap();
    let keep_alive = KeepAlive::default();
    let processes = Processes::new(home.path(), keep_alive.clone());
    let mut spawn = bash("exec sleep 1000");
    spawn.lifetime = Lifetime::Session;
    let owned = processes.spawn(spawn).await.unwrap();
    assert_eq!(keep_alive.reasons().work, 1);
    owned.kill().await;
    assert_eq!(keep_alive.reasons().work, 0);
    let log = home.path().join("out.log");
    let mut spawn = bash("exec sleep 1000");
    spawn.io = Io::Log;
    spawn.lifetime = Lifetime::Detached { log };
    let owned = processes.spawn(spawn).await.unwrap();
    assert_eq!(keep_alive.reasons().work, 0);
    assert_eq!(owned.kill().await, Exit::Signal(9));
}

/// The parent of a process.
pub(super) fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.unwrap().trim().parse().unwrap()
}

pub(super) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Sends a signal, such as `-STOP`.
pub(super) fn signal(name: &str, pid: u32) {
    let status = std::process::Command::new("kill")
        .args([name, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// The children of a process.
pub(super) fn children_of(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}
