//! What a command in a sandbox may read: everything but the database of the daemon. A lock on one of its
//! files, for which it is enough to open the file for reading, would stop every session.

use std::path::{Path, PathBuf};

/// The names of the database and of the files beside it begin with this.
const DATABASE: &str = "loopd.db";

/// Returns the files and folders below which everything may be read. Landlock cannot leave out a part of
/// a folder, so that these are all neighbours of the home and of the folders that it is in, and what is
/// in the home. What is made beside them later cannot be read.
pub(super) fn readable(home: &Path) -> Vec<PathBuf> {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let mut readable = Vec::new();
    let mut inner: Option<&Path> = None;
    for folder in home.ancestors() {
        // What cannot be listed is not for this user.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let entries = entries.map(|entry| entry.path());
        readable.extend(entries.filter(|entry| match inner {
            Some(inner) => entry != inner,
            None => !is_database(entry),
        }));
        inner = Some(folder);
    }
    readable
}

fn is_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(DATABASE.as_bytes())
}
