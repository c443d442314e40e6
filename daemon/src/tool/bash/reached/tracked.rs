//! Whether git keeps a file, by the index of its repository. What cannot be read counts as kept.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest index that is read.
const LARGEST_INDEX: u64 = 64 * 1024 * 1024;

/// The indexes of repositories that were read.
#[derive(Debug, Default)]
pub(super) struct Tracked(HashMap<PathBuf, Option<Vec<u8>>>);

impl Tracked {
    /// Returns whether git keeps a file, or a file in this folder.
    pub(super) fn has(&mut self, path: &Path) -> bool {
        let Some(top) = path
            .ancestors()
            .skip(1)
            .find(|folder| folder.join(".git").exists())
        else {
            return false;
        };
        let Ok(name) = path.strip_prefix(top) else {
            return true;
        };
        let index = self.0.entry(top.to_owned()).or_insert_with(|| index(top));
        let Some(index) = index else {
            return true;
        };
        let name = name.as_os_str().as_encoded_bytes();
        // Names stand whole and end with a zero.
        memchr::memmem::find_iter(index, name).any(|at| {
            let after = index.get(at + name.len());
            matches!(after, Some(0 | b'/'))
        })
    }
}

/// Reads the index of a repository; `None` if its names cannot be compared.
fn index(top: &Path) -> Option<Vec<u8>> {
    let git = top.join(".git");
    let folder = if git.is_dir() {
        git
    } else {
        let text = std::fs::read_to_string(&git).ok()?;
        top.join(text.strip_prefix("gitdir:")?.trim())
    };
    let path = folder.join("index");
    if path.try_exists().is_ok_and(|exists| !exists) {
        return Some(Vec::new());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LARGEST_INDEX).read_to_end(&mut bytes).ok()?;
    // Version 4 shortens names by what they share with the one before.
    let is_whole = matches!(bytes.get(..8)?, [b'D', b'I', b'R', b'C', 0, 0, 0, 2 | 3]);
    (is_whole && (bytes.len() as u64) < LARGEST_INDEX).then_some(bytes)
}
