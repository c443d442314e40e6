//! Reads unified diffs, plain or as git prints them, several files in one text. Called by
//! `patch::parse`. Pure; line numbers are taken as hints, because models count badly.

use super::patch::{Action, FilePatch, Hunk, Line, PatchError, at};

/// The name that stands for no file.
const NOTHING: &str = "/dev/null";

pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader { lines, next: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.line(0) {
        if line.starts_with("diff --git ") || reader.is_header(0) {
            files.push(reader.file()?);
        } else if line.starts_with("@@") {
            return Err(at(
                reader.next,
                "the hunk belongs to no file: --- <path> and +++ <path> have to come before it",
            ));
        } else {
            // Text before and between diffs is skipped.
            reader.next += 1;
        }
    }
    if files.is_empty() {
        return Err(PatchError::Unknown);
    }
    Ok(files)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    next: usize,
}

/// What the lines before the hunks say.
#[derive(Default)]
struct Header<'a> {
    old: Option<&'a str>,
    new: Option<&'a str>,
    renamed_from: Option<&'a str>,
    renamed_to: Option<&'a str>,
    git_names: Option<(&'a str, &'a str)>,
    is_new: bool,
    is_deleted: bool,
}

impl<'a> Reader<'a> {
    fn line(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.next + ahead).copied()
    }

    /// Whether `--- a` and `+++ b` come next.
    fn is_header(&self, ahead: usize) -> bool {
        let begins =
            |ahead: usize, mark: &str| self.line(ahead).is_some_and(|line| line.starts_with(mark));
        begins(ahead, "--- ") && begins(ahead + 1, "+++ ")
    }

    fn file(&mut self) -> Result<FilePatch, PatchError> {
        let start = self.next;
        let header = self.header()?;
        let mut hunks = Vec::new();
        while self.line(0).is_some_and(|line| line.starts_with("@@")) {
            hunks.push(self.hunk()?);
        }
        section(start, &header, hunks)
    }

    fn header(&mut self) -> Result<Header<'a>, PatchError> {
        let mut header = Header::default();
        let start = self.next;
        while let Some(line) = self.line(0) {
            if let Some(names) = line.strip_prefix("diff --git ") {
                if self.next > start {
                    break;
                }
                header.git_names = two_names(names);
            } else if let Some(name) = line.strip_prefix("rename from ") {
                header.renamed_from = Some(name);
            } else if let Some(name) = line.strip_prefix("rename to ") {
                header.renamed_to = Some(name);
            } else if line.starts_with("new file mode") {
                header.is_new = true;
            } else if line.starts_with("deleted file mode") {
                header.is_deleted = true;
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(at(self.next, "binary patches cannot be applied"));
            } else if line.starts_with("copy from ") {
                return Err(at(
                    self.next,
                    "copies are not supported; add the file instead",
                ));
            } else if self.is_header(0) {
                header.old = line.get(4..).map(name);
                header.new = self.line(1).and_then(|line| line.get(4..)).map(name);
                self.next += 2;
                break;
            } else if ![
                "index ",
                "similarity ",
                "dissimilarity ",
                "old mode ",
                "new mode ",
            ]
            .iter()
            .any(|known| line.starts_with(known))
            {
                break;
            }
            self.next += 1;
        }
        Ok(header)
    }

    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        let start = self.next;
        let (hint, mut old_left, mut new_left) = match self.line(0).and_then(numbers) {
            Some((hint, old, new)) => (Some(hint), old, new),
            // `@@` without numbers: the place is found by its lines alone.
            None if self
                .line(0)
                .is_some_and(|line| line.trim() == "@@" || line.trim() == "@@ @@") =>
            {
                (None, 0, 0)
            }
            None => {
                return Err(at(
                    start,
                    "the hunk has to begin with @@ -line,count +line,count @@",
                ));
            }
        };
        let mut hunk = Hunk {
            patch_line: start + 1,
            hint,
            ..Hunk::default()
        };
        self.next += 1;
        while let Some(line) = self.line(0) {
            let is_over = old_left == 0 && new_left == 0;
            let begins_other = line.starts_with("@@")
                || line.starts_with("diff --git ")
                || (self.is_header(0)
                    && (is_over || self.line(2).is_some_and(|l| l.starts_with("@@"))));
            if begins_other {
                break;
            }
            let line = match line.chars().next() {
                Some('+') => {
                    new_left = new_left.saturating_sub(1);
                    Line::Add(line.get(1..).unwrap_or_default().to_owned())
                }
                Some('-') => {
                    old_left = old_left.saturating_sub(1);
                    Line::Remove(line.get(1..).unwrap_or_default().to_owned())
                }
                Some('\\') => {
                    hunk.final_newline = match hunk.lines.last() {
                        Some(Line::Remove(_)) => Some(true),
                        _ => Some(false),
                    };
                    self.next += 1;
                    continue;
                }
                Some(' ') => {
                    (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
                    Line::Keep(line.get(1..).unwrap_or_default().to_owned())
                }
                // Models often omit the space of an empty context line.
                None if !is_over => {
                    (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
                    Line::Keep(String::new())
                }
                _ => break,
            };
            hunk.lines.push(line);
            self.next += 1;
        }
        if hunk.lines.is_empty() {
            return Err(at(start, "the hunk has no lines"));
        }
        Ok(hunk)
    }
}

