//! What commands in a sandbox can do.

use super::*;

const COMMANDS: &[&str] = &[
    "ls -la",
    "cat file.txt",
    "head -n 1 file.txt && tail -n 1 file.txt",
    "grep -rn one .",
    "find . -type f | sort | head",
    "git status --short --branch",
    "git log --oneline",
    "git diff HEAD",
    "git show --stat HEAD",
    "git blame file.txt",
    "wc -l file.txt script.sh",
    "stat file.txt",
    "du -sh .",
    "diff file.txt file.txt",
    "sort file.txt | uniq -c",
    "sed -n 1p file.txt",
    "awk '{ print NR, $0 }' file.txt",
    "python3 -c \"print(open('file.txt').read())\"",
    "python3 -c \"import subprocess; subprocess.run(['cat', 'file.txt'], check=True)\"",
    "cat <<END\nhere\nEND",
    "cat <<< here",
    "cat <(echo one) <(echo two)",
    "echo x > /dev/null; ls nothing-here 2>/dev/null || true",
    "echo x > /dev/stderr",
    "printf 'x\\n' | tee /dev/null",
    "find . -name '*.txt' -print0 | xargs -0 cat",
    "sleep 1000 & kill $!; wait",
    "timeout 5 true",
    "ps -o pid,comm",
    "id; uname -a; date; env | sort | head -n 3",
    "test -r file.txt && test ! -e nothing-here",
    "cat /proc/self/status | head -n 1",
    "sh -c 'exit 0'",
    "nice -n 1 true",
    "python3 -c \"import os; os.sched_setaffinity(0, os.sched_getaffinity(0))\"",
    // The scratch folder.
    "file=$(mktemp) && echo x > \"$file\" && cat \"$file\" && rm \"$file\"",
    "mkdir \"$TMPDIR/a\" && cp file.txt \"$TMPDIR/a/\" && mv \"$TMPDIR/a\" \"$TMPDIR/b\" && ln \"$TMPDIR/b/file.txt\" \"$TMPDIR/c\" && rm -r \"$TMPDIR/b\" \"$TMPDIR/c\"",
    "python3 -c \"import tempfile; tempfile.TemporaryFile().write(b'x')\"",
    "mkfifo \"$TMPDIR/p\" && { echo x > \"$TMPDIR/p\" & cat \"$TMPDIR/p\"; wait; rm \"$TMPDIR/p\"; }",
    "yes one | head -n 100000 | sort -S 32k -T \"$TMPDIR\" | tail -n 1",
];

/// Opens a file that it may only read, and locks it.
const LOCK: &str = "python3 -c \"import fcntl; fcntl.lockf(open('../loopd.db-shm', 'rb'), \
                    fcntl.LOCK_SH | fcntl.LOCK_NB)\"";

#[tokio::test]
async fn the_database_of_the_daemon_cannot_be_opened() {
    let project = Project::new().await;
    for name in ["loopd.db", "loopd.db-shm", "loopd.db-wal", "config.toml"] {
        std::fs::write(project.folder.path().join(name), "x").unwrap();
    }
    std::fs::create_dir(project.folder.path().join("sessions")).unwrap();
    std::fs::write(project.folder.path().join("sessions/loopd.db"), "x").unwrap();
    for backend in BACKENDS {
        for command in [
            LOCK,
            "cat ../loopd.db",
            "cat < ../loopd.db-wal",
            "cat $PWD/../loopd.db",
        ] {
            let mut shell = project.confined(backend).await;
            let (said, end) = run(&mut shell, command).await;
            assert_eq!(end, CommandEnd::Exited(1), "{backend:?}: {command}\n{said}");
            assert!(said.contains("Permission denied"), "{command}\n{said}");
        }
        let mut shell = project.confined(backend).await;
        let (said, end) = run(&mut shell, "cat ../config.toml ../sessions/loopd.db").await;
        assert_eq!(end, CommandEnd::Exited(0), "{backend:?}: {said}");
    }
}

#[tokio::test]
async fn commands_that_only_look_work() {
    let project = Project::new().await;
    let before = project.look();
    for backend in BACKENDS {
        for command in COMMANDS {
            let mut shell = project.confined(backend).await;
            let (said, end) = run(&mut shell, command).await;
            assert_eq!(end, CommandEnd::Exited(0), "{backend:?}: {command}\n{said}");
        }
    }
    assert_eq!(project.changes(&before), Vec::<String>::new());
}

#[tokio::test]
async fn a_shell_on_a_terminal_keeps_its_state() {
    let project = Project::new().await;
    let mut shell = project.confined(Backend::Terminal).await;
    run(
        &mut shell,
        "cd folder; word=kept; f() { echo \"$word in $PWD\"; }",
    )
    .await;
    let (said, end) = run(
        &mut shell,
        "f; tty > /dev/tty; [ -t 0 ] && stty -a > /dev/null",
    )
    .await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    assert!(
        said.contains("kept in") && said.contains("/folder"),
        "{said}"
    );
    let (said, end) = run(&mut shell, "exit 3").await;
    assert_eq!(end, CommandEnd::Exited(3), "{said}");
}

#[tokio::test]
async fn a_scratch_folder_that_cannot_be_made_is_an_error() {
    let project = Project::new().await;
    std::fs::write(project.scratch(), "a file").unwrap();
    let mut shell = project.confined(Backend::Process).await;
    let error = shell.start("true").await.unwrap_err().to_string();
    assert!(error.contains("scratch folder"), "{error}");
}
