//! Frames on a byte stream: `Content-Length` headers or one JSON text per line, chosen by the first
//! byte the other side sends. Called by the pump (reading) and the outbox writer (writing). Never
//! parses JSON beyond counting brackets and never reserves a length only because it was announced.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest header block that is accepted before the empty line that ends it.
pub(super) const HEADER_LIMIT: usize = 8 * 1024;
/// The minimum and maximum number of bytes that one read asks for.
const READ_STEP: (usize, usize) = (16 * 1024, 256 * 1024);
/// A frame above this size takes the read buffer with it, so that an idle connection stays small.
const LARGE_FRAME: usize = 256 * 1024;

/// How messages are separated on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length: N`, an empty line, then N bytes of JSON (the LSP base protocol).
    ContentLength,
    /// One JSON text per line.
    Lines,
}

impl Framing {
    /// Returns the framing of a stream from its first byte that is not whitespace.
    pub(super) fn of(first: u8) -> Self {
        match first {
            b'{' | b'[' => Self::Lines,
            _ => Self::ContentLength,
        }
    }

    /// Appends one complete frame to `out`.
    pub fn encode(self, message: &[u8], out: &mut Vec<u8>) {
        self.begin(message.len(), out);
        match self {
            Self::ContentLength => out.extend_from_slice(message),
            Self::Lines => out.extend(message.iter().copied().map(on_one_line)),
        }
        self.end(out);
    }

    /// Appends the header of a message of `length` bytes.
    pub(super) fn begin(self, length: usize, out: &mut Vec<u8>) {
        match self {
            Self::ContentLength => {
                out.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
            }
            Self::Lines => {}
        }
    }

    /// Appends the end of a message.
    pub(super) fn end(self, out: &mut Vec<u8>) {
        match self {
            Self::ContentLength => {}
            Self::Lines => out.push(b'\n'),
        }
    }

    /// Returns the message in a form that [`Framing::begin`] and [`Framing::end`] may surround.
    pub(super) fn adapt(self, message: Bytes) -> Bytes {
        let breaks_lines = |byte: &u8| matches!(byte, b'\n' | b'\r');
        match self {
            Self::Lines if message.iter().any(breaks_lines) => {
                message.iter().copied().map(on_one_line).collect()
            }
            Self::Lines | Self::ContentLength => message,
        }
    }
}

/// Replaces a line break by a space; JSON allows raw ones only between tokens, as whitespace.
fn on_one_line(byte: u8) -> u8 {
    match byte {
        b'\n' | b'\r' => b' ',
        other => other,
    }
}

/// Why no further frame can be read from a stream.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The first byte belongs to some other protocol, such as HTTP.
    #[error(
        "the stream starts with byte 0x{first:02x}: expected `Content-Length:` or a JSON object"
    )]
    NotJsonRpc { first: u8 },
    /// The header block did not end within its limit.
    #[error("the header block is longer than {HEADER_LIMIT} bytes")]
    HeaderTooLong,
    /// A header line has no colon, or its Content-Length is not one decimal number.
    #[error("the header line `{line}` is malformed")]
    BadHeader { line: String },
    /// The header block ended without a Content-Length.
    #[error("the header block has no Content-Length")]
    MissingLength,
    /// The frame is larger than this side reads.
    #[error("the frame has {length} bytes or more, the limit is {limit}")]
    TooLarge { length: u64, limit: usize },
    /// Arrays and objects nest deeper than this side parses.
    #[error("the message nests deeper than {limit} levels")]
    TooDeep { limit: usize },
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame")]
    Truncated,
    /// The stream itself failed.
    #[error("cannot read from the stream: {0}")]
    Io(#[from] io::Error),
}

