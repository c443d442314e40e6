//! What a crash leaves is listed and can be removed.

use super::*;

fn entry_in_repository(lab: &Lab, worktree: &Worktree) -> PathBuf {
    let name = worktree.path.file_name().unwrap();
    lab.repository().join(".git/worktrees").join(name)
}

/// A worktree whose daemon has ended.
async fn left(lab: &mut Lab) -> Worktree {
    let worktree = lab.create().await;
    lab.restart();
    worktree
}

#[tokio::test]
async fn a_worktree_in_use_is_not_removed() {
    let mut lab = Lab::new();
    let worktree = lab.create().await;
    for force in [Force::No, Force::Yes] {
        let error = lab.remove(&worktree.id, force).await.unwrap_err();
        assert!(matches!(error, WorktreeError::InUse(_)), "{error}");
    }
    lab.restart();
    let live = HashSet::from(["0199-Agent.Session".into()]);
    let env = lab.env();
    let list = lab.worktrees.list(&live, &env).await.unwrap();
    assert_eq!(list[0].usage, Use::InUse);
    let removed = lab.worktrees.remove(&worktree.id, Force::Yes, &live, &env);
    let error = removed.await.unwrap_err();
    assert!(matches!(error, WorktreeError::InUse(_)), "{error}");
    assert_eq!(lab.only().await.usage, Use::Leftover);
    lab.remove(&worktree.id, Force::No).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn changes_of_a_leftover_are_listed() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    write(&worktree.path.join("new.txt"), "");
    let entry = lab.only().await;
    assert_eq!(entry.usage, Use::Leftover);
    assert_eq!(entry.commit.as_ref(), Some(&worktree.commit));
    assert_eq!(entry.repository.as_ref(), Some(&worktree.repository));
    assert!(matches!(entry.contents, Contents::Changed(_)), "{entry:?}");
    let error = lab.remove(&worktree.id, Force::No).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Changed { .. }), "{error}");
    lab.remove(&worktree.id, Force::Yes).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_record_without_a_folder_is_listed() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    std::fs::remove_dir_all(&worktree.path).unwrap();
    let entry = lab.only().await;
    assert_eq!(
        (entry.usage, entry.contents),
        (Use::Leftover, Contents::Unchanged)
    );
    assert!(entry_in_repository(&lab, &worktree).exists());
    lab.remove(&worktree.id, Force::No).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn an_incomplete_record_is_listed() {
    let lab = Lab::new();
    write(&lab.home().join("worktrees/half.json"), "{\"session\"");
    let entry = lab.only().await;
    assert_eq!((entry.id.as_str(), entry.usage), ("half", Use::Leftover));
    assert_eq!(entry.session, None);
    lab.remove("half", Force::No).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_folder_that_the_repository_does_not_know_is_removed_only_by_force() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    std::fs::remove_dir_all(entry_in_repository(&lab, &worktree)).unwrap();
    let entry = lab.only().await;
    assert!(matches!(entry.contents, Contents::Unclear(_)), "{entry:?}");
    let error = lab.remove(&worktree.id, Force::No).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Unclear { .. }), "{error}");
    assert!(worktree.path.exists());
    lab.remove(&worktree.id, Force::Yes).await.unwrap();
    assert!(!worktree.path.exists());
    assert_eq!(lab.list().await, []);
}

#[tokio::test]
async fn a_folder_without_a_record_is_removed_only_by_force() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    std::fs::remove_file(worktree.path.with_extension("json")).unwrap();
    let entry = lab.only().await;
    assert_eq!((entry.usage, entry.session), (Use::Leftover, None));
    let error = lab.remove(&worktree.id, Force::No).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Unclear { .. }), "{error}");
    lab.remove(&worktree.id, Force::Yes).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_worktree_whose_files_were_not_all_written_needs_no_force() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    let record = worktree.path.with_extension("json");
    let making = read(&record).replace("\"ready\"", "\"making\"");
    assert!(making.contains("making"), "{making}");
    std::fs::write(&record, making).unwrap();
    std::fs::remove_file(worktree.path.join("tracked.txt")).unwrap();
    let entry = lab.only().await;
    assert_eq!(
        (entry.usage, entry.contents),
        (Use::Leftover, Contents::Unchanged)
    );
    lab.remove(&worktree.id, Force::No).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn a_worktree_whose_repository_is_gone_is_removed_only_by_force() {
    let mut lab = Lab::new();
    let worktree = left(&mut lab).await;
    std::fs::remove_dir_all(lab.repository()).unwrap();
    let entry = lab.only().await;
    assert!(matches!(entry.contents, Contents::Unclear(_)), "{entry:?}");
    assert!(lab.remove(&worktree.id, Force::No).await.is_err());
    lab.remove(&worktree.id, Force::Yes).await.unwrap();
    lab.assert_nothing_left();
}

#[tokio::test]
async fn other_worktrees_of_the_repository_stay_registered() {
    let lab = Lab::new();
    let repository = lab.repository();
    let add = ["worktree", "add", "--quiet", "--detach", "../foreign"];
    lab.git(&repository, &add);
    // Hides the folder, as if its disk were not mounted.
    std::fs::rename(lab.path("foreign"), lab.path("unmounted")).unwrap();
    let worktree = lab.create().await;
    assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);
    let known = lab.git(&repository, &["worktree", "list"]);
    assert!(known.contains("foreign"), "{known}");
    assert!(!known.contains("agentsession"), "{known}");
}
