//! Creating worktrees.

use super::*;

#[tokio::test]
async fn a_worktree_starts_at_the_current_commit_and_stays_there() {
    let lab = Lab::new();
    let repository = lab.repository();
    let first = lab.git(&repository, &["rev-parse", "HEAD"]);
    lab.write("tracked.txt", "not committed\n");
    let worktree = lab.create().await;
    lab.write("tracked.txt", "moved on\n");
    lab.commit_all();
    assert_eq!(worktree.commit, first);
    assert_eq!(worktree.id, "agentsession");
    assert_eq!(worktree.path, lab.home().join("worktrees/agentsession"));
    assert_eq!(worktree.cwd, worktree.path);
    assert_eq!(worktree.repository, repository);
    assert_eq!(worktree.filters_off, Vec::<String>::new());
    assert_eq!(lab.git(&worktree.path, &["rev-parse", "HEAD"]), first);
    assert_eq!(lab.git(&worktree.path, &["branch", "--show-current"]), "");
    assert_eq!(read(&worktree.path.join("tracked.txt")), "one\n");
    let known = lab.git(&repository, &["worktree", "list"]);
    assert!(known.contains(worktree.path.to_str().unwrap()), "{known}");
    let entry = lab.only().await;
    assert_eq!(
        (entry.usage, entry.contents),
        (Use::InUse, Contents::Unchanged)
    );
    assert_eq!(entry.session, Some("0199-Agent.Session".into()));
}

#[tokio::test]
async fn the_agent_works_in_the_folder_that_corresponds_to_the_requested_one() {
    let lab = Lab::new();
    let repository = lab.repository();
    std::os::unix::fs::symlink("/", repository.join("link")).unwrap();
    lab.commit_all();
    // The working tree now has folders that are not in its commit.
    std::fs::remove_file(repository.join("link")).unwrap();
    lab.write("link/tmp/new.txt", "");
    lab.write("src/fresh/new.txt", "");
    for (asked, expected) in [
        ("src/deep", "src/deep"),
        ("src/fresh", "src"),
        ("link/tmp", ""),
    ] {
        let worktree = lab.create_in(&repository.join(asked)).await;
        let expected = worktree.path.join(expected);
        assert_eq!(worktree.cwd, expected.components().collect::<PathBuf>());
        assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);
    }
    lab.assert_nothing_left();
}

#[tokio::test]
async fn many_worktrees_are_created_and_settled_in_parallel() {
    let lab = Lab::new();
    let repository = lab.repository();
    let made = (0..6).map(|_| lab.create_in(&repository));
    let made = futures::future::join_all(made).await;
    let ids: BTreeSet<&str> = made.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
    let settled = futures::future::join_all(made.iter().map(|it| lab.settle(it))).await;
    for settled in settled {
        assert_eq!(settled.unwrap(), Settled::Removed);
    }
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_worktree_is_removed_if_the_caller_of_create_is_cancelled() {
    let lab = Lab::new();
    let repository = lab.repository();
    let mut creating = Box::pin(lab.create_in(&repository));
    assert!(futures::poll!(&mut creating).is_pending());
    drop(creating);
    let tasks = &lab.worktrees.0.tasks;
    tasks.close();
    tasks.wait().await;
    lab.assert_nothing_left();
    assert_eq!(lab.list().await, []);
}

#[tokio::test]
async fn a_worktree_made_from_another_outlives_it() {
    let lab = Lab::new();
    let outer = lab.create().await;
    write(&outer.path.join("outer.txt"), "");
    let commit = lab.commit_in(&outer.path);
    let inner = lab.create_in(&outer.path.join("src")).await;
    assert_eq!(inner.commit, commit);
    assert_eq!(inner.repository, lab.repository());
    lab.settle(&outer).await.unwrap();
    lab.remove(&outer.id, Force::Yes).await.unwrap();
    assert_eq!(lab.settle(&inner).await.unwrap(), Settled::Removed);
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_sparse_repository_gives_a_sparse_worktree() {
    let lab = Lab::new();
    lab.write("other/big.txt", "big");
    lab.commit_all();
    lab.git(&lab.repository(), &["sparse-checkout", "set", "src"]);
    let worktree = lab.create().await;
    assert!(worktree.path.join("src/deep/inner.txt").exists());
    assert!(!worktree.path.join("other").exists());
    assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);
    lab.assert_nothing_left();
}

#[tokio::test]
async fn submodules_stay_empty_and_can_have_worktrees_of_their_own() {
    let lab = Lab::new();
    let (repository, library) = (lab.repository(), lab.path("library"));
    std::fs::create_dir(&library).unwrap();
    lab.git(&library, &["init", "--quiet"]);
    write(&library.join("lib.txt"), "lib");
    lab.commit_in(&library);
    let local = "protocol.file.allow=always";
    let url = library.to_str().unwrap();
    let add = ["-c", local, "submodule", "--quiet", "add", url, "library"];
    lab.git(&repository, &add);
    lab.git(&repository, &["config", "submodule.recurse", "true"]);
    lab.commit_all();

    let worktree = lab.create().await;
    let entries = std::fs::read_dir(worktree.path.join("library")).unwrap();
    assert_eq!(entries.count(), 0);
    assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);

    let inner = lab.create_in(&repository.join("library")).await;
    assert_eq!(read(&inner.path.join("lib.txt")), "lib");
    assert_eq!(lab.settle(&inner).await.unwrap(), Settled::Removed);

    let filled = lab.create().await;
    let update = ["-c", local, "submodule", "--quiet", "update", "--init"];
    lab.git(&filled.path, &update);
    let settled = lab.settle(&filled).await.unwrap();
    let Settled::Kept { changes, .. } = settled else {
        panic!("what is in a submodule is not looked at, so it is kept");
    };
    assert_eq!(changes.files, ["library"]);
    lab.remove(&filled.id, Force::Yes).await.unwrap();
    lab.assert_nothing_left();
}