/// Reads frames from a stream; every method is cancel safe.
#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    decoder: Decoder,
    depth_limit: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader that accepts frames up to `frame_limit` bytes and `depth_limit` levels.
    pub fn new(stream: R, frame_limit: usize, depth_limit: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            decoder: Decoder::new(frame_limit),
            depth_limit,
        }
    }

    /// Returns the cell that holds the framing as soon as the other side has sent its first byte.
    pub(super) fn framing(&self) -> Arc<OnceLock<Framing>> {
        Arc::clone(&self.decoder.framing)
    }

    /// Reads the next frame; `None` is the end of the stream between two frames.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer)? {
                if frame.len() > LARGE_FRAME {
                    self.buffer = BytesMut::from(self.buffer.as_ref());
                }
                check_depth(&frame, self.depth_limit)?;
                return Ok(Some(frame));
            }
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() && self.decoder.expected.is_none() {
                    Ok(None)
                } else {
                    Err(FrameError::Truncated)
                };
            }
        }
    }

    /// Waits until the stream ends, without returning frames.
    ///
    /// A bounded amount is read ahead. If the end lies beyond it, the future stays pending.
    pub(super) async fn ended(&mut self) -> Result<(), FrameError> {
        while self.buffer.len() < LARGE_FRAME {
            if self.fill().await? == 0 {
                return Ok(());
            }
        }
        std::future::pending().await
    }

    /// Reads once. The buffer grows with the bytes that arrived, not with the announced length.
    async fn fill(&mut self) -> io::Result<usize> {
        let (least, most) = READ_STEP;
        let step = match self.decoder.expected {
            Some(expected) => expected.saturating_sub(self.buffer.len()),
            None => self.buffer.len(),
        }
        .clamp(least, most);
        self.buffer.reserve(step);
        self.stream
            .read_buf(&mut (&mut self.buffer).limit(step))
            .await
    }
}

/// Cuts frames out of a buffer, and remembers how far it has searched.
#[derive(Debug)]
struct Decoder {
    framing: Arc<OnceLock<Framing>>,
    frame_limit: usize,
    /// The length of the frame whose header was already consumed.
    expected: Option<usize>,
    /// How many bytes of an unfinished line hold no line end.
    scanned: usize,
}

impl Decoder {
    fn new(frame_limit: usize) -> Self {
        Self {
            framing: Arc::default(),
            frame_limit,
            expected: None,
            scanned: 0,
        }
    }

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        if self.expected.is_none() && self.scanned == 0 {
            skip_whitespace(buffer);
            let Some(first) = buffer.first() else {
                return Ok(None);
            };
            if self.framing.get().is_none() {
                let chosen = detect(*first)?;
                self.framing.get_or_init(|| chosen);
            }
        }
        match self.framing.get() {
            Some(Framing::Lines) => self.line(buffer),
            Some(Framing::ContentLength) | None => self.body(buffer),
        }
    }

    fn line(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let unseen = buffer.get(self.scanned..).unwrap_or_default();
        let end = unseen.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |offset| self.scanned + offset);
        self.check_length(length as u64)?;
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
        let expected = match self.expected {
            Some(expected) => expected,
            None => match self.header(buffer)? {
                Some(length) => *self.expected.insert(length),
                None => return Ok(None),
            },
        };
        if buffer.len() < expected {
            return Ok(None);
        }
        self.expected = None;
        Ok(Some(buffer.split_to(expected).freeze()))
    }

    /// Consumes a complete header block and returns the length it announces.
    fn header(&self, buffer: &mut BytesMut) -> Result<Option<usize>, FrameError> {
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
        let length = self.check_length(length)?;
        buffer.advance(consumed);
        Ok(Some(length))
    }

    fn check_length(&self, length: u64) -> Result<usize, FrameError> {
        let limit = self.frame_limit;
        match usize::try_from(length) {
            Ok(fits) if fits <= limit => Ok(fits),
            Ok(_) | Err(_) => Err(FrameError::TooLarge { length, limit }),
        }
    }
}

fn detect(first: u8) -> Result<Framing, FrameError> {
    match first {
        b'{' | b'[' => Ok(Framing::Lines),
        b'C' | b'c' => Ok(Framing::ContentLength),
        first => Err(FrameError::NotJsonRpc { first }),
    }
}

fn skip_whitespace(buffer: &mut BytesMut) {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let count = buffer.iter().take_while(|byte| blank(byte)).count();
    buffer.advance(count);
}

/// Reads one header line; `None` is a header of another name, which is ignored.
pub(super) fn content_length(line: &[u8]) -> Result<Option<u64>, FrameError> {
    let text = std::str::from_utf8(line).map_err(|_| bad_header(line))?;
    let (name, value) = text.split_once(':').ok_or_else(|| bad_header(line))?;
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

/// Rejects nesting beyond `limit`, before a recursive parser sees the text.
fn check_depth(json: &[u8], limit: usize) -> Result<(), FrameError> {
    let mut depth: usize = 0;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return Err(FrameError::TooDeep { limit });
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
