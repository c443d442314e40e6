//! Looks up on disk what the words of a command name, for its permission request: the working
//! directory, and links that lead elsewhere.

mod linked;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRequest;

use super::reached;
use super::words;
use crate::tool::closed::ClosedPlaces;
use crate::tool::git_folder::GitFolders;
use crate::tool::{AssessContext, Outcome, disk, texts};
use loopd_kernel::policy::GuardedPaths;
use loopd_kernel::policy::shell::analysis::{self, Place};

/// How many words are looked up, and how many files of patterns. With more, it is not known where
/// they lead.
const MAX_WORDS: usize = 64;
const MAX_MATCHES: usize = 2_000;

/// What stands for a place that is not known. No rule for a directory covers it.
const UNKNOWN: &str = "/";

/// Adds to a permission request what its words name on disk.
///
/// `shell` are the directories that earlier commands may have led the shell to. Words are looked up
/// from there as well, and then stand in the request with the directory.
pub(super) async fn resolved(
    mut request: PermissionRequest,
    context: &AssessContext,
    shell: Vec<String>,
) -> Result<PermissionRequest, Outcome> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        resolved_working_directory,
        reached,
        repository_folders,
        can_offer_session_approval,
        warning,
        ..
    } = &mut request
    else {
        return Ok(request);
    };
    let cwd = &context.cwd;
    *resolved_working_directory = Some(directory(cwd));
    let places = analysis::places(full_command_text);
    // A few words are looked up in place, so that the call is judged at once.
    let is_much = !shell.is_empty()
        || *context.guarded != GuardedPaths::default()
        || places.iter().any(|place| place.is_pattern);
    let found = if is_much {
        let (cwd, guarded) = (cwd.to_owned(), context.guarded.clone());
        let command = full_command_text.clone();
        disk::blocking(move || {
            let closed = ClosedPlaces::of(&guarded);
            let mut found = look_up(&cwd, &places, &closed);
            for directory in &shell {
                found.add_from(directory, &places, &closed);
            }
            let starts = std::iter::once(cwd.as_path()).chain(shell.iter().map(Path::new));
            let starts: Vec<PathBuf> = starts.map(real).collect();
            found.reached = reached::reached(&command, &starts, &closed);
            found
        })
        .await?
    } else {
        look_up(cwd, &places, &ClosedPlaces::default())
    };
    *resolved_paths = found.paths;
    let guards_reading =
        !context.guarded.denied_reads.is_empty() || !context.guarded.asked_reads.is_empty();
    *reached = guards_reading.then(|| found.reached.into_iter().collect());
    if moves_folder(cwd, full_command_text) {
        *can_offer_session_approval = false;
        let why = words::MOVES_FOLDER;
        *warning = Some(match warning.take() {
            Some(other) => format!("{other} {why}"),
            None => why.to_owned(),
        });
    }
    *repository_folders = found.repositories.into_iter().collect();
    Ok(request)
}

/// Returns the working directory without links.
pub(super) fn directory(cwd: &Path) -> String {
    texts::path(&cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()))
}

/// Whether a command may move a folder, with all that is in it.
fn moves_folder(cwd: &Path, command: &str) -> bool {
    let is_file = |word: &String| {
        let found = cwd.join(word).symlink_metadata();
        found.is_ok_and(|found| !found.is_dir())
    };
    analysis::moved(command).is_none_or(|words| !words.iter().all(is_file))
}

/// What the words of a command name on disk.
#[derive(Debug, Default, PartialEq, Eq)]
struct LookedUp {
    /// The places that are not simply below the working directory, by their words.
    paths: BTreeMap<String, String>,
    /// The folders of repositories that a word names or leads into.
    repositories: BTreeSet<String>,
    /// The places of rules that the command reaches without naming them.
    reached: BTreeSet<String>,
}

impl LookedUp {
    /// Adds what the words name in another directory.
    fn add_from(&mut self, directory: &str, places: &[Place], closed: &ClosedPlaces) {
        let here = Path::new(directory);
        let from_there = look_up(here, places, closed);
        for (word, path) in from_there.paths {
            self.paths.insert(texts::path(&here.join(word)), path);
        }
        self.repositories.extend(from_there.repositories);
        // Whoever reads the request knows by this that the directory was looked up.
        let real = texts::path(&real(here));
        self.paths.insert(directory.to_owned(), real);
    }
}

fn look_up(cwd: &Path, places: &[Place], closed: &ClosedPlaces) -> LookedUp {
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
            let repository = git_folders.guarding(&real);
            let repository = repository.map(|folder| texts::path(&folder));
            looked_up.repositories.extend(repository);
            if real != real_cwd && real.is_dir() {
                // The line may go there, or write to what is below.
                let below = git_folders.named_below(&real);
                let below = below.iter().map(|named| texts::path(named));
                looked_up.repositories.extend(below);
            }
            // A rule may use another name for it: through a link, or of a hard link.
            if let Some(name) = closed.names(&real).into_iter().next() {
                found.insert(texts::path(&candidate), name);
            } else if let Some(name) = linked::protected_name(&real_cwd, &real) {
                found.insert(texts::path(&candidate), name);
            } else if real != tidy(&real_cwd.join(&candidate)) {
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
pub(super) fn tidy(path: &Path) -> PathBuf {
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
            look_up(&cwd, &[place], &ClosedPlaces::default()).paths
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

    #[test]
    fn only_what_is_known_to_be_a_file_is_moved_like_one() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("folder")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        symlink("folder", root.path().join("link")).unwrap();
        let moves = |line: &str| moves_folder(root.path(), line);
        for line in [
            "mv file other",
            "mv link other",
            "git mv file a",
            "ls folder",
        ] {
            assert!(!moves(line), "{line}");
        }
        for line in [
            "mv folder .",
            "mv file folder x",
            "mv none x",
            "git mv folder x",
        ] {
            assert!(moves(line), "{line}");
        }
    }
}
