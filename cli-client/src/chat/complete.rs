//! Completes what is typed: slash commands and agents by the daemon, files after an `@` here.

use std::path::{Path, PathBuf};

use loopd_sdk::{CompletionItem, Session};

use super::editor::Editor;
use super::keys::Key;
use super::styled::{Line, Look};
use crate::terminal::sanitize;

/// How many files are looked at, and how many completions are shown at once.
const MOST_FILES: usize = 1_000;
const MOST_SHOWN: usize = 6;

/// One way to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    text: String,
    label: String,
}

/// The ways to complete a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidates {
    /// The line up to the cursor, for which they hold.
    typed: String,
    /// Where the text begins that they replace, in bytes.
    start: usize,
    found: Vec<Candidate>,
}

/// What a line is completed with.
pub(super) enum Wanted {
    /// The daemon knows.
    Asked(String),
    Files(Candidates),
    Nothing,
}

/// Returns what can complete a line up to the cursor.
pub(super) fn wanted(typed: &str, directory: &Path) -> Wanted {
    if typed.trim_start().starts_with('/') {
        return Wanted::Asked(typed.to_owned());
    }
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = typed.get(start..).unwrap_or_default();
    match word.strip_prefix('@') {
        Some(path) => Wanted::Files(Candidates {
            typed: typed.to_owned(),
            start,
            found: files(path, directory),
        }),
        None => Wanted::Nothing,
    }
}

/// Asks the session.
pub(super) async fn ask(session: Session, typed: String) -> Candidates {
    let cursor = typed.encode_utf16().count() as u64;
    // Without completions a line is typed in full; the next request tells what is wrong.
    let items = session
        .complete(typed.clone(), cursor)
        .await
        .unwrap_or_default();
    let start = items.first().and_then(|item| item.range_start);
    let start = start.map_or(typed.len(), |units| byte_at(&typed, units));
    let found = items.into_iter().map(|item: CompletionItem| Candidate {
        label: sanitize(item.label.as_deref().unwrap_or(item.insert_text.trim())),
        text: item.insert_text,
    });
    Candidates {
        start,
        found: found.collect(),
        typed,
    }
}

/// Returns the position in bytes of one that is given in UTF-16 code units.
fn byte_at(text: &str, units: u64) -> usize {
    let mut passed = 0;
    for (at, letter) in text.char_indices() {
        if passed >= units {
            return at;
        }
        passed += letter.len_utf16() as u64;
    }
    text.len()
}

/// Finds the files and folders whose path begins like this.
fn files(path: &str, directory: &Path) -> Vec<Candidate> {
    let (folder, begin) = match path.rfind('/') {
        Some(at) => path.split_at_checked(at + 1).unwrap_or((path, "")),
        None => ("", path),
    };
    let place: PathBuf = directory.join(folder);
    let Ok(entries) = std::fs::read_dir(place) else {
        return Vec::new();
    };
    let mut found: Vec<Candidate> = entries
        .take(MOST_FILES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !begin.starts_with('.');
            if is_hidden || !name.to_lowercase().starts_with(&begin.to_lowercase()) {
                return None;
            }
            let is_folder = entry.path().is_dir();
            let end = if is_folder { "/" } else { " " };
            Some(Candidate {
                label: sanitize(&format!("{folder}{name}{}", end.trim_end())),
                text: format!("@{folder}{name}{end}"),
            })
        })
        .collect();
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found
}

/// The completions that are shown below the line.
#[derive(Debug)]
pub(super) struct Menu {
    candidates: Candidates,
    selected: Option<usize>,
}

/// What a key did while a menu is open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The menu stays.
    Stays,
    /// The menu is closed, and the key is used up.
    Closed,
    /// The menu is closed, and the key is for the line.
    Passed,
}

