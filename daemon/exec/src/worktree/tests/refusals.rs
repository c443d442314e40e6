//! If no worktree can be created, the error names the cause and nothing is left.

use super::*;

/// Fails to create a worktree, and returns the error and its text.
async fn refused(lab: &Lab, cwd: &Path) -> (WorktreeError, String) {
    let error = lab.try_create(cwd).await.unwrap_err();
    lab.assert_nothing_left();
    let text = error.to_string();
    (error, text)
}

#[tokio::test]
async fn folders_without_files_of_a_repository_are_refused() {
    let lab = Lab::new();
    let plain = lab.path("user");
    let (error, text) = refused(&lab, &plain).await;
    assert!(matches!(error, WorktreeError::NoRepository(folder) if folder == plain));
    assert!(text.contains("git init"), "{text}");

    let (error, _) = refused(&lab, &lab.path("nowhere")).await;
    assert!(matches!(error, WorktreeError::NoFolder(_)), "{error}");

    lab.git(&plain, &["init", "--quiet", "--bare", "../bare"]);
    for inside in ["bare", "project/.git"] {
        let (error, _) = refused(&lab, &lab.path(inside)).await;
        assert!(matches!(error, WorktreeError::NoFiles(_)), "{error}");
    }

    lab.git(&plain, &["init", "--quiet", "../empty"]);
    let (error, text) = refused(&lab, &lab.path("empty")).await;
    assert!(matches!(error, WorktreeError::NoCommit(_)), "{error}");
    assert!(text.contains("git commit"), "{text}");
}

#[tokio::test]
async fn a_missing_git_is_reported() {
    let lab = Lab::new();
    let mut env = lab.env();
    env.insert("PATH".to_owned(), lab.path("user").display().to_string());
    let made = lab.create_with(&env);
    let error = made.await.unwrap_err();
    assert!(matches!(error, WorktreeError::NoGit), "{error}");
    lab.assert_nothing_left();
}

/// Puts a script named `git` into `PATH` before the real one, which the script can run as `$real`.
fn with_git(lab: &Lab, script: &str) -> Environment {
    let mut env = lab.env();
    let find = "for folder in $(echo \"$REAL_PATH\" | tr : ' '); do \
                [ -x \"$folder/git\" ] && real=\"$folder/git\" && break; done";
    write_program(&lab.path("bin/git"), &format!("{find}\n{script}"));
    let path = env.insert(
        "PATH".to_owned(),
        format!("{}:/usr/bin:/bin", lab.path("bin").display()),
    );
    env.insert("REAL_PATH".to_owned(), path.unwrap());
    env
}

#[tokio::test]
async fn git_decides_whether_a_repository_of_another_user_is_safe() {
    let lab = Lab::new();
    let script = "export GIT_TEST_ASSUME_DIFFERENT_OWNER=1; exec \"$real\" \"$@\"";
    let mut env = with_git(&lab, script);
    let made = lab.create_with(&env);
    let error = made.await.unwrap_err();
    assert!(matches!(error, WorktreeError::ForeignOwner(_)), "{error}");
    assert!(error.to_string().contains("safe.directory"), "{error}");
    lab.assert_nothing_left();

    // A user trusts it by the same setting as for git itself.
    for (name, value) in [
        ("COUNT", "1"),
        ("KEY_0", "safe.directory"),
        ("VALUE_0", "*"),
    ] {
        env.insert(format!("GIT_CONFIG_{name}"), value.to_owned());
    }
    let made = lab.create_with(&env);
    let worktree = made.await.unwrap();
    let settled = lab.worktrees.settle(&worktree, &env).await.unwrap();
    assert_eq!(settled, Settled::Removed);
}

#[tokio::test]
async fn a_git_that_ignores_our_settings_is_not_used() {
    let lab = Lab::new();
    let env = with_git(&lab, "unset GIT_CONFIG_COUNT; exec \"$real\" \"$@\"");
    let made = lab.create_with(&env);
    let error = made.await.unwrap_err();
    assert!(matches!(error, WorktreeError::GitTooOld), "{error}");
    lab.assert_nothing_left();
}

#[tokio::test]
async fn folders_that_cannot_be_written_are_reported_and_left_unchanged() {
    let lab = Lab::new();
    let full = "case \"$*\" in *\"reset --hard\"*) \
                echo 'error: unable to write file a: No space left on device' >&2; exit 128;; \
                esac; exec \"$real\" \"$@\"";
    let env = with_git(&lab, full);
    let made = lab.create_with(&env);
    let error = made.await.unwrap_err();
    assert!(
        matches!(error, WorktreeError::NotWritable { .. }),
        "{error}"
    );
    lab.assert_nothing_left();

    let blocked = lab.repository().join(".git/worktrees");
    write(&blocked, "not a folder");
    let (error, _) = refused(&lab, &lab.repository()).await;
    assert!(matches!(error, WorktreeError::Git { .. }), "{error}");
    std::fs::remove_file(blocked).unwrap();

    let root = lab.home().join("worktrees");
    std::fs::remove_dir_all(&root).unwrap();
    write(&root, "not a folder");
    let error = lab.try_create(&lab.repository()).await.unwrap_err();
    assert!(
        matches!(&error, WorktreeError::Disk { path, .. } if *path == root),
        "{error}"
    );
}
