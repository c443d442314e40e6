//! Frames on a byte stream: `Content-Length` headers or one JSON text per line, chosen by the first
//! byte the other side sends. Called by the pump (reading) and the outbox writer (writing). Never
//! parses JSON beyond counting brackets and never reserves a length only because it was announced.

mod decoder;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::admission::Admission;
use super::envelope::{self, MessageHead};
use decoder::Decoder;
pub(super) use decoder::content_length;

/// The longest header block that is accepted before the empty line that ends it.
pub(super) const HEADER_LIMIT: usize = 8 * 1024;
/// The minimum and maximum number of bytes that one read asks for.
const READ_STEP: (usize, usize) = (16 * 1024, 256 * 1024);
/// A frame above this size takes the read buffer with it, so that an idle connection stays small.
const LARGE_FRAME: usize = 256 * 1024;
/// How much of a frame that is too large is searched for the id of its request.
const ID_SEARCH: usize = 1024;
/// How long the beginning of such a frame is awaited when its header has come alone.
const ID_WAIT: Duration = Duration::from_millis(200);
/// How each `Content-Length` stream begins. Other header names come later, if at all.
const HEADER_START: &[u8] = b"content-";

/// How messages are separated on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length: N`, an empty line, then N bytes of JSON (the LSP base protocol).
    ContentLength,
    /// One JSON text per line.
    Lines,
}

impl Framing {
    /// Returns the framing of a stream from its first bytes; `None` if more bytes have to come.
    pub fn detect(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let bytes = bytes.trim_ascii_start();
        let Some(first) = bytes.first().copied() else {
            return Ok(None);
        };
        if matches!(first, b'{' | b'[') {
            return Ok(Some(Self::Lines));
        }
        let length = bytes.len().min(HEADER_START.len());
        let (seen, wanted) = (bytes.get(..length), HEADER_START.get(..length));
        let fits = seen.zip(wanted);
        if !fits.is_some_and(|(seen, wanted)| seen.eq_ignore_ascii_case(wanted)) {
            return Err(FrameError::NotJsonRpc { first });
        }
        Ok((length == HEADER_START.len()).then_some(Self::ContentLength))
    }

    /// Returns the framing that a stream with this first byte can have.
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

/// Why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The first bytes belong to some other protocol, such as HTTP.
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
    /// The frame is larger than this side reads, and too large to be skipped.
    #[error("the frame has {length} bytes or more, the limit is {limit}")]
    TooLarge { length: u64, limit: usize },
    /// The frame is larger than this side reads. It is skipped; the next frame can be read.
    #[error("the frame has {length} bytes or more and was not read, the limit is {limit}")]
    Skipped {
        head: MessageHead,
        length: u64,
        limit: usize,
    },
    /// Arrays and objects nest deeper than this side parses. The next frame can be read.
    #[error("the message nests deeper than {limit} levels")]
    TooDeep { head: MessageHead, limit: usize },
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
    /// Until when the beginning of a frame that is too large is awaited.
    id_until: Option<Instant>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader that accepts frames up to `frame_limit` bytes and `depth_limit` levels.
    pub fn new(stream: R, frame_limit: usize, depth_limit: usize) -> Self {
        Self::admitting(stream, Arc::new(Admission::new(frame_limit)), depth_limit)
    }

    /// Creates a reader whose limits change when the other side is admitted.
    pub(super) fn admitting(stream: R, admission: Arc<Admission>, depth_limit: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            decoder: Decoder::new(admission),
            depth_limit,
            id_until: None,
        }
    }

    /// Returns the cell that holds the framing as soon as the other side has sent its first byte.
    pub(super) fn framing(&self) -> Arc<OnceLock<Framing>> {
        Arc::clone(&self.decoder.framing)
    }

    /// Reads the next frame; `None` is the end of the stream between two frames.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            let decoded = self.decoder.decode(&mut self.buffer);
            if matches!(decoded, Err(FrameError::Skipped { .. })) {
                // A line that is too large has filled the buffer by now.
                self.decoder.skip(&mut self.buffer)?;
                self.release_buffer();
            }
            if let Some(frame) = decoded? {
                if frame.len() > LARGE_FRAME {
                    self.release_buffer();
                }
                check_depth(&frame, self.depth_limit)?;
                return Ok(Some(frame));
            }
            let Some(read) = self.fill_in_time().await? else {
                self.decoder.give_up_id();
                continue;
            };
            if read == 0 {
                return if self.buffer.is_empty() && self.decoder.is_between_frames() {
                    Ok(None)
                } else {
                    Err(FrameError::Truncated)
                };
            }
        }
    }

    /// Moves what is buffered into a small buffer.
    fn release_buffer(&mut self) {
        self.buffer = BytesMut::from(self.buffer.as_ref());
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

    /// Reads once; `None` if the id of a frame that is too large has not come in time.
    async fn fill_in_time(&mut self) -> io::Result<Option<usize>> {
        if !self.decoder.awaits_id() {
            self.id_until = None;
            return self.fill().await.map(Some);
        }
        let until = *self
            .id_until
            .get_or_insert_with(|| Instant::now() + ID_WAIT);
        match tokio::time::timeout_at(until, self.fill()).await {
            Ok(read) => read.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads once. The buffer grows with the bytes that arrived, not with the announced length.
    async fn fill(&mut self) -> io::Result<usize> {
        let (least, most) = READ_STEP;
        let step = match self.decoder.expected {
            Some(expected) => usize::try_from(expected)
                .unwrap_or(usize::MAX)
                .saturating_sub(self.buffer.len()),
            None => self.buffer.len(),
        }
        .clamp(least, most);
        self.buffer.reserve(step);
        self.stream
            .read_buf(&mut (&mut self.buffer).limit(step))
            .await
    }
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
                    let head = envelope::message_head(json.get(..ID_SEARCH).unwrap_or(json));
                    return Err(FrameError::TooDeep { head, limit });
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
