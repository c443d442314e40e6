//! Attempts to change something outside the scratch folder.

use super::*;

/// What an attempt does without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unconfined {
    /// It changes the project: the attempt is a real one.
    Changes,
    /// It is not run: it would change the machine, or depends on it.
    NotRun,
}

use Unconfined::{Changes, NotRun};

const ATTEMPTS: &[(&str, Unconfined)] = &[
    // Files: create, append, truncate, overwrite.
    ("echo x > new.txt", Changes),
    ("echo x >> file.txt", Changes),
    (": > file.txt", Changes),
    ("truncate -s 0 file.txt", Changes),
    ("truncate -s 100 file.txt", Changes),
    ("sed -i s/one/ten/ file.txt", Changes),
    ("perl -i -pe s/one/ten/ file.txt", Changes),
    (
        "dd if=/dev/zero of=file.txt bs=1 count=1 conv=notrunc",
        Changes,
    ),
    ("echo x | tee file.txt", Changes),
    ("cp script.sh file.txt", Changes),
    ("install -m 700 script.sh installed.sh", Changes),
    ("awk 'BEGIN { print \"x\" > \"new.txt\" }'", Changes),
    ("cat > new.txt <<END\nx\nEND", Changes),
    ("cd folder && echo x > ../new.txt", Changes),
    ("mktemp -p .", Changes),
    ("TMPDIR=$PWD mktemp", Changes),
    ("echo x > /proc/self/cwd/new.txt", Changes),
    ("echo x > /proc/self/root$PWD/new.txt", Changes),
    ("env -i /bin/sh -c 'echo x > new.txt'", Changes),
    ("exec 3>file.txt", Changes),
    ("exec 3<>file.txt; echo x >&3", Changes),
    ("exec 3<file.txt; echo x > /proc/self/fd/3", Changes),
    ("exec 3<.; echo x > /proc/self/fd/3/new.txt", Changes),
    (
        "ln -s \"$PWD/file.txt\" \"$TMPDIR/to-file\"; echo x >> \"$TMPDIR/to-file\"",
        NotRun,
    ),
    // Names: move, link, remove.
    ("mv file.txt moved.txt", Changes),
    ("mv file.txt \"$TMPDIR/\"", NotRun),
    ("mv folder elsewhere", Changes),
    ("mkdir \"$TMPDIR/made\" && mv \"$TMPDIR/made\" .", NotRun),
    ("ln file.txt second-name.txt", Changes),
    (
        "ln file.txt \"$TMPDIR/name\"; echo x >> \"$TMPDIR/name\"",
        NotRun,
    ),
    ("ln -s file.txt link.txt", Changes),
    ("rm -f file.txt", Changes),
    ("rm -rf folder", Changes),
    ("find . -name inner.txt -delete", Changes),
    ("mkdir made", Changes),
    ("rmdir empty", Changes),
    ("mkfifo second-pipe", Changes),
    ("mknod node p", Changes),
    ("mknod node c 1 3", NotRun),
    // Modes, owners, times, attributes.
    ("chmod 600 file.txt", Changes),
    ("chmod -R go-rwx folder", Changes),
    ("chown 1:1 file.txt", NotRun),
    ("chgrp 1 file.txt", NotRun),
    ("touch file.txt", Changes),
    ("touch -d 2001-01-01 folder", Changes),
    (
        "cp -p script.sh \"$TMPDIR/\" && touch -r \"$TMPDIR/script.sh\" file.txt",
        NotRun,
    ),
    // Programs.
    ("./script.sh", Changes),
    ("sh script.sh", Changes),
    (
        "git -c user.name=A -c user.email=a@b.c commit --allow-empty -m second",
        Changes,
    ),
    ("git add folder", Changes),
    ("git checkout -q -b other", Changes),
    ("git gc -q", Changes),
    ("python3 -c \"open('new.txt', 'w').write('x')\"", Changes),
    ("python3 -c \"open('file.txt', 'r+').write('x')\"", Changes),
    (
        "python3 -c \"import os; os.replace('file.txt', 'moved.txt')\"",
        Changes,
    ),
    (
        "python3 -c \"import os; os.truncate('file.txt', 1)\"",
        Changes,
    ),
    (
        "python3 -c \"import os; os.fchmod(os.open('file.txt', os.O_RDONLY), 0o600)\"",
        Changes,
    ),
    (
        "python3 -c \"import os; os.fchown(os.open('file.txt', os.O_RDONLY), 1, 1)\"",
        NotRun,
    ),
    (
        "python3 -c \"import os; os.utime('file.txt', (1, 1))\"",
        Changes,
    ),
    (
        "python3 -c \"import os; os.utime(os.open('file.txt', os.O_RDONLY), (1, 1))\"",
        Changes,
    ),
    (
        "python3 -c \"import os; os.setxattr('file.txt', 'user.x', b'y')\"",
        NotRun,
    ),
    (
        "python3 -c \"import os; os.setxattr(os.open('file.txt', os.O_RDONLY), 'user.x', b'y')\"",
        NotRun,
    ),
    (
        "python3 -c \"import mmap; f = open('file.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'X'\"",
        Changes,
    ),
    (
        "python3 -c \"import ctypes, os; f = os.open('.', os.O_TMPFILE | os.O_RDWR); ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % f, -100, b'new.txt', 0x400)\"",
        Changes,
    ),
    // The attributes of ext4, which a descriptor for reading is enough to change (FS_IOC_SETFLAGS).
    (
        "python3 -c \"import fcntl, os, struct; fcntl.ioctl(os.open('file.txt', os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))\"",
        NotRun,
    ),
    // The system below the files.
    ("mount -t tmpfs none folder", NotRun),
    ("mount --bind \"$TMPDIR\" folder", NotRun),
    ("unshare -r sh -c 'echo x > new.txt'", NotRun),
    (
        "unshare -rm sh -c 'mount -t tmpfs none folder; echo x > folder/new.txt'",
        NotRun,
    ),
    ("chroot . /bin/true", NotRun),
    ("ulimit -c unlimited; sh -c 'kill -SEGV $$'", NotRun),
];

