//! Reads the patch format of models: `*** Begin Patch`, one section for each file, `*** End Patch`.
//! Called by `patch::parse`. Pure.

use super::patch::{Action, FilePatch, Hunk, Line, PatchError, at};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, PatchError> {
    let begin = lines.iter().position(|line| line.trim() == BEGIN);
    let mut reader = Reader {
        lines,
        next: begin.map_or(0, |begin| begin + 1),
    };
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.peek() else {
            return Err(at(
                lines.len().saturating_sub(1),
                format!("{END} is missing"),
            ));
        };
        if line.trim() == END {
            return Ok(files);
        }
        let start = reader.next;
        reader.next += 1;
        if line.trim().is_empty() {
            continue;
        }
        let (path, action) = if let Some(path) = line.strip_prefix(ADD) {
            (path, reader.added()?)
        } else if let Some(path) = line.strip_prefix(DELETE) {
            (path, Action::Delete)
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            (path, reader.updated()?)
        } else {
            return Err(at(
                start,
                format!("expected {ADD}<path>, {UPDATE}<path> or {DELETE}<path>, found {line:?}"),
            ));
        };
        let path = path.trim();
        if path.is_empty() {
            return Err(at(start, "the path is missing"));
        }
        files.push(FilePatch {
            path: path.to_owned(),
            action,
        });
    }
}

struct Reader<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    /// The next line, unless it begins something else than the current section.
    fn inside(&self) -> Option<&'a str> {
        let line = self.peek()?;
        let ends = line.trim() == END
            || [ADD, DELETE, UPDATE]
                .iter()
                .any(|start| line.starts_with(start));
        (!ends).then_some(line)
    }

    fn added(&mut self) -> Result<Action, PatchError> {
        let mut contents = String::new();
        while let Some(line) = self.inside() {
            match line.strip_prefix('+') {
                Some(text) => {
                    contents.push_str(text);
                    contents.push('\n');
                }
                None if line.trim().is_empty() => {}
                None => {
                    return Err(at(
                        self.next,
                        "every line of an added file has to begin with +",
                    ));
                }
            }
            self.next += 1;
        }
        Ok(Action::Add { contents })
    }

    fn updated(&mut self) -> Result<Action, PatchError> {
        let mut move_to = None;
        if let Some(path) = self.peek().and_then(|line| line.strip_prefix(MOVE)) {
            if path.trim().is_empty() {
                return Err(at(self.next, "the path is missing"));
            }
            move_to = Some(path.trim().to_owned());
            self.next += 1;
        }
        let mut hunks = Vec::new();
        let mut hunk = self.new_hunk();
        while let Some(line) = self.inside() {
            if let Some(anchor) = line.strip_prefix("@@") {
                if !hunk.lines.is_empty() {
                    hunks.push(std::mem::replace(&mut hunk, self.new_hunk()));
                }
                // `@@ -1,2 +1,2 @@` is a position of the other format, not text to search for.
                let anchor = anchor.trim();
                if !anchor.is_empty() && !anchor.starts_with('-') {
                    let anchor = anchor.strip_suffix("@@").unwrap_or(anchor).trim_end();
                    hunk.anchors.push(anchor.to_owned());
                }
            } else if line.trim_end() == END_OF_FILE {
                hunk.at_end = true;
            } else if let Some(text) = line.strip_prefix('+') {
                hunk.lines.push(Line::Add(text.to_owned()));
            } else if let Some(text) = line.strip_prefix('-') {
                hunk.lines.push(Line::Remove(text.to_owned()));
            } else if let Some(text) = line.strip_prefix(' ') {
                hunk.lines.push(Line::Keep(text.to_owned()));
            } else if line.is_empty() {
                // Models often omit the space of an empty context line.
                hunk.lines.push(Line::Keep(String::new()));
            } else {
                return Err(at(
                    self.next,
                    format!("a line of a hunk has to begin with a space, + or -, found {line:?}"),
                ));
            }
            self.next += 1;
        }
        if !hunk.lines.is_empty() {
            hunks.push(hunk);
        }
        for hunk in &mut hunks {
            drop_blank_end(hunk);
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(at(self.next.saturating_sub(1), "the update has no changes"));
        }
        Ok(Action::Update { move_to, hunks })
    }

    fn new_hunk(&self) -> Hunk {
        Hunk {
            patch_line: self.next + 1,
            ..Hunk::default()
        }
    }
}

/// Removes a blank line before the next section: it only separates the two.
fn drop_blank_end(hunk: &mut Hunk) {
    let is_change = |line: &Line| matches!(line, Line::Add(_) | Line::Remove(_));
    let changes = hunk.lines.iter().any(is_change);
    while changes && hunk.lines.len() > 1 {
        match hunk.lines.last() {
            Some(Line::Keep(text)) if text.is_empty() => hunk.lines.pop(),
            _ => break,
        };
    }
}

#[cfg(test)]
mod tests;
