//! Pages through the lines of a text file with a fixed amount of memory, however long the file or
//! a line of it is. Called by `view` only.

use std::io::{self, BufRead, BufReader, Read};

use loopd_proto::visible::visible;
use tokio_util::sync::CancellationToken;

use super::texts;

/// How much text one call shows; stays below the size from which results are moved to a file.
pub(super) const MAX_SHOWN: usize = 48 * 1024;

/// How many characters of one line are shown.
pub(super) const MAX_LINE: usize = 2000;

/// How many bytes of one line are kept: enough for the characters shown.
const KEPT: usize = MAX_LINE * 4 + 4;

const CHUNK: usize = 64 * 1024;

/// Which lines are wanted, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    All,
    From(u64),
    Between(u64, u64),
}

impl Range {
    /// Checks a range as the model gave it.
    pub(super) fn parse(given: Option<[i64; 2]>) -> Result<Self, String> {
        let Some([first, last]) = given else {
            return Ok(Self::All);
        };
        let refused = |reason: &str| {
            Err(format!(
                "view_range [{first}, {last}] is not valid: {reason}."
            ))
        };
        // Line 0 means the first line, for a model that counts from 0.
        let Ok(first_line) = u64::try_from(if first == 0 { 1 } else { first }) else {
            return refused("lines are counted from 1");
        };
        match u64::try_from(last) {
            Err(_) if last == -1 => Ok(Self::From(first_line)),
            Ok(last_line) if last_line >= first_line => Ok(Self::Between(first_line, last_line)),
            Ok(0) if first == 0 => Ok(Self::Between(1, 1)),
            _ => refused("the last line must be -1 (the end) or not before the first"),
        }
    }

    fn first(self) -> u64 {
        match self {
            Self::All => 1,
            Self::From(first) | Self::Between(first, _) => first,
        }
    }

    fn last(self) -> u64 {
        match self {
            Self::All | Self::From(_) => u64::MAX,
            Self::Between(_, last) => last,
        }
    }
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Page {
    Lines(String),
    /// The range begins after the last line.
    PastTheEnd {
        lines: u64,
    },
    Interrupted,
}

/// Reads the wanted lines, numbered; what follows a final line break counts as an empty line.
pub(super) fn read(file: impl Read, range: Range, cancel: &CancellationToken) -> io::Result<Page> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let mut shown = Shown::default();
    let mut line = Line::default();
    let mut number = 1;
    loop {
        if cancel.is_cancelled() {
            return Ok(Page::Interrupted);
        }
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let bytes = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        line.push(bytes);
        let consumed = bytes.len() + usize::from(end.is_some());
        if end.is_some() {
            if number >= range.first() {
                shown.add(number, &line, Follows::More);
            }
            line.clear();
            number += 1;
        }
        reader.consume(consumed);
        if number > range.last() {
            return Ok(Page::Lines(shown.finish(None)));
        }
        // The lines are counted to the end only if the whole file is shown.
        if shown.stopped.is_some() && range != Range::All {
            return Ok(Page::Lines(shown.finish(None)));
        }
    }
    if number < range.first() {
        return Ok(Page::PastTheEnd { lines: number });
    }
    shown.add(number, &line, Follows::Nothing);
    Ok(Page::Lines(shown.finish(Some(number))))
}

/// The start of a line and its length.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    bytes: u64,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.kept.len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.kept.extend_from_slice(taken);
        self.bytes += bytes.len() as u64;
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }

    fn text(&self) -> String {
        let bytes = self.kept.strip_suffix(b"\r").unwrap_or(&self.kept);
        let text = String::from_utf8_lossy(bytes);
        texts::clipped(&visible(&text), self.bytes, MAX_LINE)
    }
}

/// Whether the file goes on after a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    More,
    Nothing,
}

/// The page as it grows.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    first: Option<u64>,
    /// The first line that did not fit.
    stopped: Option<u64>,
}

impl Shown {
    fn add(&mut self, number: u64, line: &Line, follows: Follows) {
        if self.stopped.is_some() {
            return;
        }
        let mut text = texts::numbered(number, line.text());
        if line.bytes == 0 && follows == Follows::Nothing {
            // The empty last line is only a number.
            text.truncate(text.trim_end().len());
        }
        if self.text.len() + text.len() > MAX_SHOWN {
            self.stopped = Some(number);
            return;
        }
        if self.first.is_some() {
            self.text.push('\n');
        } else {
            self.first = Some(number);
        }
        self.text.push_str(&text);
    }

    fn finish(self, total: Option<u64>) -> String {
        let (Some(first), Some(next)) = (self.first, self.stopped) else {
            return self.text;
        };
        let last = next - 1;
        let whole = total.map_or_else(String::new, |total| format!(" of {total}"));
        let end = next + (last - first);
        format!(
            "{}\n[Lines {first}-{last}{whole} are shown, the rest is too long for one answer. Go on with view_range [{next}, {end}].]",
            self.text
        )
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