#[tokio::test]
async fn nothing_outside_the_scratch_folder_changes() {
    let project = Project::new().await;
    let before = project.look();
    for backend in BACKENDS {
        for (attempt, _) in ATTEMPTS {
            let mut shell = project.confined(backend).await;
            let (said, _) = run(&mut shell, attempt).await;
            let changes = project.changes(&before);
            assert!(
                changes.is_empty(),
                "{backend:?}: {attempt}\n{said}\n{changes:#?}"
            );
        }
    }
}

/// The attempts are real: each changes the project when nothing confines it.
#[tokio::test]
async fn the_same_commands_change_files_without_a_sandbox() {
    for (attempt, unconfined) in ATTEMPTS {
        if *unconfined == NotRun {
            continue;
        }
        let project = Project::new().await;
        let before = project.look();
        let mut shell = project.shell(Backend::Process, None).await;
        let (said, _) = run(&mut shell, attempt).await;
        assert!(!project.changes(&before).is_empty(), "{attempt}\n{said}");
    }
}

#[tokio::test]
async fn a_command_that_is_denied_says_so_and_fails() {
    let project = Project::new().await;
    for backend in BACKENDS {
        for attempt in [
            "echo x > new.txt",
            "chmod 600 file.txt",
            "rm file.txt",
            "touch file.txt",
        ] {
            let mut shell = project.confined(backend).await;
            let (said, end) = run(&mut shell, attempt).await;
            assert_eq!(end, CommandEnd::Exited(1), "{backend:?}: {attempt}\n{said}");
            let told = said.contains("Permission denied") || said.contains("not permitted");
            assert!(told, "{backend:?}: {attempt}\n{said}");
        }
    }
}

#[tokio::test]
async fn what_outlives_its_command_is_still_confined() {
    let project = Project::new().await;
    let before = project.look();
    let mut shell = project.confined(Backend::Terminal).await;
    let writers = [
        "nohup bash -c 'while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.01; done; echo x > new.txt; echo > \"$TMPDIR/one\"' >/dev/null 2>&1 &",
        "(setsid bash -c 'while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.01; done; echo x > new.txt; echo > \"$TMPDIR/two\"' >/dev/null 2>&1 &)",
        "python3 -c \"import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('bash', ['bash', '-c', 'while [ ! -e \\$TMPDIR/go ]; do sleep 0.01; done; echo x > new.txt; echo > \\$TMPDIR/three'])
\" >/dev/null 2>&1",
    ];
    for writer in writers {
        let (said, end) = run(&mut shell, writer).await;
        assert_eq!(end, CommandEnd::Exited(0), "{writer}\n{said}");
    }
    std::fs::write(project.made().join("go"), "").unwrap();
    for done in ["one", "two", "three"] {
        let done = project.made().join(done);
        let waiting = async {
            while !done.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(
            timeout(PATIENCE, waiting).await.is_ok(),
            "{}",
            done.display()
        );
    }
    assert_eq!(project.changes(&before), Vec::<String>::new());
}

#[tokio::test]
async fn no_device_can_be_made_in_the_scratch_folder() {
    let project = Project::new().await;
    let mut shell = project.confined(Backend::Process).await;
    for kind in ["b 7 0", "c 1 3"] {
        let (said, _) = run(&mut shell, &format!("mknod \"$TMPDIR/device\" {kind}")).await;
        assert!(!project.made().join("device").exists(), "{kind}: {said}");
    }
}

#[tokio::test]
async fn shared_memory_is_not_written() {
    let project = Project::new().await;
    let name = format!("/dev/shm/loopd-{}", Ulid::generate());
    for backend in BACKENDS {
        let mut shell = project.confined(backend).await;
        let (said, end) = run(&mut shell, &format!("echo x > {name}")).await;
        assert_eq!(end, CommandEnd::Exited(1), "{said}");
        assert!(!Path::new(&name).exists());
    }
}
