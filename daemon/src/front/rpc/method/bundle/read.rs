//! Reads a bundle line by line and checks that it is whole. All of this blocks.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loopd_proto::event::{Durable, read_durable};
use loopd_proto::id::Seq;
use loopd_store::StoredEvent;

use super::files::{LARGEST_FILE, belongs};
use super::format::{self, BundleError, End, FilePart, Header, Line, Move};

/// The longest line. An event is not larger than a request and its answer.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Something that the session is made of.
pub(super) enum Piece {
    Event(StoredEvent),
    /// A whole file, by its path below the folder of the session.
    File(String, Vec<u8>),
    LeftOut(Vec<String>),
}

/// A bundle that is being read.
pub(super) struct Reader {
    lines: BufReader<File>,
    line: u64,
    pub(super) header: Header,
    change: Move,
    seen: End,
    end: Option<End>,
    /// The file whose parts are coming.
    open: Option<(String, Vec<u8>)>,
    last_file: Option<String>,
}

impl Reader {
    /// Begins to read. `folder` says where the session's own files will be.
    pub(super) fn new(
        file: File,
        folder: impl FnOnce(&Header) -> String,
    ) -> Result<Self, BundleError> {
        let mut lines = BufReader::new(file);
        let first = next_line(&mut lines, 1)?.unwrap_or_default();
        let header = format::header(&first)?;
        Ok(Self {
            lines,
            line: 1,
            change: Move::new(&header.folder, &folder(&header)),
            header,
            seen: End {
                events: 0,
                files: 0,
            },
            end: None,
            open: None,
            last_file: None,
        })
    }

    /// Returns how much was read.
    pub(super) fn seen(&self) -> End {
        self.seen
    }

    /// Reads on; `None` at the end of a bundle that is whole.
    pub(super) fn next(&mut self) -> Result<Option<Piece>, BundleError> {
        loop {
            self.line += 1;
            let Some(text) = next_line(&mut self.lines, self.line)? else {
                return match self.end {
                    Some(end) if end == self.seen => Ok(None),
                    Some(end) => Err(self.broken(&format!(
                        "it says that there are {} events and {} files, but there are {} and {}",
                        end.events, end.files, self.seen.events, self.seen.files
                    ))),
                    None => Err(self.broken("the bundle ends before its end; a part is missing")),
                };
            };
            if self.end.is_some() {
                return Err(self.broken("there is more after the end"));
            }
            let line: Line =
                serde_json::from_str(&text).map_err(|error| self.broken(&error.to_string()))?;
            if let Some((path, _)) = &self.open
                && !matches!(&line, Line::File(part) if part.path == *path)
            {
                return Err(self.broken(&format!("a part of {path} is missing")));
            }
            match line {
                Line::Event(event) => return self.event(event.get()).map(Some),
                Line::File(part) => {
                    if let Some(piece) = self.file(part)? {
                        return Ok(Some(piece));
                    }
                }
                Line::LeftOut(left_out) => return Ok(Some(Piece::LeftOut(left_out))),
                Line::End(end) => self.end = Some(end),
            }
        }
    }

    fn broken(&self, why: &str) -> BundleError {
        BundleError::Broken {
            line: self.line,
            why: why.to_owned(),
        }
    }

    fn event(&mut self, event: &str) -> Result<Piece, BundleError> {
        if self.seen.files > 0 {
            return Err(self.broken("an event comes after the files"));
        }
        let moved = self.change.apply(event);
        if moved.len() as u64 > LONGEST_LINE {
            return Err(self.broken("the event is too large"));
        }
        let (head, known) = read_durable(&moved).map_err(|error| {
            self.broken(&format!(
                "it has an event that this daemon does not know ({error}); import it with {} or a newer daemon",
                self.header.by
            ))
        })?;
        if head.ephemeral == Some(true) {
            return Err(self.broken("it has an event that no log has"));
        }
        let is_first = self.seen.events == 0;
        match (&known, is_first) {
            (Durable::SessionStart(_), true) => {}
            (_, true) => return Err(self.broken("the log does not begin with `session.start`")),
            (Durable::SubagentIdentity(_), false) => {
                return Err(
                    self.broken("it is the session of a sub-agent, which cannot go on alone")
                );
            }
            (_, false) => {}
        }
        self.seen.events += 1;
        Ok(Piece::Event(StoredEvent {
            seq: Seq(self.seen.events),
            id: head.id,
            kind: known.kind().into(),
            visible: known.visibility(),
            json: Arc::from(&*moved),
        }))
    }

    /// Takes a part of a file; returns the file when it is whole.
    fn file(&mut self, part: FilePart) -> Result<Option<Piece>, BundleError> {
        if self.open.is_none() {
            if !belongs(&part.path) {
                let path = part.path.escape_debug();
                return Err(self.broken(&format!("`{path}` is no place for a file of a session")));
            }
            // In order, so that no file comes twice.
            if self
                .last_file
                .as_ref()
                .is_some_and(|last| *last >= part.path)
            {
                return Err(self.broken("the files are not in order"));
            }
            self.last_file = Some(part.path.clone());
        }
        let bytes = match (part.text, part.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => STANDARD
                .decode(text)
                .map_err(|error| self.broken(&error.to_string()))?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(self.broken("a file needs either `text` or `base64`"));
            }
        };
        let (_, content) = self.open.get_or_insert((part.path, Vec::new()));
        content.extend(bytes);
        let length = content.len() as u64;
        if length > LARGEST_FILE {
            return Err(self.broken("the file is too large"));
        }
        if part.more {
            return Ok(None);
        }
        self.seen.files += 1;
        Ok(self
            .open
            .take()
            .map(|(path, content)| Piece::File(path, content)))
    }
}

/// Reads a line of bounded length without its end; `None` at the end of the text.
fn next_line(lines: &mut impl BufRead, number: u64) -> Result<Option<String>, BundleError> {
    let broken = |why: String| BundleError::Broken { line: number, why };
    let mut bytes = Vec::new();
    let mut bounded = lines.take(LONGEST_LINE + 1);
    let read = bounded.read_until(b'\n', &mut bytes);
    read.map_err(|error| broken(error.to_string()))?;
    if bytes.len() as u64 > LONGEST_LINE {
        return Err(broken("the line is too long".to_owned()));
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| broken("it is not UTF-8 text".to_owned()))
}
