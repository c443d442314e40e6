//! Applies the hunks of a patch to a text. Every hunk must match exactly and in one place only.
//! Called by `apply_patch`. Pure: text in, text out.

use super::patch::{Hunk, Line};
use crate::tool::edit::closest;

/// How many places of an ambiguous hunk are named.
const NAMED: usize = 10;

/// The maximum number of places that are searched for; a file of equal lines has too many.
const MAX_PLACES: usize = 1000;

/// Applies all hunks to a text, or says which one does not match and why.
pub(super) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let mut file = Text::of(text);
    let mut from = 0;
    let mut drift = 0_isize;
    for (index, hunk) in hunks.iter().enumerate() {
        let problem = |why: String| {
            format!(
                "hunk {} of {} (line {} of the patch) {why}",
                index + 1,
                hunks.len(),
                hunk.patch_line
            )
        };
        let place = locate(&file, hunk, from, drift).map_err(problem)?;
        let before = file.lines.len();
        from = file.put(hunk, place);
        drift += file.lines.len().cast_signed() - before.cast_signed();
    }
    Ok(file.text())
}

/// A text as lines; the return of CRLF stays at the end of its line.
struct Text {
    lines: Vec<String>,
    ends_with_newline: bool,
    ending: &'static str,
}

impl Text {
    fn of(text: &str) -> Self {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let ends_with_newline = text.is_empty() || text.ends_with('\n');
        if ends_with_newline {
            lines.pop();
        }
        let returns = lines.iter().filter(|line| line.ends_with('\r')).count();
        let ending = if returns * 2 > lines.len() { "\r" } else { "" };
        Self {
            lines,
            ends_with_newline,
            ending,
        }
    }

    fn text(self) -> String {
        let mut text = self.lines.join("\n");
        if self.ends_with_newline && !self.lines.is_empty() {
            text.push('\n');
        }
        text
    }

    fn is_at(&self, place: usize, wanted: &[&str]) -> bool {
        let Some(found) = self.lines.get(place..place + wanted.len()) else {
            return false;
        };
        found
            .iter()
            .zip(wanted)
            .all(|(line, wanted)| bare(line) == bare(wanted))
    }

    fn places(&self, from: usize, wanted: &[&str]) -> Vec<usize> {
        let last = self.lines.len().saturating_sub(wanted.len());
        (from..=last)
            .filter(|place| self.is_at(*place, wanted))
            .take(MAX_PLACES)
            .collect()
    }

    /// Replaces the old lines of a hunk and says where the text after it begins.
    fn put(&mut self, hunk: &Hunk, place: usize) -> usize {
        let mut old = self
            .lines
            .splice(place.., [])
            .collect::<Vec<_>>()
            .into_iter();
        for line in &hunk.lines {
            match line {
                // The line of the file, so that its line ending stays.
                Line::Keep(_) => self.lines.extend(old.next()),
                Line::Remove(_) => drop(old.next()),
                Line::Add(text) => self.lines.push(format!("{}{}", bare(text), self.ending)),
            }
        }
        let after = self.lines.len();
        let is_end = old.len() == 0;
        self.lines.extend(old);
        if let Some(newline) = hunk.final_newline.filter(|_| is_end) {
            self.ends_with_newline = newline;
        }
        after
    }
}

fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// Finds the one place of a hunk.
fn locate(file: &Text, hunk: &Hunk, from: usize, drift: isize) -> Result<usize, String> {
    let mut from = from;
    for anchor in &hunk.anchors {
        let found = file
            .lines
            .iter()
            .skip(from)
            .position(|line| line.trim() == anchor.trim());
        match found {
            Some(place) => from += place + 1,
            None => return Err(format!("names the line {anchor:?}, which is not there")),
        }
    }
    let wanted = hunk.old();
    if wanted.is_empty() {
        return insertion(file, hunk, from, drift);
    }
    let mut places = file.places(from, &wanted);
    if hunk.at_end {
        places.retain(|place| place + wanted.len() == file.lines.len());
    }
    let expected = hunk
        .hint
        .and_then(|hint| hint.saturating_sub(1).checked_add_signed(drift));
    match places.as_slice() {
        [only] => Ok(*only),
        [first, ..] if !hunk.anchors.is_empty() => Ok(*first),
        [] => Err(missing(file, hunk, &wanted, from)),
        several => {
            if let Some(expected) = expected.filter(|expected| several.contains(expected)) {
                return Ok(expected);
            }
            let lines: Vec<String> = several
                .iter()
                .take(NAMED)
                .map(|place| (place + 1).to_string())
                .collect();
            Err(format!(
                "fits in {} places (lines {}). Add lines of context until it fits in one",
                several.len(),
                lines.join(", ")
            ))
        }
    }
}

/// The place of a hunk that only adds.
fn insertion(file: &Text, hunk: &Hunk, from: usize, drift: isize) -> Result<usize, String> {
    if !hunk.anchors.is_empty() {
        return Ok(from);
    }
    match hunk.hint {
        // `-5,0` adds after line 5.
        Some(hint) => match hint.checked_add_signed(drift) {
            Some(place) if place <= file.lines.len() && place >= from => Ok(place),
            _ => Err(format!(
                "adds after line {hint}, but the file has {} lines. Add lines of context",
                file.lines.len()
            )),
        },
        None => Ok(file.lines.len()),
    }
}

fn missing(file: &Text, hunk: &Hunk, wanted: &[&str], from: usize) -> String {
    if hunk.at_end && !file.places(from, wanted).is_empty() {
        return "is marked as the end of the file, but its lines are not the last ones".to_owned();
    }
    if let Some(earlier) = file.places(0, wanted).first() {
        return format!(
            "fits only on line {}, before the hunk that comes before it. Put the hunks in the order of the file",
            earlier + 1
        );
    }
    let text: Vec<&str> = file.lines.iter().map(|line| bare(line)).collect();
    let told =
        "does not fit: its old lines are not in the file. View the file and copy them exactly";
    match closest::advice(&text.join("\n"), &wanted.join("\n"), "the hunk") {
        Some(advice) => format!("{told}. {}", advice.trim_end_matches('.')),
        None => told.to_owned(),
    }
}

#[cfg(test)]
mod tests;
