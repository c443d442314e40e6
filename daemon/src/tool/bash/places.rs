//! Looks up on disk what the words of a command name, for its permission request: the working
//! directory, and links that lead elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRequest;

use crate::tool::git_folder::GitFolders;
use crate::tool::{Outcome, disk, texts};
use loopd_kernel::policy::shell::analysis::{self, Place};

/// How many words are looked up, and how many files of patterns. With more, it is not known where
/// they lead.
const MAX_WORDS: usize = 64;
const MAX_MATCHES: usize = 2_000;

/// What stands for a place that is not known. No rule for a directory covers it.
const UNKNOWN: &str = "/";

/// Adds to a permission request what its words name on disk.
pub(super) async fn resolved(
    mut request: PermissionRequest,
    cwd: &Path,
) -> Result<PermissionRequest, Outcome> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        resolved_working_directory,
        repository_folders,
        ..
    } = &mut request
    else {
        return Ok(request);
    };
    *resolved_working_directory = Some(directory(cwd));
    let places = analysis::places(full_command_text);
    // A few words are looked up in place, so that the call is judged at once.
    let found = if places.iter().any(|place| place.is_pattern) {
        let cwd = cwd.to_owned();
        disk::blocking(move || look_up(&cwd, &places)).await?
    } else {
        look_up(cwd, &places)
    };
    *resolved_paths = found.paths;
    *repository_folders = found.repositories.into_iter().collect();
    Ok(request)
}

/// Returns the working directory without links.
pub(super) fn directory(cwd: &Path) -> String {
    texts::path(&cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()))
}

/// What the words of a command name on disk.
#[derive(Debug, Default, PartialEq, Eq)]
struct LookedUp {
    /// The places that are not simply below the working directory, by their words.
    paths: BTreeMap<String, String>,
    /// The folders of repositories that a word names or leads into.
    repositories: BTreeSet<String>,
}

fn look_up(cwd: &Path, places: &[Place]) -> LookedUp {
    let mut looked_up = LookedUp::default();
    let found = &mut looked_up.paths;
    if places.is_empty() {
        return looked_up;
    }
    let Ok(real_cwd) = cwd.canonicalize() else {
        found.insert(".".to_owned(), UNKNOWN.to_owned());
        return looked_up;
    };
    let mut git_folders = GitFolders::default();
    let mut matches = 0;
    for (index, place) in places.iter().enumerate() {
        if index >= MAX_WORDS {
            found.insert(place.path.clone(), UNKNOWN.to_owned());
            break;
        }
        let candidates = if place.is_pattern {
            expand(&real_cwd, &place.path, &mut matches)
        } else {
            Some(vec![PathBuf::from(&place.path)])
        };
        let Some(candidates) = candidates else {
            found.insert(place.path.clone(), UNKNOWN.to_owned());
            continue;
        };
        for candidate in candidates {
            let real = real(&real_cwd.join(&candidate));
            let repository = git_folders.around(&real);
            let repository = repository.map(|folder| texts::path(&folder));
            looked_up.repositories.extend(repository);
            if real != tidy(&real_cwd.join(&candidate)) {
                found.insert(texts::path(&candidate), texts::path(&real));
            }
        }
    }
    looked_up
}

/// Returns the path without links. What does not exist is taken as it is written.
fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return tidy(&real.join(rest));
        }
    }
    path.to_owned()
}

/// Returns the path without `.`, `..` and a slash at its end. Links are not followed.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

/// Returns the files that a pattern may match, and perhaps more: a part with a gap stands for every
/// file of its folder. Returns `None` if there are too many.
fn expand(cwd: &Path, pattern: &str, matches: &mut usize) -> Option<Vec<PathBuf>> {
    let start = if pattern.starts_with('/') { "/" } else { "" };
    let mut paths = vec![PathBuf::from(start)];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !part.contains('*') {
            for path in &mut paths {
                path.push(part);
            }
            continue;
        }
        let mut below = Vec::new();
        for path in &paths {
            let Ok(entries) = std::fs::read_dir(cwd.join(path)) else {
                continue;
            };
            for entry in entries.flatten() {
                *matches += 1;
                if *matches > MAX_MATCHES {
                    return None;
                }
                below.push(path.join(entry.file_name()));
            }
        }
        paths = below;
    }
    Some(paths)
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_lead_elsewhere_are_found_also_through_patterns_and_folders() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let cwd = root.join("work");
        std::fs::create_dir_all(cwd.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(cwd.join("docs/in")).unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        std::fs::write(cwd.join("docs/plain"), "").unwrap();
        symlink(root.join("secret"), cwd.join("docs/link")).unwrap();
        let look = |path: &str, is_pattern| {
            let place = Place {
                path: path.to_owned(),
                is_pattern,
            };
            look_up(&cwd, &[place]).paths
        };
        let one =
            |name: &str, path: PathBuf| BTreeMap::from([(name.to_owned(), texts::path(&path))]);
        assert_eq!(look("docs/plain", false), BTreeMap::new());
        assert_eq!(look("docs/none/at/all", false), BTreeMap::new());
        assert_eq!(
            look("docs/link", false),
            one("docs/link", root.join("secret"))
        );
        assert_eq!(look("docs/*", true), one("docs/link", root.join("secret")));
        assert_eq!(look("*/link", true), one("docs/link", root.join("secret")));
        symlink(cwd.join(".git"), cwd.join("data")).unwrap();
        assert_eq!(
            look("data/new", false),
            one("data/new", cwd.join(".git/new"))
        );
        let through = cwd.join(".git/x");
        assert_eq!(
            look("data/hooks/../x", false),
            one("data/hooks/../x", through)
        );
    }
}
