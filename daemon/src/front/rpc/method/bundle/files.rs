//! The own files of a session that a bundle has, and those that it does not have.

use std::path::Path;

use loopd_store::todos;

use super::super::workspace::files::{self, FileError, Inside, OwnFolder};
use super::MOST_BYTES;
use crate::services::PLAN;

/// The folders and the file that belong to the conversation.
const FOLDERS: [&str; 4] = ["agents", "checkpoints", "files", "temp"];
/// The folder with earlier versions of files, and the file that hooks read.
const EARLIER_VERSIONS: &str = "rewind";
const TRANSCRIPT: &str = "transcript.jsonl";

/// The largest file of a bundle.
pub(super) const LARGEST_FILE: u64 = 32 * 1024 * 1024;

/// What a bundle has of the files of a session.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listed {
    /// The paths below the session's own folder, in order.
    pub(super) paths: Vec<String>,
    /// What is left out, in words.
    pub(super) left_out: Vec<String>,
}

/// Returns whether a file with this path may be in a bundle.
pub(super) fn belongs(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    Inside::new(path).is_ok_and(|inside| inside.to_string() == path)
        && (path == PLAN || (FOLDERS.contains(&first) && path.len() > first.len()))
}

/// Lists the files of a session, whose log has `log` bytes. Blocks.
pub(super) fn list(own: &OwnFolder, log: u64) -> Result<Listed, FileError> {
    let mut listed = Listed::default();
    let folder = own.home.join(&own.below);
    let mut paths = Vec::new();
    if has_file(&folder.join(PLAN)) {
        paths.push(PLAN.to_owned());
    }
    for name in FOLDERS {
        let below = OwnFolder {
            home: own.home.clone(),
            below: own.below.join(name),
        };
        let found = files::list(&below)?;
        paths.extend(found.into_iter().map(|path| format!("{name}/{path}")));
    }
    paths.sort_unstable();
    let mut room = MOST_BYTES.saturating_sub(log);
    for path in paths {
        let bytes = std::fs::symlink_metadata(folder.join(&path)).map_or(0, |file| file.len());
        if bytes > LARGEST_FILE {
            let limit = LARGEST_FILE;
            listed
                .left_out
                .push(format!("{path}: it has {bytes} bytes, more than {limit}"));
        } else if bytes > room {
            listed.left_out.push(format!(
                "{path}: with its {bytes} bytes the bundle would be larger than {MOST_BYTES} bytes"
            ));
        } else {
            room -= bytes;
            listed.paths.push(path);
        }
    }
    listed.left_out.extend(others(&folder));
    Ok(listed)
}

fn has_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Names what else is in the folder.
fn others(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| *name != PLAN && !FOLDERS.contains(&name.as_str()))
        // It is made from the log whenever a hook wants it.
        .filter(|name| name != TRANSCRIPT)
        .collect();
    names.sort_unstable();
    let told = names.into_iter().map(|name| match name.as_str() {
        EARLIER_VERSIONS => {
            "earlier versions of files: a rewind cannot take files back to before the import"
                .to_owned()
        }
        todos::FILE_NAME => {
            "tables that the model made with SQL (session.db); the todos are in the log".to_owned()
        }
        _ => format!("{name}: it is no file of the conversation"),
    });
    told.collect()
}

/// Reads a file of the session. Blocks.
pub(super) fn read(own: &OwnFolder, path: &str) -> Result<Vec<u8>, FileError> {
    files::read_bytes(own, &Inside::new(path)?, LARGEST_FILE)
}

/// Writes a file of a session that is being imported. Blocks.
pub(super) fn write(own: &OwnFolder, path: &str, content: &[u8]) -> Result<(), FileError> {
    files::write_bytes(own, &Inside::new(path)?, content, LARGEST_FILE).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_conversation_belong_to_a_bundle() {
        for path in [
            "plan.md",
            "files/a",
            "temp/deep/er.txt",
            "agents/x.md",
            "checkpoints/1-a.md",
        ] {
            assert!(belongs(path), "{path}");
        }
        for path in [
            "",
            "session.db",
            "rewind/changes.jsonl",
            "files",
            "files/",
            "files/../../x",
            "../plan.md",
            "/plan.md",
            "plan.md/x",
            "./plan.md",
            "temp//x",
            "transcript.jsonl",
            "files/a\0",
        ] {
            assert!(!belongs(path), "{path}");
        }
    }
}
