//! Follows where frames end in a stream that somebody else parses. Called by relays, which move
//! bytes and may stop only between two frames. Skips bodies without looking at them, keeps no
//! bytes and refuses nothing: a stream that is malformed is left to who reads it.

use super::codec::{Framing, HEADER_LIMIT};

/// Where in its frames a stream is.
#[derive(Debug)]
pub struct Borders {
    framing: Option<Framing>,
    at: At,
}

#[derive(Debug)]
enum At {
    /// Between two frames; blanks may follow.
    Border,
    /// Inside the header block, with the line that has begun and the length seen so far.
    Header { line: Vec<u8>, length: Option<u64> },
    /// Inside a body of which so many bytes are to come.
    Body { rest: u64 },
    /// Inside a line.
    Line,
    /// Its reader will not understand it either.
    Lost,
}

impl Default for Borders {
    fn default() -> Self {
        Self {
            framing: None,
            at: At::Border,
        }
    }
}

impl Borders {
    /// Returns how the stream is framed, once its first byte was seen.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Tells whether the stream may be cut here without cutting a frame.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.at, At::Border)
    }

    /// Follows all of these bytes.
    pub fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.step(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Follows these bytes up to the end of the frame that has begun, and returns how many they
    /// are: none between two frames, all when the frame does not end in them.
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

    /// Follows some bytes, never past the end of a frame, and returns how many. Where a frame begins
    /// that may be none; then at least one follows in the next step.
    fn step(&mut self, bytes: &[u8]) -> usize {
        match &mut self.at {
            At::Border => self.begin(bytes),
            At::Header { line, length } => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let taken = end.map_or(bytes.len(), |end| end + 1);
                line.extend(bytes.get(..taken).unwrap_or_default());
                if line.len() >= HEADER_LIMIT {
                    self.at = At::Lost;
                } else if end.is_some() {
                    let ended = std::mem::take(line);
                    let length = length.take();
                    self.at = after_header_line(ended.trim_ascii(), length);
                }
                taken
            }
            At::Body { rest } => {
                let taken =
                    usize::try_from(*rest).map_or(bytes.len(), |rest| rest.min(bytes.len()));
                *rest -= taken as u64;
                if *rest == 0 {
                    self.at = At::Border;
                }
                taken
            }
            At::Line => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.at = At::Border;
                    end + 1
                }
                None => bytes.len(),
            },
            At::Lost => bytes.len(),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> usize {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let blanks = bytes.iter().take_while(blank).count();
        if let Some(first) = bytes.get(blanks) {
            let framing = *self.framing.get_or_insert_with(|| Framing::of(*first));
            self.at = match framing {
                Framing::Lines => At::Line,
                Framing::ContentLength => At::Header {
                    line: Vec::new(),
                    length: None,
                },
            };
        }
        blanks
    }
}

/// Where the stream is after a complete header line.
fn after_header_line(line: &[u8], length: Option<u64>) -> At {
    if line.is_empty() {
        return match length {
            Some(0) => At::Border,
            Some(rest) => At::Body { rest },
            None => At::Lost,
        };
    }
    match super::codec::content_length(line) {
        Ok(Some(_)) if length.is_some() => At::Lost,
        Ok(announced) => At::Header {
            line: Vec::new(),
            length: announced.or(length),
        },
        Err(_) => At::Lost,
    }
}

#[cfg(test)]
mod tests;
