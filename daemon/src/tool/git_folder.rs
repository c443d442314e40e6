//! Finds the folders in which git keeps a repository, whatever their names are: a bare repository,
//! or one whose working files are elsewhere. What is written there can make git run something, and so
//! can what is written to files that the configuration of a repository names. The
//! file tools and `bash` name them in their permission requests; the rules decide.

mod config;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many repositories around a path are looked at.
const MAX_REPOSITORIES: usize = 4;

/// The folders of repositories, as they are on the disk now. Each folder is looked at once.
#[derive(Debug, Default)]
pub(super) struct GitFolders {
    seen: HashMap<PathBuf, Option<PathBuf>>,
    /// What the configuration of a repository names, by the folder of its working files.
    named: HashMap<PathBuf, Vec<PathBuf>>,
}

impl GitFolders {
    /// Returns what makes git run something and is this path or has it inside: the folder of a
    /// repository, or a file or folder that the configuration of a repository names. The path has no
    /// links. A folder with the name `.git` is not looked for, because its name tells.
    pub(super) fn guarding(&mut self, path: &Path) -> Option<PathBuf> {
        self.around(path).or_else(|| self.naming(path))
    }

    /// Returns what configurations of repositories name below a folder.
    pub(super) fn named_below(&mut self, folder: &Path) -> Vec<PathBuf> {
        let named = self.named_around(folder);
        named
            .into_iter()
            .filter(|it| it.starts_with(folder))
            .collect()
    }

    /// Returns the file or folder that the configuration of a repository around this path names.
    fn naming(&mut self, path: &Path) -> Option<PathBuf> {
        let named = self.named_around(path);
        named.into_iter().find(|named| path.starts_with(named))
    }

    /// Returns what the configurations of the repositories around a path name.
    fn named_around(&mut self, path: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let roots = path.ancestors().skip(1).filter(has_git);
        for root in roots.take(MAX_REPOSITORIES) {
            let named = self.named.entry(root.to_owned());
            let named = named.or_insert_with(|| config::named_files(root));
            found.extend(named.iter().cloned());
        }
        found
    }

    fn around(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.seen.get(path) {
            return known.clone();
        }
        let found = if is_repository(path) {
            Some(path.to_owned())
        } else if path.join(".git").symlink_metadata().is_ok() {
            // Working files, which may lie in the folder of a bare repository.
            None
        } else {
            path.parent().and_then(|parent| self.around(parent))
        };
        self.seen.insert(path.to_owned(), found.clone());
        found
    }
}

/// Whether git takes a folder for a repository.
fn is_repository(folder: &Path) -> bool {
    let has_folder = |name: &str| folder.join(name).is_dir();
    folder.join("HEAD").symlink_metadata().is_ok()
        && ((has_folder("objects") && has_folder("refs"))
            || folder.join("commondir").symlink_metadata().is_ok())
        && folder.file_name().is_some_and(|name| name != ".git")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_told_by_what_is_in_it_and_working_files_are_not_in_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let repository = |name: &str| {
            let folder = root.join(name);
            for below in ["objects", "refs", "hooks"] {
                std::fs::create_dir_all(folder.join(below)).unwrap();
            }
            std::fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            folder
        };
        let bare = repository("a/.bare");
        let above = repository("above");
        std::fs::create_dir_all(above.join("main/src")).unwrap();
        std::fs::write(above.join("main/.git"), "gitdir: ../worktrees/main\n").unwrap();
        let linked = above.join("worktrees/main");
        std::fs::create_dir_all(&linked).unwrap();
        for file in ["HEAD", "commondir"] {
            std::fs::write(linked.join(file), "../..\n").unwrap();
        }
        let around = |path: &Path| GitFolders::default().around(path);
        assert_eq!(around(&bare), Some(bare.clone()));
        assert_eq!(around(&bare.join("config")), Some(bare.clone()));
        assert_eq!(around(&bare.join("hooks/new/one")), Some(bare.clone()));
        assert_eq!(around(&linked.join("config.worktree")), Some(linked));
        assert_eq!(around(&above.join("hooks/x")), Some(above.clone()));
        assert_eq!(around(&above.join("main/src/a.rs")), None);
        assert_eq!(around(&root.join("a/HEAD")), None);
        assert_eq!(around(Path::new("/")), None);
    }
}
