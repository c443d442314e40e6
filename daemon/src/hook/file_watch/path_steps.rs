//! The names that paths are looked up by, one after another, links included.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Identity;

/// The most names of all paths together.
const MOST_STEPS: usize = 16 * 1024;
/// The most links in one path.
const MOST_LINKS: usize = 40;

/// All paths together have more than [`MOST_STEPS`] names.
#[derive(Debug)]
pub(super) struct TooManySteps;

/// The names that were looked up, each with its folder, and what they led to.
#[derive(Default)]
pub(super) struct PathSteps(BTreeMap<PathBuf, Option<Identity>>);

impl PathSteps {
    /// Follows a path to its end, or to a name that leads nowhere. `enters` is told each folder before a
    /// name is looked up in it.
    pub(super) fn follow(
        &mut self,
        path: &Path,
        mut enters: impl FnMut(&Path),
    ) -> Result<(), TooManySteps> {
        let mut folder = PathBuf::from("/");
        let mut waiting = names_of(path);
        let mut links = 0;
        while let Some(name) = waiting.pop_front() {
            let name = match name {
                Name::Root => {
                    folder = PathBuf::from("/");
                    continue;
                }
                Name::Parent => {
                    folder.pop();
                    continue;
                }
                Name::Entry(name) => name,
            };
            enters(&folder);
            let entry = folder.join(name);
            // What this user may not look up leads nowhere for the hook, too.
            let found = std::fs::symlink_metadata(&entry).ok();
            self.0.insert(entry.clone(), found.as_ref().map(identity));
            if self.0.len() > MOST_STEPS {
                return Err(TooManySteps);
            }
            match found {
                Some(found) if found.is_dir() => folder = entry,
                Some(found) if found.is_symlink() && links < MOST_LINKS => {
                    links += 1;
                    let target = std::fs::read_link(&entry).unwrap_or_default();
                    let mut target = names_of(&target);
                    target.append(&mut waiting);
                    waiting = target;
                }
                Some(_) | None => break,
            }
        }
        Ok(())
    }

    /// Returns what each name led to.
    pub(super) fn identities(self) -> BTreeMap<PathBuf, Option<Identity>> {
        self.0
    }
}

enum Name {
    Root,
    Parent,
    Entry(OsString),
}

fn names_of(path: &Path) -> VecDeque<Name> {
    let names = path.components().filter_map(|part| match part {
        Component::RootDir | Component::Prefix(_) => Some(Name::Root),
        Component::ParentDir => Some(Name::Parent),
        Component::CurDir => None,
        Component::Normal(name) => Some(Name::Entry(name.to_owned())),
    });
    names.collect()
}

fn identity(found: &Metadata) -> Identity {
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    #[cfg(unix)]
    let (device, number, changed) = {
        use std::os::unix::fs::MetadataExt;
        let seconds = Duration::from_secs(found.ctime().try_into().unwrap_or_default());
        let rest = Duration::from_nanos(found.ctime_nsec().try_into().unwrap_or_default());
        let changed = SystemTime::UNIX_EPOCH + seconds + rest;
        (found.dev(), found.ino(), changed)
    };
    #[cfg(not(unix))]
    let (device, number, changed) = (0, 0, modified);
    Identity {
        device,
        number,
        content: (!found.is_dir()).then_some((found.len(), modified)),
        changed,
    }
}
