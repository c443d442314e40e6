//! The files of a project that the command of a server names. A server is trusted together with them:
//! otherwise an agent could change what a trusted server does by changing its script. Files that
//! servers write, such as logs, do not count: with them a server would lose its trust by its own work.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::{EntryTransport, McpEntry};
use crate::discovery::content_hash::ContentHash;
use crate::regular_file;

/// The most words of one command that are looked at.
const MOST_WORDS: usize = 64;
/// How much of a file counts.
const LARGEST_FILE: u64 = 8 * 1024 * 1024;

/// The endings of files that programs write while they run, and that they do not run.
const WRITTEN: [&str; 8] = [
    "log", "db", "sqlite", "sqlite3", "jsonl", "ndjson", "csv", "pid",
];
/// The words at the beginning of a command that may be a program, whatever their ending is: the command
/// and the script that it may be given.
const PROGRAM_WORDS: usize = 2;

/// Returns the hash of an entry with the files that it names.
pub(super) fn hash(said: &Value, entry: &McpEntry, folder: &Path, base: &Path) -> ContentHash {
    let said = ContentHash::of_json(said);
    let files = find(entry, folder, base);
    if files.is_empty() {
        return said;
    }
    let mut parts: Vec<Vec<u8>> = vec![said.as_str().as_bytes().to_vec()];
    for file in files {
        // A project that is moved as a whole says the same.
        let below = file.strip_prefix(folder).unwrap_or(&file);
        parts.push(below.as_os_str().as_encoded_bytes().to_vec());
        parts.push(content(&file));
    }
    ContentHash::of(parts.iter().map(Vec::as_slice))
}

fn find(entry: &McpEntry, folder: &Path, base: &Path) -> Vec<PathBuf> {
    let EntryTransport::Stdio {
        command, args, cwd, ..
    } = &entry.transport
    else {
        return Vec::new();
    };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut bases = vec![folder.to_owned(), base.to_owned()];
    bases.extend(cwd.as_ref().map(|cwd| base.join(cwd)));
    let words = std::iter::once(command).chain(args).take(MOST_WORDS);
    let mut files = Vec::new();
    for (at, word) in words.enumerate() {
        // `--config=x` names x, and `${workspaceFolder}/x` too.
        let word = word
            .rsplit_once('=')
            .map_or(word.as_str(), |(_, value)| value);
        let word = word.replace("${workspaceFolder}", ".");
        let word = word.replace("${CLAUDE_PLUGIN_ROOT}", ".");
        let paths = bases
            .iter()
            .filter_map(|base| base.join(&word).canonicalize().ok());
        let counts = |path: &PathBuf| at < PROGRAM_WORDS || !is_written(path);
        let paths = paths.filter(|path| path.starts_with(&real) && path.is_file());
        for path in paths.filter(counts) {
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

/// Returns whether a file is one that programs write while they run, by its ending.
fn is_written(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| WRITTEN.iter().any(|it| it.eq_ignore_ascii_case(ending)))
}

/// Reads a file; one that cannot be read says nothing.
fn content(file: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    if let Ok(file) = regular_file::open(file) {
        file.take(LARGEST_FILE).read_to_end(&mut content).ok();
    }
    content
}
