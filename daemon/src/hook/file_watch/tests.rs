use std::time::Duration;

use super::*;

fn identity(number: u64, folder: bool, changed: u64) -> Identity {
    Identity {
        device: 1,
        number,
        content: (!folder).then_some((3, SystemTime::UNIX_EPOCH)),
        changed: SystemTime::UNIX_EPOCH + Duration::from_secs(changed),
    }
}

fn watch(events: bool, tells_writers: bool) -> FileWatch {
    FileWatch {
        paths: Vec::new(),
        root: PathBuf::from("/app"),
        before: BTreeMap::new(),
        files: Vec::new(),
        events: events.then(|| Events::new().unwrap()),
        tells_writers,
    }
}

#[test]
#[cfg(target_os = "linux")]
fn times_count_where_the_system_cannot_tell_more() {
    let (file, other) = (identity(1, false, 1), identity(2, false, 1));
    let (later, folder) = (identity(1, false, 2), identity(1, true, 1));
    let (deep, later_folder) = (Path::new("/app/x"), identity(1, true, 2));
    // With events and writers, without writers, without events.
    let table = [
        (file, file, [true, true, true]),
        (file, other, [false, false, false]),
        (file, later, [true, false, false]),
        (folder, later_folder, [true, true, false]),
    ];
    for (before, now, wanted) in table {
        let ways = [(true, true), (true, false), (false, true)];
        let found = ways.map(|(events, writers)| {
            watch(events, writers).is_same(deep, Some(&now), Some(&before))
        });
        assert_eq!(found, wanted, "{before:?} {now:?}");
    }
    let one = watch(true, true);
    assert!(one.is_same(deep, None, None));
    assert!(!one.is_same(deep, Some(&file), None));
}

#[test]
fn a_file_that_was_changed_just_now_may_change_unseen() {
    let now = Timestamp(100_000);
    let mut young = watch(false, true);
    assert!(!young.changed_just_before(now));
    // Of the file, in seconds; the time of a folder does not matter.
    for (changed, folder, wanted) in [
        (10, false, false),
        (100, true, false),
        (99, false, true),
        (200, false, true),
    ] {
        let found = identity(1, folder, changed);
        young.before.insert("/app/x".into(), Some(found));
        assert_eq!(young.changed_just_before(now), wanted, "{changed}");
    }
}

#[test]
fn every_name_of_a_path_is_followed_links_included() {
    let folder = tempfile::TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/x"), "").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let mut steps = PathSteps::default();
    let mut entered = Vec::new();
    for path in ["link/../link/x", "real/none/deeper"] {
        let followed = steps.follow(&root.join(path), |folder| entered.push(folder.to_owned()));
        followed.unwrap();
    }
    let found = steps.identities();
    let below: Vec<_> = found
        .iter()
        .filter_map(|(path, found)| Some((path.strip_prefix(&root).ok()?, found.is_some())))
        .map(|(path, found)| (path.to_str().unwrap(), found))
        .collect();
    let wanted = [
        ("", true),
        ("link", true),
        ("real", true),
        ("real/none", false),
        ("real/x", true),
    ];
    assert_eq!(below, wanted);
    assert!(entered.contains(&root.join("real")));
}
