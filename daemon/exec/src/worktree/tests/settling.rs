//! Settling a worktree after its agent has ended.

use super::*;

/// An action of an agent in its worktree.
type Act<'a> = Box<dyn Fn(&Path) + 'a>;

async fn kept(lab: &Lab, worktree: &Worktree) -> Changes {
    match lab.settle(worktree).await.unwrap() {
        Settled::Removed => panic!("it was removed"),
        Settled::Kept {
            path,
            commit,
            changes,
        } => {
            assert_eq!((&path, &commit), (&worktree.path, &worktree.commit));
            changes
        }
    }
}

#[tokio::test]
async fn an_unchanged_worktree_is_removed_from_disk_and_repository() {
    let lab = Lab::new();
    let worktree = lab.create().await;
    // Build output, a touched file and reading commands are no changes.
    write(&worktree.path.join("build/out.o"), "x");
    write(&worktree.path.join("src/trace.log"), "x");
    write(&worktree.path.join("tracked.txt"), "one\n");
    lab.git(&worktree.path, &["status"]);
    lab.git(&worktree.path, &["branch", "only-a-name"]);
    assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);
    let known = lab.git(&lab.repository(), &["worktree", "list"]);
    assert_eq!(known.lines().count(), 1, "{known}");
    lab.assert_nothing_left();
    let again = lab.settle(&worktree).await.unwrap_err();
    assert!(matches!(again, WorktreeError::NotFound(_)), "{again}");
}

#[tokio::test]
async fn every_kind_of_uncommitted_change_keeps_the_worktree() {
    let lab = Lab::new();
    let hide = |flag: &str, worktree: &Path| {
        lab.git(worktree, &["update-index", flag, "tracked.txt"]);
        write(&worktree.join("tracked.txt"), "hidden\n");
    };
    let acts: Vec<(&str, &str, Act<'_>)> = vec![
        (
            "changed",
            "tracked.txt",
            Box::new(|it| write(&it.join("tracked.txt"), "changed\n")),
        ),
        (
            "changed to the same length",
            "tracked.txt",
            Box::new(|it| write(&it.join("tracked.txt"), "two\n")),
        ),
        (
            "deleted",
            "src/deep/inner.txt",
            Box::new(|it| std::fs::remove_file(it.join("src/deep/inner.txt")).unwrap()),
        ),
        (
            "new",
            "src/new \"file\".txt",
            Box::new(|it| write(&it.join("src/new \"file\".txt"), "")),
        ),
        (
            "staged and taken back",
            "tracked.txt",
            Box::new(|it| {
                write(&it.join("tracked.txt"), "staged\n");
                lab.git(it, &["add", "tracked.txt"]);
                write(&it.join("tracked.txt"), "one\n");
            }),
        ),
        (
            "a repository inside",
            "clone/",
            Box::new(|it| {
                lab.git(it, &["init", "--quiet", "clone"]);
                write(&it.join("clone/file"), "");
            }),
        ),
        (
            "taken for unchanged",
            "tracked.txt",
            Box::new(|it| hide("--assume-unchanged", it)),
        ),
        (
            "left out but there",
            "tracked.txt",
            Box::new(|it| hide("--skip-worktree", it)),
        ),
        (
            "new, though status is told not to look",
            "new.txt",
            Box::new(|it| {
                lab.git(it, &["config", "status.showUntrackedFiles", "no"]);
                write(&it.join("new.txt"), "");
            }),
        ),
    ];
    for (what, file, act) in acts {
        let worktree = lab.create().await;
        act(&worktree.path);
        let changes = kept(&lab, &worktree).await;
        assert_eq!(changes.files, [file], "{what}");
        assert_eq!((changes.commits, &changes.branch), (0, &None), "{what}");
        let entry = lab.only().await;
        assert_eq!(entry.usage, Use::Kept, "{what}");
        assert_eq!(entry.contents, Contents::Changed(changes), "{what}");
        let refused = lab.remove(&worktree.id, Force::No).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("1 file, 0 commits"), "{what}: {text}");
        assert!(worktree.path.exists(), "{what}");
        lab.remove(&worktree.id, Force::Yes).await.unwrap();
        lab.assert_nothing_left();
    }
}

