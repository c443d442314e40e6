//! The custom instructions of users and projects, as a section of the system message.
//!
//! The files are read again for every message, so that an edit takes effect at once. Unchanged
//! files give the same text, which lets providers reuse their cache.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use loopd_proto::session::SessionOptions;

use crate::approvals;
use crate::discovery::Host;
use crate::discovery::instructions::{InstructionFile, InstructionPlace, discover, places};

/// How many bytes of one file, and of all files together, the model is given.
const LARGEST_FILE: usize = 64 * 1024;
const LARGEST_TEXT: usize = 256 * 1024;

/// Returns the text of the section; empty if there are no instructions.
pub(super) async fn text(options: &SessionOptions, cwd: &str, home: &Path) -> String {
    let places = places_of(options, cwd, home);
    match tokio::task::spawn_blocking(move || given(&places)).await {
        Ok(files) => section(&files),
        Err(error) => {
            tracing::error!(%error, "the instructions could not be looked for");
            String::new()
        }
    }
}

/// Lists the places where the instructions of a session are looked up.
pub fn places_of(options: &SessionOptions, cwd: &str, home: &Path) -> Vec<InstructionPlace> {
    let named = options.instruction_directories.iter().flatten();
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut host = None;
    let cwd = PathBuf::from(cwd);
    if options.skip_custom_instructions != Some(true) {
        folders.push(approvals::locate(&cwd).key.into());
        folders.push(cwd.clone());
        host = Some(Host {
            copilot: None,
            home: home.to_owned(),
            user: None,
        });
    }
    folders.extend(named.map(|folder| cwd.join(folder)));
    // The root of a project is often the folder itself.
    folders.dedup();
    places(host.as_ref(), &folders)
}

/// Returns the files that the model is given, without duplicate texts. Reads the disk.
pub fn given(places: &[InstructionPlace]) -> Vec<InstructionFile> {
    let found = discover(places);
    for problem in &found.problems {
        tracing::warn!(%problem, "instructions are not used");
    }
    let mut files: Vec<InstructionFile> = Vec::new();
    for file in found.items {
        // One file is often a link to another, or a copy of it.
        let known = files.iter().any(|known| known.text == file.text);
        if !known && !file.text.is_empty() {
            files.push(file);
        }
    }
    files
}

fn section(files: &[InstructionFile]) -> String {
    let mut text = String::new();
    for file in files {
        if text.len() > LARGEST_TEXT {
            tracing::warn!(file = %file.path.display(), "instructions are left out: there are too many");
            continue;
        }
        // Writing to a string cannot fail.
        write!(text, "<instructions file=\"{}\"", file.path.display()).ok();
        if let Some(globs) = &file.apply_to {
            write!(text, " applies_to=\"{}\"", globs.join(", ")).ok();
        }
        let ends = (0..=LARGEST_FILE.min(file.text.len())).rev();
        let shown = ends.into_iter().find_map(|end| file.text.get(..end));
        let shown = shown.unwrap_or_default();
        let cut = if shown.len() < file.text.len() {
            "\n[The rest is left out: the file is too long.]"
        } else {
            ""
        };
        writeln!(text, ">\n{shown}{cut}\n</instructions>").ok();
    }
    if text.is_empty() {
        return text;
    }
    format!("<custom_instructions>\n{text}</custom_instructions>")
}
