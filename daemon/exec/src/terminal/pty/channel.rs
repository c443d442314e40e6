//! The daemon's end of the socket to bash, and why no program can report a result on it.
//!
//! Bash gets its commands on a socket that it inherits, says on it when it has ended a command (`D`
//! and the word that came with the command), and then gets a nonce (`N`), which it prints with the exit status as a marker on the terminal.
//! The marker says where the output ends. The result counts only with that nonce:
//!
//! - The daemon makes the nonce after bash has said that the command is done. Nothing that was
//!   printed before contains it.
//! - Only bash reads it. Bash closes the socket for the programs that it starts, and `/proc` opens
//!   no socket. The environment, the arguments and the files of the shell contain no secret.
//! - A `D` from elsewhere has no effect: the nonce then waits in the socket until bash itself has
//!   ended the command.
//! - The nonce is sent when no other living group is in the foreground of the terminal. A program
//!   that takes the terminal after its command has ended is killed after a second.
//!
//! Two things can still lie. Code that bash itself evaluates (the command, and what it sources) is
//! the shell: it decides its status anyway. And a program that may trace bash (ptrace, pidfd_getfd,
//! the memory in `/proc`) can be bash; this module does not defend against a tracer of the same
//! user.

use std::io;

use tokio::io::Interest;
use tokio::net::UnixStream;
use ulid::Ulid;

/// Precedes each message: a late interrupt may cost bash a byte. Bash skips empty messages.
const PADDING: &[u8] = &[0; 4];

/// The maximum length of a line that bash says, in bytes.
const LONGEST_LINE: usize = 256;

/// The socket to bash.
#[derive(Debug)]
pub(super) struct ShellChannel {
    socket: UnixStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    ended: bool,
}

/// What happened on the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChannelEvent {
    /// Bytes were written.
    Sent,
    /// Bash says that it has ended the command with this word; empty before the first command.
    ShellDone { word: String },
    /// Bash has ended, or another program has taken its place.
    Ended,
}

impl ShellChannel {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            ended: false,
        }
    }

    /// Sends a command; bash prints a marker with `word` when it begins.
    pub(super) fn send_command(&mut self, word: &str, command: &str) {
        let command = if command.is_empty() { ":" } else { command };
        self.push('B', word);
        self.outgoing.extend_from_slice(command.as_bytes());
        self.outgoing.push(0);
    }

    /// Asks for the status of the last command; bash prints it in a marker with `nonce`.
    pub(super) fn send_nonce(&mut self, nonce: &str) {
        self.push('N', nonce);
    }

    fn push(&mut self, kind: char, word: &str) {
        self.outgoing.extend_from_slice(PADDING);
        self.outgoing
            .extend_from_slice(format!("{kind}{word}").as_bytes());
        self.outgoing.push(0);
    }

    /// Writes waiting bytes and reads what bash says, whichever is possible first. Never resolves
    /// after [`ChannelEvent::Ended`].
    pub(super) async fn exchange(&mut self) -> io::Result<ChannelEvent> {
        while !self.ended {
            if let Some(word) = self.next_line() {
                return Ok(ChannelEvent::ShellDone { word });
            }
            let interest = if self.outgoing.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            let ready = self.socket.ready(interest).await?;
            if ready.is_readable() {
                let mut said = [0; 64];
                match self.socket.try_read(&mut said) {
                    Ok(0) => break,
                    Ok(count) => {
                        let said = said.get(..count).unwrap_or_default();
                        self.incoming.extend_from_slice(said);
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if is_disconnected(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            if ready.is_writable() && !self.outgoing.is_empty() {
                match self.socket.try_write(&self.outgoing) {
                    Ok(written) => {
                        self.outgoing.drain(..written.min(self.outgoing.len()));
                        return Ok(ChannelEvent::Sent);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if is_disconnected(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        if self.ended {
            std::future::pending::<()>().await;
        }
        self.ended = true;
        self.outgoing.clear();
        Ok(ChannelEvent::Ended)
    }

    /// Takes the next line that bash said, without its `D`.
    fn next_line(&mut self) -> Option<String> {
        let Some(end) = memchr::memchr(b'\n', &self.incoming) else {
            if self.incoming.len() > LONGEST_LINE {
                self.incoming.clear();
            }
            return None;
        };
        let line: Vec<u8> = self.incoming.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        Some(line.strip_prefix('D').unwrap_or(line).to_owned())
    }
}

fn is_disconnected(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// A word that no program can guess: the 80 random bits of an id. It is short because bash reads
/// each byte with a system call.
pub(super) fn random_word() -> String {
    Ulid::generate().to_string().split_off(10)
}
