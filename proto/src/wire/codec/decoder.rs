//! Cuts frames out of a buffer: finds headers and line ends, and skips what is too large. Called by
//! the reader of frames. Never waits and never reads a stream.

use std::sync::{Arc, OnceLock};

use bytes::{Buf, Bytes, BytesMut};

use super::{FrameError, Framing, HEADER_LIMIT, ID_SEARCH};
use crate::wire::admission::Admission;
use crate::wire::envelope;

/// Cuts frames out of a buffer, and remembers how far it has searched.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) framing: Arc<OnceLock<Framing>>,
    admission: Arc<Admission>,
    /// The length of the frame whose header was already consumed.
    pub(super) expected: Option<u64>,
    /// How many bytes of an unfinished line hold no line end.
    pub(super) scanned: usize,
    skipping: Option<Skip>,
    /// A frame that is too large is refused without the id of its request, which has not come.
    gives_up_id: bool,
}

/// The rest of a frame that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skip {
    /// This many bytes of its body.
    Body { rest: u64 },
    /// Its line, of which this many bytes have gone by.
    Line { skipped: u64 },
}

impl Decoder {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self {
            framing: Arc::default(),
            admission,
            expected: None,
            scanned: 0,
            skipping: None,
            gives_up_id: false,
        }
    }

    /// Returns whether a frame is too large, and the id of its request is still awaited.
    pub(super) fn awaits_id(&self) -> bool {
        let limit = self.admission.frame_limit() as u64;
        self.expected.is_some_and(|length| length > limit)
    }

    /// Refuses the frame that is too large without waiting for the id of its request.
    pub(super) fn give_up_id(&mut self) {
        self.gives_up_id = true;
    }

    pub(super) fn is_between_frames(&self) -> bool {
        self.expected.is_none() && self.skipping.is_none()
    }

    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        self.skip(buffer)?;
        if self.skipping.is_some() {
            return Ok(None);
        }
        if self.expected.is_none() && self.scanned == 0 {
            skip_whitespace(buffer);
            if self.framing.get().is_none() {
                let Some(chosen) = Framing::detect(buffer)? else {
                    return Ok(None);
                };
                self.framing.get_or_init(|| chosen);
            }
        }
        match self.framing.get() {
            Some(Framing::Lines) => self.line(buffer),
            Some(Framing::ContentLength) | None => self.body(buffer),
        }
    }

    /// Discards what is in the buffer of a frame that is too large.
    pub(super) fn skip(&mut self, buffer: &mut BytesMut) -> Result<(), FrameError> {
        self.skipping = match self.skipping {
            None => None,
            Some(Skip::Body { rest }) => {
                let taken =
                    usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
                buffer.advance(taken);
                let rest = rest.saturating_sub(taken as u64);
                (rest > 0).then_some(Skip::Body { rest })
            }
            Some(Skip::Line { skipped }) => {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    buffer.advance(end + 1);
                    None
                } else {
                    let skipped = skipped.saturating_add(buffer.len() as u64);
                    buffer.clear();
                    if skipped > self.admission.skip_limit() {
                        return Err(self.too_large(skipped));
                    }
                    Some(Skip::Line { skipped })
                }
            }
        };
        Ok(())
    }

    fn line(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let unseen = buffer.get(self.scanned..).unwrap_or_default();
        let end = unseen.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |offset| self.scanned + offset);
        if length > self.admission.frame_limit() {
            self.scanned = 0;
            return Err(self.refuse(length as u64, Skip::Line { skipped: 0 }, buffer));
        }
        if end.is_none() {
            self.scanned = length;
            return Ok(None);
        }
        self.scanned = 0;
        let line = buffer.split_to(length).freeze();
        buffer.advance(1);
        Ok(Some(line))
    }

    fn body(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let length = match self.expected {
            Some(length) => length,
            None => match header(buffer)? {
                Some(length) => *self.expected.insert(length),
                None => return Ok(None),
            },
        };
        let wanted = match usize::try_from(length) {
            Ok(fits) if fits <= self.admission.frame_limit() => fits,
            // Its beginning is awaited, because the id of the request is there.
            Ok(_) | Err(_)
                if self.skips(length) && buffer.len() < ID_SEARCH && !self.gives_up_id =>
            {
                return Ok(None);
            }
            Ok(_) | Err(_) => {
                self.expected = None;
                self.gives_up_id = false;
                return Err(self.refuse(length, Skip::Body { rest: length }, buffer));
            }
        };
        if buffer.len() < wanted {
            return Ok(None);
        }
        self.expected = None;
        Ok(Some(buffer.split_to(wanted).freeze()))
    }

    fn skips(&self, length: u64) -> bool {
        length <= self.admission.skip_limit()
    }

    /// Returns the error for a frame that is too large, and begins to skip it if it can be skipped.
    fn refuse(&mut self, length: u64, skip: Skip, begun: &BytesMut) -> FrameError {
        if !self.skips(length) {
            return self.too_large(length);
        }
        self.skipping = Some(skip);
        FrameError::Skipped {
            head: envelope::message_head(begun.get(..ID_SEARCH).unwrap_or(begun)),
            length,
            limit: self.admission.frame_limit(),
        }
    }

    fn too_large(&self, length: u64) -> FrameError {
        let limit = self.admission.frame_limit();
        FrameError::TooLarge { length, limit }
    }
}

/// Consumes a complete header block and returns the length it announces.
fn header(buffer: &mut BytesMut) -> Result<Option<u64>, FrameError> {
    let mut length = None;
    let mut consumed = 0;
    loop {
        let rest = buffer.get(consumed..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        if end.map_or(buffer.len(), |offset| consumed + offset) >= HEADER_LIMIT {
            return Err(FrameError::HeaderTooLong);
        }
        let Some(end) = end else {
            return Ok(None);
        };
        consumed += end + 1;
        let line = rest.get(..end).unwrap_or_default().trim_ascii();
        if line.is_empty() {
            break;
        }
        if let Some(announced) = content_length(line)?
            && length.replace(announced).is_some()
        {
            return Err(bad_header(line));
        }
    }
    let length = length.ok_or(FrameError::MissingLength)?;
    buffer.advance(consumed);
    Ok(Some(length))
}

fn skip_whitespace(buffer: &mut BytesMut) {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let count = buffer.iter().take_while(|byte| blank(byte)).count();
    buffer.advance(count);
}

/// Reads one header line; `None` is a header of another name, which is ignored.
///
/// A name has no spaces inside, so that the first line of an HTTP request is never taken for one.
pub(in crate::wire) fn content_length(line: &[u8]) -> Result<Option<u64>, FrameError> {
    let text = std::str::from_utf8(line).map_err(|_| bad_header(line))?;
    let (name, value) = text.split_once(':').ok_or_else(|| bad_header(line))?;
    let is_part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.trim().bytes().all(is_part_of_name) {
        return Err(bad_header(line));
    }
    if !name.trim().eq_ignore_ascii_case("content-length") {
        return Ok(None);
    }
    let digits = value.trim();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad_header(line));
    }
    digits.parse().map(Some).map_err(|_| bad_header(line))
}

fn bad_header(line: &[u8]) -> FrameError {
    let shown = line.get(..80).unwrap_or(line);
    let line = String::from_utf8_lossy(shown).escape_debug().to_string();
    FrameError::BadHeader { line }
}
