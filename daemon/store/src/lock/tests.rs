//! One owner, dead owners, and homes that cannot be used.

use std::process::{Command, Stdio};

use super::*;
use crate::tests::SmallDisk;

fn owner(build: &str) -> Owner {
    Owner {
        pid: std::process::id(),
        build: build.into(),
        socket: "/run/loopd.sock".into(),
    }
}

fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("above/home");
    (folder, home)
}

/// Set in the process that a test starts to hold a lock.
const HOLD: &str = "LOOPD_TEST_HOLD_HOME";

/// Not a test of its own: it runs in the child of the next one, until its input ends.
#[test]
#[ignore = "the holder process of another test"]
fn holder() {
    let Some(home) = std::env::var_os(HOLD) else {
        return;
    };
    let _lock = HomeLock::acquire(Path::new(&home), &owner("child")).unwrap();
    let mut output = io::stdout();
    output.write_all(b"\nheld\n").unwrap();
    output.flush().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_living_process_holds_the_home_and_a_killed_one_does_not() {
    let (_folder, home) = home();
    let this_module = module_path!().split_once("::").unwrap().1;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("{this_module}::holder"),
            "--ignored",
            "--nocapture",
        ])
        .env(HOLD, &home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));

    let error = HomeLock::acquire(&home, &owner("parent")).unwrap_err();
    let LockError::Held {
        owner: Some(held_by),
        ..
    } = &error
    else {
        child.kill().unwrap();
        unreachable!("{error}");
    };
    assert_eq!((held_by.pid, held_by.build.as_str()), (child.id(), "child"));
    let text = error.to_string();
    assert!(text.contains(&child.id().to_string()), "{text}");
    assert!(text.contains(&home.display().to_string()), "{text}");

    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(read_owner(&home).unwrap().unwrap().build, "child");
    let _lock = HomeLock::acquire(&home, &owner("parent")).unwrap();
    assert_eq!(read_owner(&home).unwrap().unwrap(), owner("parent"));
}

#[test]
fn dropping_the_lock_frees_the_home_and_leaves_the_file() {
    let (_folder, home) = home();
    let lock = HomeLock::acquire(&home, &owner("a build with a long name")).unwrap();
    assert!(matches!(
        HomeLock::acquire(&home, &owner("two")),
        Err(LockError::Held { .. })
    ));
    drop(lock);
    assert!(home.join(LOCK_FILE).exists());
    let _lock = HomeLock::acquire(&home, &owner("three")).unwrap();
    assert_eq!(read_owner(&home).unwrap(), Some(owner("three")));
}

#[test]
fn of_many_who_come_at_once_one_gets_the_home() {
    let (_folder, home) = home();
    let start = std::sync::Barrier::new(16);
    let locks: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    HomeLock::acquire(&home, &owner("racer"))
                })
            })
            .collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect()
    });
    assert_eq!(locks.iter().filter(|lock| lock.is_ok()).count(), 1);
    for error in locks.iter().filter_map(|lock| lock.as_ref().err()) {
        assert!(matches!(error, LockError::Held { .. }), "{error}");
    }
}

#[test]
fn a_stale_file_is_taken_whatever_it_says() {
    for text in [
        "",
        "{\"pid\":1,\"build\":\"x\",\"socket\":\"y\"}\n",
        "\u{0}garbage",
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOCK_FILE), text).unwrap();
        let _lock = HomeLock::acquire(folder.path(), &owner("new")).unwrap();
        assert_eq!(read_owner(folder.path()).unwrap(), Some(owner("new")));
    }
}

#[test]
fn an_owner_that_cannot_be_read_is_nobody() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_owner(folder.path()).unwrap(), None);
    assert_eq!(read_owner(&folder.path().join("none")).unwrap(), None);
    let endless = vec![b'x'; 1 << 16];
    for text in [&b""[..], b"{\"pid\":", b"\xff\xfe\n", &endless] {
        fs::write(folder.path().join(OWNER_FILE), text).unwrap();
        assert_eq!(read_owner(folder.path()).unwrap(), None);
    }
}

#[test]
fn a_home_that_is_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for home in [file.clone(), file.join("below")] {
        let error = HomeLock::acquire(&home, &owner("x")).unwrap_err();
        assert!(matches!(error, LockError::NotAFolder { .. }), "{error}");
        assert!(
            error.to_string().contains(&home.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn a_read_only_home_is_named() {
    let Some(disk) = SmallDisk::mount("size=1m") else {
        return;
    };
    fs::create_dir(disk.path("home")).unwrap();
    #[cfg(unix)]
    fs::set_permissions(
        disk.path("home"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    disk.make_read_only();
    for name in ["home", "missing"] {
        let error = HomeLock::acquire(&disk.path(name), &owner("x")).unwrap_err();
        assert!(matches!(error, LockError::NotWritable { .. }), "{error}");
    }
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_home_and_its_lock_are_private() {
        let (_folder, home) = home();
        let _lock = HomeLock::acquire(&home, &owner("x")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home), 0o700);
        assert_eq!(mode(&home.join(LOCK_FILE)), 0o600);
    }

    #[test]
    fn a_home_that_others_can_write_in_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o770)).unwrap();
        let error = HomeLock::acquire(folder.path(), &owner("x")).unwrap_err();
        assert!(
            matches!(error, LockError::Exposed { mode: 0o770, .. }),
            "{error}"
        );
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "precious").unwrap();
        symlink(&target, folder.path().join(LOCK_FILE)).unwrap();
        let error = HomeLock::acquire(folder.path(), &owner("x")).unwrap_err();
        assert!(matches!(error, LockError::Unusable { .. }), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}