#[tokio::test]
async fn commits_on_any_branch_keep_the_worktree() {
    let lab = Lab::new();
    // Without it, git would keep no reflog of HEAD.
    let no_log = ["config", "core.logAllRefUpdates", "false"];
    lab.git(&lab.repository(), &no_log);

    let detached = lab.create().await;
    write(&detached.path.join("new.txt"), "");
    lab.commit_in(&detached.path);
    write(&detached.path.join("tracked.txt"), "more\n");
    lab.commit_in(&detached.path);
    let changes = kept(&lab, &detached).await;
    assert_eq!(changes.files, ["new.txt", "tracked.txt"]);
    assert_eq!((changes.commits, changes.branch), (2, None));

    let on_branch = lab.create().await;
    lab.git(&on_branch.path, &["switch", "--quiet", "-c", "topic"]);
    write(&on_branch.path.join("new.txt"), "");
    lab.commit_in(&on_branch.path);
    write(&on_branch.path.join("later.txt"), "");
    let changes = kept(&lab, &on_branch).await;
    assert_eq!(changes.files, ["later.txt", "new.txt"]);
    assert_eq!(
        (changes.commits, changes.branch.as_deref()),
        (1, Some("topic"))
    );

    let left_again = lab.create().await;
    let path = &left_again.path;
    lab.git(path, &["switch", "--quiet", "-c", "other"]);
    write(&path.join("new.txt"), "");
    lab.commit_in(path);
    let back = ["switch", "--quiet", "--detach", &left_again.commit];
    lab.git(path, &back);
    let changes = kept(&lab, &left_again).await;
    assert_eq!((changes.files.len(), changes.commits), (0, 1));
}

#[tokio::test]
async fn many_changed_files_are_counted_and_few_are_listed() {
    let lab = Lab::new();
    let worktree = lab.create().await;
    for number in 0..120 {
        write(&worktree.path.join(format!("new/{number:03}")), "");
    }
    let changes = kept(&lab, &worktree).await;
    assert_eq!((changes.files.len(), changes.more_files), (50, 70));
    assert_eq!(changes.files[49], "new/049");
    assert_eq!(changes.to_string(), "120 files, 0 commits");
}

#[tokio::test]
async fn a_folder_that_is_no_longer_our_worktree_is_not_deleted() {
    let lab = Lab::new();
    let worktree = lab.create().await;
    // The agent made the folder a repository of its own.
    std::fs::remove_file(worktree.path.join(".git")).unwrap();
    lab.git(&worktree.path, &["init", "--quiet"]);
    lab.commit_in(&worktree.path);
    let error = lab.settle(&worktree).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Unclear { .. }), "{error}");
    assert_eq!(read(&worktree.path.join("tracked.txt")), "one\n");
    let entry = lab.only().await;
    assert_eq!(entry.usage, Use::Kept);
    assert!(matches!(entry.contents, Contents::Unclear(_)), "{entry:?}");

    // A folder of someone else was put in place of the worktree.
    let moved = lab.create().await;
    let precious = lab.path("precious");
    std::fs::rename(&moved.path, &precious).unwrap();
    std::os::unix::fs::symlink(&precious, &moved.path).unwrap();
    let error = lab.settle(&moved).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Unclear { .. }), "{error}");
    lab.remove(&moved.id, Force::Yes).await.unwrap();
    assert_eq!(read(&precious.join("tracked.txt")), "one\n");

    // A name that leads out of the folder is not an id.
    let mut outside = worktree.clone();
    for id in [
        "../../project",
        "..",
        ".",
        "",
        "agentsession/../../../project",
    ] {
        id.clone_into(&mut outside.id);
        let error = lab.settle(&outside).await.unwrap_err();
        assert!(matches!(error, WorktreeError::NotFound(_)), "{error}");
        let error = lab.remove(id, Force::Yes).await.unwrap_err();
        assert!(matches!(error, WorktreeError::NotFound(_)), "{error}");
    }
    assert!(lab.repository().join("tracked.txt").exists());
}
