use std::os::unix::net::{UnixListener, UnixStream};

use super::super::tests::{bash, processes};
use super::super::{Lifetime, Processes};
use super::*;

/// A listener at a path, and a command that connects to it and stays.
struct Connected {
    stream: UnixStream,
    _owned: super::super::OwnedProcess,
}

const CONNECT: &str = "import socket,sys,os,time\n\
    s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
    s.recv(1)\n";

/// Runs a shell command in which `CONNECT` stands for the program that connects.
async fn connected(processes: &Processes, folder: &std::path::Path, command: &str) -> Connected {
    let path = folder.join("socket");
    std::fs::remove_file(&path).ok();
    let listener = UnixListener::bind(&path).unwrap();
    let script = folder.join("connect.py");
    std::fs::write(&script, CONNECT).unwrap();
    let program = format!("python3 {} {}", script.display(), path.display());
    let mut spawn = bash(&command.replace("CONNECT", &program));
    spawn.lifetime = Lifetime::Session;
    let owned = processes.spawn(spawn).await.unwrap();
    let accepting = tokio::task::spawn_blocking(move || listener.accept().unwrap().0);
    Connected {
        stream: accepting.await.unwrap(),
        _owned: owned,
    }
}

#[tokio::test]
async fn commands_are_found_however_they_daemonise_themselves() {
    let (home, processes) = processes();
    for command in [
        "exec CONNECT",
        "CONNECT; true",
        "(setsid CONNECT &) ; exec sleep 1000",
        "(setsid bash -c '(setsid CONNECT &) & exit' & exit) & wait; exec sleep 1000",
        "env -i PATH=\"$PATH\" setsid nohup CONNECT >/dev/null 2>&1 & disown; sleep 1000",
    ] {
        let peer = connected(&processes, home.path(), command).await;
        let origin = PeerJudge::default().origin_of_peer(peer.stream.as_fd(), &HashSet::new());
        assert_eq!(origin, PeerOrigin::Command, "{command}");
    }
    processes.shutdown().await;
}

#[tokio::test]
async fn the_daemon_itself_and_other_processes_are_outside() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let none = HashSet::new();
    let judge_once = PeerJudge::default();
    for time in ["first", "remembered"] {
        let origin = judge_once.origin_of_peer(ours.as_fd(), &none);
        assert_eq!(origin, PeerOrigin::Outside, "{time}");
    }
    drop(theirs);
    // Process 1 is nobody's command.
    let line = ancestors_of(1, |_| false).unwrap();
    let own = ancestors_of(std::process::id().cast_signed(), |_| false).unwrap();
    let origin = judge(std::process::id().cast_signed(), &own, &line, &none);
    assert_eq!(origin, PeerOrigin::Outside);
}

#[tokio::test]
async fn a_command_is_found_below_processes_that_are_remembered_as_outside() {
    let (home, processes) = processes();
    let own = std::process::id().cast_signed();
    let none = HashSet::new();
    let judge_once = PeerJudge::default();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let origin = judge_once.origin_of_peer(ours.as_fd(), &none);
    assert_eq!(origin, PeerOrigin::Outside);
    assert!(!judge_once.outside.lock().is_empty());
    let mut remembered = judge_once.outside.lock().clone().into_iter();
    assert!(remembered.all(|it| Some(it) != ProcessIdentity::of(own)));
    let peer = connected(&processes, home.path(), "CONNECT; sleep 1000").await;
    let origin = judge_once.origin_of_peer(peer.stream.as_fd(), &none);
    assert_eq!(origin, PeerOrigin::Command);
}

#[tokio::test]
async fn a_peer_that_has_ended_is_unknown() {
    let (home, processes) = processes();
    let peer = connected(&processes, home.path(), "CONNECT; sleep 1000").await;
    std::io::Write::write_all(&mut &peer.stream, b"!").unwrap();
    let mut end = [0];
    let stream = peer.stream.try_clone().unwrap();
    let read = tokio::task::spawn_blocking(move || std::io::Read::read(&mut &stream, &mut end));
    assert_eq!(read.await.unwrap().unwrap(), 0);
    super::super::tests::soon("the peer is reaped", || {
        PeerJudge::default().origin_of_peer(peer.stream.as_fd(), &HashSet::new())
            == PeerOrigin::Unknown
    })
    .await;
    processes.shutdown().await;
}

/// A table of made-up ancestors: pid and name, the nearest first.
fn line(names: &[(i32, &str)]) -> Ancestors {
    let stat = |pid: i32, name: &str| ProcStat {
        name: name.to_owned(),
        parent: 0,
        start: pid.cast_unsigned().into(),
        lives: true,
        stopped: false,
    };
    let all = names.iter().map(|(pid, name)| (*pid, stat(*pid, name)));
    all.collect()
}

/// What it is, the ancestors of the daemon, those of the peer, and the judgement.
type JudgedPeer<'a> = (&'a str, &'a Ancestors, &'a [(i32, &'a str)], PeerOrigin);

#[test]
fn which_ancestors_make_a_command() {
    let user = line(&[(50, "loopd"), (1, "init")]);
    let nested = line(&[
        (50, "loopd"),
        (40, "bash"),
        (30, "loopd-keeper"),
        (20, "loopd-holder"),
        (1, "init"),
    ]);
    let table: [JudgedPeer<'_>; 8] = [
        (
            "a terminal",
            &user,
            &[(90, "loop"), (80, "bash"), (1, "init")],
            PeerOrigin::Outside,
        ),
        (
            "our command",
            &user,
            &[
                (90, "loop"),
                (70, "loopd-keeper"),
                (60, "loopd-holder"),
                (50, "loopd"),
            ],
            PeerOrigin::Command,
        ),
        (
            "the holder was killed",
            &user,
            &[(90, "loop"), (50, "loopd"), (1, "init")],
            PeerOrigin::Command,
        ),
        (
            "a detached command of an earlier daemon",
            &user,
            &[(90, "loop"), (70, "loopd-keeper"), (1, "init")],
            PeerOrigin::Command,
        ),
        (
            "a command of another home",
            &user,
            &[
                (90, "loop"),
                (70, "loopd-keeper"),
                (60, "loopd-holder"),
                (1, "init"),
            ],
            PeerOrigin::Command,
        ),
        (
            "beside a daemon that a command started",
            &nested,
            &[
                (90, "loop"),
                (40, "bash"),
                (30, "loopd-keeper"),
                (20, "loopd-holder"),
            ],
            PeerOrigin::Outside,
        ),
        (
            "another command of the session that started the daemon",
            &nested,
            &[(90, "loop"), (31, "loopd-keeper"), (20, "loopd-holder")],
            PeerOrigin::Outside,
        ),
        (
            "a command of the daemon that a command started",
            &nested,
            &[
                (90, "loop"),
                (71, "loopd-keeper"),
                (70, "loopd-holder"),
                (50, "loopd"),
                (40, "bash"),
                (30, "loopd-keeper"),
            ],
            PeerOrigin::Command,
        ),
    ];
    for (what, own, peer, expected) in table {
        let origin = judge(50, own, &line(peer), &HashSet::new());
        assert_eq!(origin, expected, "{what}");
    }
    // A detached command that the daemon below a command has adopted.
    let adopted = HashSet::from([ProcessIdentity { pid: 32, start: 32 }]);
    let peer = line(&[(90, "loop"), (32, "loopd-keeper"), (20, "loopd-holder")]);
    assert_eq!(judge(50, &nested, &peer, &adopted), PeerOrigin::Command);
}
