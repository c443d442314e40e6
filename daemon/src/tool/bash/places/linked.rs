//! Finds the protected file that a hard link is another name of.

use std::path::Path;

use loopd_kernel::policy::protected::is_protected;

use crate::tool::texts;

/// How many entries of protected folders are compared. With more, the link counts as one of them.
const MOST_ENTRIES: usize = 2_000;

/// Returns the protected file of a project that this file is another name of.
#[cfg(unix)]
pub(super) fn protected_name(root: &Path, file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = file.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.nlink() < 2 {
        return None;
    }
    let is_same = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|it| it.dev() == metadata.dev() && it.ino() == metadata.ino())
    };
    let mut left = MOST_ENTRIES;
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let below = path.strip_prefix(root).unwrap_or(&path);
            if !is_protected(&below.to_string_lossy()) {
                continue;
            }
            let Some(fewer) = left.checked_sub(1) else {
                return Some(texts::path(&path));
            };
            left = fewer;
            // The objects of a repository are named by what is in them.
            let is_object = below.starts_with(".git/objects");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_object => waiting.push(path),
                Ok(kind) if kind.is_file() && is_same(&path) => return Some(texts::path(&path)),
                _ => {}
            }
        }
    }
    None
}

#[cfg(not(unix))]
pub(super) fn protected_name(_root: &Path, _file: &Path) -> Option<String> {
    None
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;
    use crate::tool::fixture::Fixture;

    #[test]
    fn a_hard_link_has_the_name_of_the_protected_file() {
        let fixture = Fixture::new();
        for file in [".git/config", "plain", "src/.envrc"] {
            fixture.write(file, "text");
        }
        let root = fixture.path("").canonicalize().unwrap();
        let link =
            |of: &str, name: &str| std::fs::hard_link(root.join(of), root.join(name)).unwrap();
        link(".git/config", "hard");
        link("plain", "other");
        let named = |name: &str| protected_name(&root, &root.join(name));
        assert_eq!(named("hard"), Some(texts::path(&root.join(".git/config"))));
        assert_eq!(named("other"), None);
        assert_eq!(named("src/.envrc"), None);
        assert_eq!(named("nothing"), None);
    }
}
