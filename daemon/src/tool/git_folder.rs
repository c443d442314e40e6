//! Finds the folders in which git keeps a repository, whatever their names are: a bare repository,
//! or one whose working files are elsewhere. What is written there can make git run something. The
//! file tools and `bash` name them in their permission requests; the rules decide.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The folders of repositories, as they are on the disk now. Each folder is looked at once.
#[derive(Debug, Default)]
pub(super) struct GitFolders {
    seen: HashMap<PathBuf, Option<PathBuf>>,
}

impl GitFolders {
    /// Returns the folder of the repository that this path is or lies in. The path has no links. A
    /// folder with the name `.git` is not looked for, because its name tells.
    pub(super) fn around(&mut self, path: &Path) -> Option<PathBuf> {
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