impl Menu {
    /// Completes the line as far as it is clear; returns a menu if there is a choice.
    pub(super) fn open(editor: &mut Editor, candidates: Candidates) -> Option<Self> {
        if editor.before() != candidates.typed {
            return None;
        }
        let first = candidates.found.first()?;
        if candidates.found.len() == 1 {
            editor.complete(candidates.start, &first.text);
            return None;
        }
        let mut common = first.text.clone();
        for candidate in &candidates.found {
            while !candidate.text.starts_with(&common) {
                common.pop();
            }
        }
        let typed = candidates.typed.get(candidates.start..).unwrap_or_default();
        let mut candidates = candidates.clone();
        if common.len() > typed.len() {
            editor.complete(candidates.start, &common);
            editor.before().clone_into(&mut candidates.typed);
        }
        Some(Self {
            candidates,
            selected: None,
        })
    }

    pub(super) fn key(&mut self, key: &Key, editor: &mut Editor) -> Chosen {
        let count = self.candidates.found.len().max(1);
        let next = match (key, self.selected) {
            (Key::Tab | Key::Down, None) => 0,
            (Key::Tab | Key::Down, Some(at)) => (at + 1) % count,
            (Key::BackTab | Key::Up, None) => count - 1,
            (Key::BackTab | Key::Up, Some(at)) => (at + count - 1) % count,
            (Key::Escape, _) | (Key::Enter, Some(_)) => return Chosen::Closed,
            _ => return Chosen::Passed,
        };
        self.selected = Some(next);
        if let Some(candidate) = self.candidates.found.get(next) {
            editor.complete(self.candidates.start, &candidate.text);
        }
        Chosen::Stays
    }

    pub(super) fn rows(&self) -> Vec<Line> {
        let first = self.selected.unwrap_or(0).saturating_sub(MOST_SHOWN - 1);
        let found = self.candidates.found.iter().enumerate();
        let mut rows: Vec<Line> = found
            .skip(first)
            .take(MOST_SHOWN)
            .map(|(at, candidate)| {
                let is_selected = self.selected == Some(at);
                let (mark, look) = if is_selected {
                    ("▸ ", Look::BOLD)
                } else {
                    ("  ", Look::DIM)
                };
                Line::of(look, format!("{mark}{}", candidate.label))
            })
            .collect();
        let more = self
            .candidates
            .found
            .len()
            .saturating_sub(first + rows.len());
        if more > 0 {
            rows.push(Line::of(Look::DIM, format!("  … {more} more")));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(texts: &[&str], typed: &str) -> Candidates {
        let found = texts.iter().map(|text| Candidate {
            text: (*text).to_owned(),
            label: (*text).to_owned(),
        });
        Candidates {
            typed: typed.to_owned(),
            start: 0,
            found: found.collect(),
        }
    }

    #[test]
    fn what_is_clear_is_completed_and_a_choice_is_shown() {
        let mut editor = Editor::default();
        editor.set("/re");
        assert!(Menu::open(&mut editor, candidates(&["/review "], "/re")).is_none());
        assert_eq!(editor.text(), "/review ");
        editor.set("/r");
        let found = candidates(&["/rename ", "/research "], "/r");
        let Some(mut menu) = Menu::open(&mut editor, found) else {
            unreachable!("there is a choice");
        };
        assert_eq!(editor.text(), "/re");
        assert_eq!(menu.key(&Key::Tab, &mut editor), Chosen::Stays);
        assert_eq!(editor.text(), "/rename ");
        menu.key(&Key::Tab, &mut editor);
        assert_eq!(editor.text(), "/research ");
        assert_eq!(menu.key(&Key::Enter, &mut editor), Chosen::Closed);
        editor.set("other");
        assert!(Menu::open(&mut editor, candidates(&["/x"], "/re")).is_none());
    }

    #[test]
    fn positions_are_counted_in_units_of_the_protocol() {
        for (text, units, byte) in [("/mod", 0, 0), ("é/mod", 1, 2), ("𝄞 /m", 3, 5)] {
            assert_eq!(byte_at(text, units), byte, "{text} {units}");
        }
    }
}
