mod leftovers;
mod making;
mod refusals;
mod settings;
mod settling;
mod traps;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::keep_alive::KeepAlive;

/// A home, a repository with one commit, and an environment without other git configuration.
struct Lab {
    folder: TempDir,
    worktrees: Worktrees,
}

impl Lab {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["home", "user", "project"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let lab = Self {
            worktrees: worktrees(&folder.path().join("home")),
            folder,
        };
        lab.git(&lab.repository(), &["init", "--quiet"]);
        lab.write("tracked.txt", "one\n");
        lab.write("src/deep/inner.txt", "two\n");
        lab.write(".gitignore", "*.log\n/build/\n");
        lab.commit_all();
        lab
    }

    /// Replaces the handle, as a new daemon for the same home would.
    fn restart(&mut self) {
        self.worktrees = worktrees(&self.home());
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn repository(&self) -> PathBuf {
        self.path("project")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.repository().join(name), text);
    }

    fn env(&self) -> Environment {
        let user = self.path("user").to_str().unwrap().to_owned();
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), user),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ]);
        for role in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{role}_NAME"), "Test".to_owned());
            env.insert(format!("GIT_{role}_EMAIL"), "test@example.com".to_owned());
        }
        env
    }

    /// Runs git without our settings, as a user would, and returns its output.
    fn git(&self, folder: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .env_clear()
            .envs(self.env())
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit_all(&self) -> String {
        self.commit_in(&self.repository())
    }

    fn commit_in(&self, folder: &Path) -> String {
        self.git(folder, &["add", "--all"]);
        self.git(folder, &["commit", "--quiet", "-m", "A commit"]);
        self.git(folder, &["rev-parse", "HEAD"])
    }

    async fn create(&self) -> Worktree {
        self.create_in(&self.repository()).await
    }

    async fn create_in(&self, cwd: &Path) -> Worktree {
        self.try_create(cwd).await.unwrap()
    }

    async fn try_create(&self, cwd: &Path) -> Result<Worktree, WorktreeError> {
        let owner = SessionId::from("0199-Agent.Session");
        self.worktrees.create(&owner, cwd, &self.env()).await
    }

    async fn create_with(&self, env: &Environment) -> Result<Worktree, WorktreeError> {
        let (owner, cwd) = (SessionId::from("s"), self.repository());
        self.worktrees.create(&owner, &cwd, env).await
    }

    async fn settle(&self, worktree: &Worktree) -> Result<Settled, WorktreeError> {
        self.worktrees.settle(worktree, &self.env()).await
    }

    async fn list(&self) -> Vec<WorktreeEntry> {
        let entries = self.worktrees.list(&HashSet::new(), &self.env()).await;
        entries.unwrap()
    }

    async fn only(&self) -> WorktreeEntry {
        let mut list = self.list().await;
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    async fn remove(&self, id: &str, force: Force) -> Result<(), WorktreeError> {
        let nobody = HashSet::new();
        self.worktrees.remove(id, force, &nobody, &self.env()).await
    }

    /// Asserts that nothing is left in the home and in the repository.
    fn assert_nothing_left(&self) {
        let root = self.home().join("worktrees");
        let names: Vec<_> = std::fs::read_dir(&root)
            .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
            .unwrap_or_default();
        assert!(names.is_empty(), "{names:?}");
        let registered = self.repository().join(".git/worktrees");
        assert!(!registered.is_dir(), "an entry is left in the repository");
    }
}

fn worktrees(home: &Path) -> Worktrees {
    Worktrees::new(home, Processes::new(home, KeepAlive::default()))
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn write_program(path: &Path, text: &str) {
    write(path, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
