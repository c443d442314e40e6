//! Tracks where frames end in a stream that another process parses. Called by relays, which copy
//! bytes and may stop only between two frames. Skips bodies without parsing them, keeps no bytes
//! and refuses nothing: the reader of the stream reports malformed frames.

use super::codec::{Framing, HEADER_LIMIT};

/// Tracks the position of a stream relative to its frames.
#[derive(Debug)]
pub struct FrameTracker {
    framing: Option<Framing>,
    position: FramePosition,
}

#[derive(Debug)]
enum FramePosition {
    /// Between two frames; whitespace may follow.
    BetweenFrames,
    /// Inside the header block, with the unfinished line and the length seen so far.
    Header { line: Vec<u8>, length: Option<u64> },
    /// Inside a body of which `rest` bytes are missing.
    Body { rest: u64 },
    /// Inside a line.
    Line,
    /// The stream is malformed; its reader will reject it.
    Malformed,
}

impl Default for FrameTracker {
    fn default() -> Self {
        Self {
            framing: None,
            position: FramePosition::BetweenFrames,
        }
    }
}

impl FrameTracker {
    /// Returns the framing of the stream; `None` before its first byte.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Returns whether the stream can end here without cutting a frame.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.position, FramePosition::BetweenFrames)
    }

    /// Advances over all of these bytes.
    pub fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.step(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Advances to the end of the current frame and returns how many bytes that took: none between
    /// two frames, all if the frame does not end in them.
    pub fn follow_frame(&mut self, bytes: &[u8]) -> usize {
        let mut followed = 0;
        while !self.is_between_frames() {
            let rest = bytes.get(followed..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            followed += self.step(rest);
        }
        followed
    }

    /// Advances over some bytes, never past the end of a frame, and returns how many. At the start of
    /// a frame that may be none; the next step then takes at least one.
    fn step(&mut self, bytes: &[u8]) -> usize {
        match &mut self.position {
            FramePosition::BetweenFrames => self.begin(bytes),
            FramePosition::Header { line, length } => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let taken = end.map_or(bytes.len(), |end| end + 1);
                line.extend(bytes.get(..taken).unwrap_or_default());
                if line.len() >= HEADER_LIMIT {
                    self.position = FramePosition::Malformed;
                } else if end.is_some() {
                    let ended = std::mem::take(line);
                    let length = length.take();
                    self.position = after_header_line(ended.trim_ascii(), length);
                }
                taken
            }
            FramePosition::Body { rest } => {
                let taken =
                    usize::try_from(*rest).map_or(bytes.len(), |rest| rest.min(bytes.len()));
                *rest -= taken as u64;
                if *rest == 0 {
                    self.position = FramePosition::BetweenFrames;
                }
                taken
            }
            FramePosition::Line => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.position = FramePosition::BetweenFrames;
                    end + 1
                }
                None => bytes.len(),
            },
            FramePosition::Malformed => bytes.len(),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> usize {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let blanks = bytes.iter().take_while(blank).count();
        if let Some(first) = bytes.get(blanks) {
            let framing = *self.framing.get_or_insert_with(|| Framing::of(*first));
            self.position = match framing {
                Framing::Lines => FramePosition::Line,
                Framing::ContentLength => FramePosition::Header {
                    line: Vec::new(),
                    length: None,
                },
            };
        }
        blanks
    }
}

/// Returns the position after a complete header line.
fn after_header_line(line: &[u8], length: Option<u64>) -> FramePosition {
    if line.is_empty() {
        return match length {
            Some(0) => FramePosition::BetweenFrames,
            Some(rest) => FramePosition::Body { rest },
            None => FramePosition::Malformed,
        };
    }
    match super::codec::content_length(line) {
        Ok(Some(_)) if length.is_some() => FramePosition::Malformed,
        Ok(announced) => FramePosition::Header {
            line: Vec::new(),
            length: announced.or(length),
        },
        Err(_) => FramePosition::Malformed,
    }
}

#[cfg(test)]
mod tests;