/// Puts the header and the hunks of a file together.
fn section(start: usize, header: &Header<'_>, hunks: Vec<Hunk>) -> Result<FilePatch, PatchError> {
    let named = header.old.zip(header.new).or(header.git_names);
    let (old, new) = named.ok_or_else(|| at(start, "the file has no name"))?;
    let (old, new) = without_prefixes(old, new);
    let is_new = header.is_new || old == NOTHING;
    let is_deleted = header.is_deleted || new == NOTHING;
    if is_new {
        let contents = added(&hunks)
            .ok_or_else(|| at(start, "a new file cannot have lines to keep or to remove"))?;
        return Ok(FilePatch {
            path: new.to_owned(),
            action: Action::Add { contents },
        });
    }
    if is_deleted {
        return Ok(FilePatch {
            path: old.to_owned(),
            action: Action::Delete,
        });
    }
    let path = header.renamed_from.unwrap_or(old);
    let target = header.renamed_to.unwrap_or(new);
    let move_to = (target != path).then(|| target.to_owned());
    if hunks.is_empty() && move_to.is_none() {
        return Err(at(start, format!("the patch of {path} has no hunks")));
    }
    Ok(FilePatch {
        path: path.to_owned(),
        action: Action::Update { move_to, hunks },
    })
}

/// The contents of a new file.
fn added(hunks: &[Hunk]) -> Option<String> {
    let mut contents = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        let Line::Add(text) = line else {
            return None;
        };
        contents.push_str(text);
        contents.push('\n');
    }
    if hunks.last().and_then(|hunk| hunk.final_newline) == Some(false) {
        contents.pop();
    }
    Some(contents)
}

/// A name without the time that may follow it.
fn name(text: &str) -> &str {
    text.split('\t').next().unwrap_or(text).trim_end()
}

/// Takes off the `a/` and `b/` that git adds, where both sides have them.
fn without_prefixes<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) => (old, new),
        (Some(old), None) if new == NOTHING => (old, new),
        (None, Some(new)) if old == NOTHING => (old, new),
        _ => (old, new),
    }
}

/// The two names of `diff --git a/x b/x`, where that is not ambiguous.
fn two_names(names: &str) -> Option<(&str, &str)> {
    let mut places = names.match_indices(" b/").map(|(place, _)| place);
    let place = places.next()?;
    if places.next().is_some() {
        return None;
    }
    Some((names.get(..place)?, names.get(place + 1..)?))
}

/// The old line, and the counts of old and new lines, of `@@ -1,2 +3,4 @@`.
fn numbers(line: &str) -> Option<(usize, usize, usize)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let range = |word: &str, mark: char| {
        let word = word.strip_prefix(mark)?;
        let (first, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((first.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (old, old_count) = range(words.next()?, '-')?;
    let (_, new_count) = range(words.next()?, '+')?;
    (words.next()?.starts_with("@@")).then_some((old, old_count, new_count))
}

#[cfg(test)]
mod tests;
