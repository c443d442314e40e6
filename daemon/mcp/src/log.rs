//! What a server writes beside the protocol: a bounded log for people.

use std::collections::VecDeque;
use std::sync::Arc;

use loopd_proto::visible::visible;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes of the log that are kept; older lines are dropped.
const MOST_BYTES: usize = 64 * 1024;
/// The longest line; the rest of it is dropped.
const LONGEST_LINE: usize = 2_000;

/// The log of one server, shared by those who write and read it.
#[derive(Clone, Default)]
pub struct ServerLog(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    kept: VecDeque<String>,
    bytes: usize,
    /// Lines that were dropped to make room.
    dropped: u64,
    /// Lines of standard output that were no messages.
    noise: u64,
}

impl ServerLog {
    /// Adds a line.
    pub fn add(&self, line: &str) {
        let line: String = line.trim_end().chars().take(LONGEST_LINE).collect();
        if line.is_empty() {
            return;
        }
        let line = visible(&line).into_owned();
        let mut log = self.0.lock();
        log.bytes += line.len();
        log.kept.push_back(line);
        while log.bytes > MOST_BYTES {
            let Some(oldest) = log.kept.pop_front() else {
                break;
            };
            log.bytes -= oldest.len();
            log.dropped += 1;
        }
    }

    /// Counts a line of standard output that is no message, and keeps it.
    pub(crate) fn add_noise(&self, line: &[u8]) {
        self.0.lock().noise += 1;
        let line = line.get(..LONGEST_LINE).unwrap_or(line);
        self.add(&format!("[stdout] {}", String::from_utf8_lossy(line)));
    }

    /// Counts a message that could not be read, and says why.
    pub(crate) fn add_unreadable(&self, line: &[u8], why: &dyn std::fmt::Display) {
        if line.starts_with(b"{\"jsonrpc\"") {
            self.add(&format!(
                "a message of {} bytes could not be read: {why}",
                line.len()
            ));
        }
        self.add_noise(line);
    }

    /// Returns how many lines of standard output were no messages.
    pub fn noise(&self) -> u64 {
        self.0.lock().noise
    }

    /// Returns what is kept, the oldest line first, and how many lines were dropped before it.
    pub fn lines(&self) -> (Vec<String>, u64) {
        let log = self.0.lock();
        (log.kept.iter().cloned().collect(), log.dropped)
    }

    /// Returns the last line.
    pub(crate) fn last(&self) -> Option<String> {
        self.0.lock().kept.back().cloned()
    }

    /// Takes everything that a stream says until it ends.
    pub(crate) async fn drain(self, mut stream: Box<dyn AsyncRead + Send + Unpin>) {
        let mut line: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 4096];
        loop {
            let count = match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            for byte in buffer.iter().take(count) {
                if *byte == b'\n' {
                    self.add(&String::from_utf8_lossy(&line));
                    line.clear();
                } else if line.len() < LONGEST_LINE {
                    line.push(*byte);
                }
            }
        }
        self.add(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_kept_within_bounds_and_its_end_is_kept() {
        let log = ServerLog::default();
        let mut flood = "x".repeat(10_000) + "\n";
        for number in 0..20_000 {
            flood += "line ";
            flood += &number.to_string();
            flood.push('\n');
        }
        flood.push_str("no end of line");
        let stream = std::io::Cursor::new(flood.into_bytes());
        log.clone().drain(Box::new(stream)).await;
        let (lines, dropped) = log.lines();
        assert!(lines.iter().map(String::len).sum::<usize>() <= MOST_BYTES);
        assert!(dropped > 0);
        assert_eq!(lines.last().map(String::as_str), Some("no end of line"));
        assert!(lines.contains(&"line 19999".to_owned()));
    }
}
