//! Lists a folder two levels deep, sorted, with a bound on the number of names.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::DiskError;
use crate::tool::closed::{ClosedPlaces, Closure};
use crate::tool::disk::{self, Listed};
use crate::tool::{texts, walk};

/// How many names are printed.
const MAX_NAMES: usize = 500;

/// How many names of one folder are read. Of a larger folder only these are sorted.
const MAX_READ: usize = 20_000;

/// Prints the names in a folder and in the folders in it.
pub(super) fn list(
    folder: &Path,
    closed: &ClosedPlaces,
    cancel: &CancellationToken,
) -> Result<String, DiskError> {
    let mut asked = 0;
    let mut entries = |folder: &Path| -> Result<Vec<(String, Listed)>, DiskError> {
        let mut found = entries(folder)?;
        found.retain(|(name, _)| match closed.at(&folder.join(name)) {
            None => true,
            Some(Closure::Denied) => false,
            Some(Closure::Asked) => {
                asked += 1;
                false
            }
        });
        Ok(found)
    };
    let mut names = Vec::new();
    let mut left_out = 0_usize;
    let mut add = |name: String| {
        if names.len() < MAX_NAMES {
            names.push(texts::listed(&name));
        } else {
            left_out += 1;
        }
    };
    for (name, kind) in entries(folder)? {
        if cancel.is_cancelled() {
            break;
        }
        if kind != Listed::Folder {
            add(name);
            continue;
        }
        add(format!("{name}/"));
        // The contents of hidden folders (.git, caches) would fill the list.
        if name.starts_with('.') {
            continue;
        }
        // A folder that may not be read is listed by name only.
        for (inner, kind) in entries(&folder.join(&name)).unwrap_or_default() {
            let slash = if kind == Listed::Folder { "/" } else { "" };
            add(format!("{name}/{inner}{slash}"));
        }
    }
    let closed = walk::closed_notes(closed.denies_below(folder), asked);
    if names.is_empty() && closed.is_empty() {
        return Ok("The folder is empty.".to_owned());
    }
    if left_out > 0 {
        names.push(format!(
            "[{left_out} more names were left out; view a folder further down or use glob.]"
        ));
    }
    names.extend(closed);
    Ok(names.join("\n"))
}

fn entries(folder: &Path) -> Result<Vec<(String, Listed)>, DiskError> {
    let mut entries: Vec<(String, Listed)> = disk::list(folder, MAX_READ)?
        .into_iter()
        .map(|(name, kind)| (name.to_string_lossy().into_owned(), kind))
        .collect();
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(entries)
}
