//! Finds the places an edit means and puts the new text there, in the line endings of the file.
//! Called by `edit`. Pure: text in, text out.

use std::borrow::Cow;

use loopd_proto::visible::hidden_again;

/// How many places of an ambiguous match are named; more would not help.
const NAMED: usize = 10;

/// How many places are counted at most, so that a text of one letter does not take long.
pub(super) const MAX_COUNTED: usize = 1000;

/// How often the old text may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Once,
    Every,
}

/// Why an edit cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoReplacement {
    Empty,
    Unchanged,
    NotFound,
    /// Counts the places and names the lines of the first ones.
    Several {
        count: usize,
        lines: Vec<usize>,
    },
}

/// Replaces the only occurrence of `old` in `text`, or every one, with `new`.
pub(super) fn apply(
    text: &str,
    old: &str,
    new: &str,
    count: Count,
) -> Result<String, NoReplacement> {
    if old.is_empty() {
        return Err(NoReplacement::Empty);
    }
    let ending = Ending::of(text);
    // The text as given comes first: a file may mix its endings.
    let (old, places) = match occurrences(text, old) {
        places if !places.is_empty() => (Cow::Borrowed(old), places),
        _ => {
            let as_file = ending.apply_to(old);
            let places = occurrences(text, &as_file);
            if places.is_empty()
                && let Some(hidden) = hidden_again(old)
            {
                // The text was copied from what `view` shows, which writes hidden characters as
                // escapes. Both texts are read that way, so that a character can be kept.
                let new = hidden_again(new).unwrap_or_else(|| new.to_owned());
                return apply(text, &hidden, &new, count);
            }
            (as_file, places)
        }
    };
    match places.as_slice() {
        [] => return Err(NoReplacement::NotFound),
        [_, _, ..] if count == Count::Once => {
            let lines = places.iter().take(NAMED);
            return Err(NoReplacement::Several {
                count: places.len(),
                lines: lines.map(|place| line_of(text, *place)).collect(),
            });
        }
        _ => {}
    }
    let new = ending.apply_to(new);
    if old == new {
        return Err(NoReplacement::Unchanged);
    }
    // With one place this is that place; overlapping ones are replaced from the left.
    Ok(text.replace(old.as_ref(), &new))
}

/// Returns whether a text occurs, in its own line endings or those of the file.
pub(super) fn occurs(text: &str, piece: &str) -> bool {
    text.contains(piece) || text.contains(Ending::of(text).apply_to(piece).as_ref())
}

/// How most lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Lf,
    CrLf,
    /// The file has no line break, so new text keeps its own line endings.
    Unknown,
}

impl Ending {
    fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        let with_return = text.matches("\r\n").count();
        match (all, with_return) {
            (0, _) => Self::Unknown,
            (all, with_return) if with_return * 2 > all => Self::CrLf,
            _ => Self::Lf,
        }
    }

    fn apply_to(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Unknown => Cow::Borrowed(text),
            Self::Lf => Cow::Owned(text.replace("\r\n", "\n")),
            Self::CrLf => Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n")),
        }
    }
}

/// The first positions of `piece`, overlapping ones too: `aa` is ambiguous in `aaa`.
fn occurrences(text: &str, piece: &str) -> Vec<usize> {
    let step = piece.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < MAX_COUNTED
        && let Some(found) = text.get(from..).and_then(|rest| rest.find(piece))
    {
        places.push(from + found);
        from += found + step;
    }
    places
}

fn line_of(text: &str, place: usize) -> usize {
    let before = text.get(..place).unwrap_or_default();
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests;
