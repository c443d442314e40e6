//! Messages over the standard input and output of a program, one per line.
//!
//! A line that is no message is counted, kept in the log and skipped: programs print greetings and
//! warnings to the wrong stream. A write that takes too long ends the connection, because the program
//! may have read half of it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};

use crate::log::ServerLog;
use crate::tap::Tap;

/// The longest line; a longer one is skipped.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How much of the capacity of a line is kept for the next one.
const KEPT_CAPACITY: usize = 64 * 1024;
/// How long a program may take to read a message.
const WRITTEN_WITHIN: Duration = Duration::from_secs(30);
/// How many answers may wait to be written. A program that asks and does not read is not read either.
const MOST_ANSWERS: usize = 64;

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The transport of one program.
pub(crate) struct StdioTransport {
    read: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// The line that is being read. It outlives a read that is cancelled.
    line: Vec<u8>,
    /// Whether the rest of a line that was too long is being skipped.
    skips: bool,
    write: Arc<Mutex<Option<Writer>>>,
    /// The places for answers that wait to be written.
    answers: Arc<Semaphore>,
    tap: Arc<Tap>,
    log: ServerLog,
}

impl StdioTransport {
    pub(crate) fn new(
        input: Writer,
        output: Box<dyn AsyncRead + Send + Unpin>,
        tap: Arc<Tap>,
        log: ServerLog,
    ) -> Self {
        Self {
            read: BufReader::new(output),
            line: Vec::new(),
            skips: false,
            write: Arc::new(Mutex::new(Some(input))),
            answers: Arc::new(Semaphore::new(MOST_ANSWERS)),
            tap,
            log,
        }
    }

    /// Reads up to the end of a line; returns whether there was one.
    async fn next_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', available);
            let piece = available.get(..end.unwrap_or(available.len()));
            let piece = piece.unwrap_or_default();
            let taken = piece.len() + usize::from(end.is_some());
            if !self.skips && self.line.len() + piece.len() > LONGEST_LINE {
                self.line.truncate(200);
                self.log.add_noise(&self.line);
                self.line.clear();
                self.skips = true;
            }
            if !self.skips {
                self.line.extend_from_slice(piece);
            }
            // Nothing is awaited between the copy and this, so that a cancelled read loses nothing.
            self.read.consume(taken);
            if end.is_some() {
                if !std::mem::take(&mut self.skips) {
                    return Ok(true);
                }
                self.line.clear();
            }
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.tap.sent(&item);
        let write = self.write.clone();
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        // Those beyond the last place are on their way already; nothing more is read meanwhile.
        let place = is_answer.then(|| self.answers.clone().try_acquire_owned().ok());
        async move {
            let _place = place;
            let mut message = serde_json::to_vec(&item)?;
            message.push(b'\n');
            let mut slot = write.lock().await;
            // Whoever is cancelled in the middle of a write leaves no writer behind.
            let Some(mut writer) = slot.take() else {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "its input is closed",
                ));
            };
            let written = async {
                writer.write_all(&message).await?;
                writer.flush().await
            };
            match tokio::time::timeout(WRITTEN_WITHIN, written).await {
                Ok(Ok(())) => {
                    *slot = Some(writer);
                    Ok(())
                }
                Ok(Err(error)) => Err(error),
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "it does not read its input",
                )),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // A semaphore that is never closed gives a permit when there is one.
            drop(self.answers.acquire().await);
            match self.next_line().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.log
                        .add(&format!("its output could not be read: {error}"));
                    return None;
                }
            }
            let line = self.line.trim_ascii();
            let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            let message = if line.is_empty() {
                None
            } else {
                self.tap.received(line);
                match serde_json::from_slice(line) {
                    Ok(message) => Some(message),
                    Err(error) => {
                        self.log.add_unreadable(line, &error);
                        None
                    }
                }
            };
            self.line.clear();
            self.line.shrink_to(KEPT_CAPACITY);
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}
