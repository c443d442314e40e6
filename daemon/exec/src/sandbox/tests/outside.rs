//! Attempts to reach other processes and servers, which are not confined.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;

/// Runs a command without and with a sandbox, and returns how it ended in both.
async fn both(project: &Project, command: &str) -> [(String, CommandEnd); 2] {
    let mut free = project.shell(Backend::Process, None).await;
    let mut confined = project.confined(Backend::Process).await;
    [
        run(&mut free, command).await,
        run(&mut confined, command).await,
    ]
}

/// A command works without a sandbox and fails in one.
async fn works_only_without_a_sandbox(project: &Project, command: &str) {
    let [(free, free_end), (confined, confined_end)] = both(project, command).await;
    assert_eq!(free_end, CommandEnd::Exited(0), "{command}\n{free}");
    assert_ne!(confined_end, CommandEnd::Exited(0), "{command}\n{confined}");
}

#[tokio::test]
async fn no_server_is_reached() {
    let project = Project::new().await;
    let path = project.folder.path().join("server.sock");
    let local = UnixListener::bind(&path).unwrap();
    let datagrams = project.folder.path().join("log.sock");
    let log = UnixDatagram::bind(&datagrams).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    local.set_nonblocking(true).unwrap();
    log.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let attempts = [
        format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
            path.display()
        ),
        format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '{}')\"",
            datagrams.display()
        ),
        format!(
            "python3 -c \"import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', '{}')\"",
            datagrams.display()
        ),
        format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\""),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
    ];
    for attempt in attempts {
        works_only_without_a_sandbox(&project, &attempt).await;
        // Only the attempt without a sandbox arrived.
        let mut arrived = 0;
        let mut bytes = [0; 8];
        while local.accept().is_ok() || tcp.accept().is_ok() || log.recv(&mut bytes).is_ok() {
            arrived += 1;
        }
        assert_eq!(arrived, 1, "{attempt}");
        assert_eq!(local.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn with_a_network_the_internet_is_reached_and_local_sockets_are_not() {
    let project = Project::new().await;
    let path = project.folder.path().join("server.sock");
    let _local = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let sandbox = Sandbox {
        network: NetworkAccess::Allowed,
        ..Sandbox::new(project.scratch())
    };
    let mut shell = project.shell(Backend::Process, Some(sandbox)).await;
    let (said, end) = run(&mut shell, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    let local = format!(
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}')\"",
        path.display()
    );
    let (said, end) = run(&mut shell, &local).await;
    assert_eq!(end, CommandEnd::Exited(1), "{said}");
    let netlink =
        "python3 -c \"import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\"";
    let (said, end) = run(&mut shell, netlink).await;
    assert_eq!(end, CommandEnd::Exited(1), "{said}");
}

#[tokio::test]
async fn no_other_process_is_touched() {
    let project = Project::new().await;
    let mut victim = project.shell(Backend::Process, None).await;
    let running = victim.start("exec sleep 1000").await.unwrap();
    let pid = victim.pid();
    let attempts = [
        format!("python3 -c \"open('/proc/{pid}/mem', 'r+b')\""),
        format!("python3 -c \"open('/proc/{pid}/mem', 'rb')\""),
        format!("echo 100 > /proc/{pid}/oom_score_adj"),
        format!("kill -CONT {pid}"),
        format!("prlimit --pid {pid} --nofile=100:100"),
        format!("python3 -c \"import os; os.setpriority(os.PRIO_PROCESS, {pid}, 5)\""),
        format!("python3 -c \"import os; os.setpriority(os.PRIO_PGRP, os.getpgid({pid}), 5)\""),
        format!("python3 -c \"import os; os.sched_setaffinity({pid}, os.sched_getaffinity({pid}))\""),
        format!(
            "python3 -c \"import os; os.sched_setscheduler({pid}, os.SCHED_BATCH, os.sched_param(0))\""
        ),
        format!("python3 -c \"import os; os.sched_setparam({pid}, os.sched_param(0))\""),
        "python3 -c \"import fcntl; fcntl.fcntl(open('file.txt'), fcntl.F_SETLEASE, fcntl.F_RDLCK)\""
            .to_owned(),
    ];
    for attempt in attempts {
        works_only_without_a_sandbox(&project, &attempt).await;
    }
    let mut confined = project.confined(Backend::Process).await;
    let (said, end) = run(&mut confined, &format!("kill -9 {pid}; kill -9 -- -{pid}")).await;
    assert_eq!(end, CommandEnd::Exited(1), "{said}");
    let everybody = "python3 -c \"import os; os.kill(-1, 0)\"";
    let (said, end) = run(&mut confined, everybody).await;
    assert_eq!(end, CommandEnd::Exited(1), "{said}");
    assert!(Path::new(&format!("/proc/{pid}/stat")).exists());
    running.stop().await;
}

#[tokio::test]
async fn calls_that_change_the_system_fail() {
    let project = Project::new().await;
    let mut shell = project.confined(Backend::Process).await;
    let call = |number: i64, rest: &str| {
        format!(
            "python3 -c \"import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); c.syscall({number}{rest}); sys.exit(ctypes.get_errno())\""
        )
    };
    let denied = [
        call(libc::SYS_io_uring_setup, ", 1, 0"),
        call(libc::SYS_bpf, ", 0, 0, 0"),
        call(libc::SYS_perf_event_open, ", 0, 0, 0, 0, 0"),
        call(libc::SYS_userfaultfd, ", 0"),
        call(libc::SYS_ptrace, ", 0, 0, 0, 0"),
        call(libc::SYS_open_by_handle_at, ", 0, 0, 0"),
        call(libc::SYS_unshare, ", 0x10000000"),
        call(libc::SYS_clone, ", 0x10000011, 0, 0, 0, 0"),
        call(libc::SYS_kexec_load, ", 0, 0, 0, 0"),
        call(libc::SYS_process_vm_writev, ", 1, 0, 0, 0, 0, 0"),
        call(libc::SYS_shmget, ", 0, 4096, 0o1600"),
        call(libc::SYS_keyctl, ", 0, 0, 0, 0, 0"),
        call(libc::SYS_ioprio_set, ", 1, 1, 0"),
        call(libc::SYS_sched_setattr, ", 1, 0, 0"),
        // Types a character into the terminal (TIOCSTI).
        call(libc::SYS_ioctl, ", 0, 0x5412, 0"),
        call(452, ", -100, 0, 0, 0"),
    ];
    for attempt in denied {
        let (said, end) = run(&mut shell, &attempt).await;
        assert_eq!(end, CommandEnd::Exited(libc::EPERM), "{attempt}\n{said}");
    }
    let unknown = [
        call(libc::SYS_clone3, ", 0, 0"),
        // setxattrat and file_setattr, which are younger than the list.
        call(463, ", 0, 0, 0, 0, 0, 0"),
        call(469, ", 0, 0, 0, 0, 0"),
        // The numbers of x32.
        call(0x4000_0000 + 90, ", 0, 0"),
    ];
    for attempt in unknown {
        let (said, end) = run(&mut shell, &attempt).await;
        assert_eq!(end, CommandEnd::Exited(libc::ENOSYS), "{attempt}\n{said}");
    }
}

#[tokio::test]
async fn a_command_gains_no_rights_and_keeps_its_limits() {
    let project = Project::new().await;
    let mut shell = project.confined(Backend::Process).await;
    let (said, _) = run(
        &mut shell,
        "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; ulimit -Hc",
    )
    .await;
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words, ["NoNewPrivs:", "1", "Seccomp:", "2", "0"]);
}
