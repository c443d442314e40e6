//! Source files as text, with just enough understanding of Rust to see who uses what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One source file.
pub(super) struct Source {
    /// Relative to the workspace, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

/// The folder of the workspace.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the workspace.
pub(super) fn text(path: &str) -> String {
    let full = root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()))
}

/// All Rust files below a folder, in order.
pub(super) fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(folder, &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(folder: &str, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, found);
        } else if entry.path().extension().is_some_and(|end| end == "rs") {
            let text = text(&path);
            found.push(Source { path, text });
        }
    }
}

impl Source {
    /// The top module that a file of `daemon/src` belongs to.
    pub(super) fn module(&self) -> String {
        let inside = self.path.strip_prefix("daemon/src/").unwrap_or(&self.path);
        let first = inside.split('/').next().unwrap_or_default();
        first.trim_end_matches(".rs").to_owned()
    }

    /// Whether the file is compiled for tests only.
    pub(super) fn is_test(&self) -> bool {
        let names = ["tests.rs", "fixture.rs", "test_server.rs"];
        self.path.contains("/tests/")
            || names
                .iter()
                .any(|name| self.path.ends_with(&format!("/{name}")))
    }

    /// The lines without comments.
    pub(super) fn code(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().map(|line| match line.find("//") {
            Some(at) if !line[..at].contains('"') => &line[..at],
            _ => line,
        });
        lines.filter(|line| !line.trim().is_empty())
    }

    /// The modules that are named after `crate::`, also in braces after it.
    pub(super) fn crate_modules(&self) -> BTreeSet<String> {
        let code: String = self.code().flat_map(|line| [line, "\n"]).collect();
        let mut found = BTreeSet::new();
        for rest in code.split("crate::").skip(1) {
            if let Some(list) = rest.strip_prefix('{') {
                let list = list.split(';').next().unwrap_or_default();
                found.extend(first_words(list));
            } else {
                found.extend(word(rest));
            }
        }
        found
    }
}

/// The first word of each item of a list in braces.
fn first_words(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut items = vec![String::new()];
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            c => items.last_mut().unwrap().push(c),
        }
    }
    items.iter().filter_map(|item| word(item.trim())).collect()
}

fn word(text: &str) -> Option<String> {
    let word: String = text
        .chars()
        .take_while(|c| c.is_ascii_lowercase() || *c == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}
