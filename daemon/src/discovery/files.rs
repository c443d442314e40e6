//! Reads files and folders within bounds, and follows links only where it is safe.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::Problem;
use crate::regular_file;

/// The maximum size of a file.
pub(super) const LARGEST_FILE: u64 = 1024 * 1024;
/// The maximum number of entries in a folder.
const MOST_ENTRIES: usize = 1_000;

/// Where links may lead.
#[derive(Debug, Clone)]
enum Links {
    /// Not out of this folder: the author of a project must not choose which other files are read.
    Within(PathBuf),
    /// Anywhere: in the user's own folders the links are the user's own.
    Anywhere,
}

/// Reads files below one folder.
#[derive(Debug, Clone)]
pub(super) struct FolderReader {
    links: Links,
}

impl FolderReader {
    /// Creates a reader for a folder that other people may have written.
    pub(super) fn within(folder: &Path) -> Self {
        // A missing folder has no files, so its path does not matter.
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        Self {
            links: Links::Within(real),
        }
    }

    /// Creates a reader for the user's own folders.
    pub(super) fn own() -> Self {
        Self {
            links: Links::Anywhere,
        }
    }

    /// Reads a text file; `None` if it does not exist.
    pub(super) fn text(&self, path: &Path) -> Result<Option<String>, Problem> {
        let Some(real) = self.real(path)? else {
            return Ok(None);
        };
        let cannot = |error: std::io::Error| Problem::new(path, format!("cannot be read: {error}"));
        let file = regular_file::open(&real).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        let too_large = || {
            let limit = LARGEST_FILE / 1024;
            Problem::new(path, format!("is larger than {limit} KiB and is not read"))
        };
        if metadata.len() > LARGEST_FILE {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        // The file may have grown since.
        file.take(LARGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(cannot)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(too_large());
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(before);
            let line = lines.filter(|byte| **byte == b'\n').count() + 1;
            Problem::at(path, line, "is not UTF-8 text")
        })?;
        Ok(Some(text))
    }

    /// Returns the entries of a folder, sorted by name; none if the folder does not exist.
    pub(super) fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, Problem> {
        let Some(real) = self.real(folder)? else {
            return Ok(Vec::new());
        };
        if !real.is_dir() {
            return Ok(Vec::new());
        }
        let cannot =
            |error: std::io::Error| Problem::new(folder, format!("cannot be read: {error}"));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&real).map_err(cannot)? {
            if names.len() == MOST_ENTRIES {
                let what = format!("has more than {MOST_ENTRIES} entries and is not read");
                return Err(Problem::new(folder, what));
            }
            names.push(folder.join(entry.map_err(cannot)?.file_name()));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns whether a path is a folder that may be read.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        self.real(path)
            .is_ok_and(|real| real.is_some_and(|real| real.is_dir()))
    }

    /// Resolves a path; `None` if it does not exist, a problem if it leads out of the folder.
    fn real(&self, path: &Path) -> Result<Option<PathBuf>, Problem> {
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(Problem::new(path, format!("cannot be read: {error}"))),
        };
        match &self.links {
            Links::Within(folder) if !real.starts_with(folder) => Err(Problem::new(
                path,
                "is a link that leads out of its project and is not followed",
            )),
            Links::Within(_) | Links::Anywhere => Ok(Some(real)),
        }
    }
}
