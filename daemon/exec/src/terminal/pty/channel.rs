//! The daemon's end of the socket to bash, and why no program can report a result on it.
//!
//! Bash gets its commands on a socket that it inherits, says on it when it has ended a command (`D`
//! and the word that came with the command), and then gets a nonce (`N`). It prints the nonce as a
//! marker on the terminal, which says where the output ends, and says the status on the socket (`S`,
//! the nonce and the status). The result counts only with both:
//!
//! - The kernel names the sender of what comes from the socket. What another process than bash itself
//!   has written is dropped: a subshell, and a program that was given the descriptor.
//! - The daemon makes the nonce after bash has said that the command is done. Nothing that was said
//!   before contains it.
//! - Bash closes the socket for the programs that it starts, and `/proc` opens no socket. The
//!   environment, the arguments and the files of the shell contain no secret. Who reads the socket all
//!   the same takes the nonce from bash, which then cannot answer and is killed: that is no result.
//! - The nonce is sent when no other living group is in the foreground of the terminal. A program
//!   that takes the terminal after its command has ended is killed after a second.
//!
//! Two things can still lie. Code that bash itself evaluates (the command, what it sources, and a
//! program that takes its place by `exec`) is the shell: it decides its status anyway. And a program
//! that may trace bash (ptrace, the memory in `/proc`) or may name other senders (CAP_SYS_ADMIN) can be
//! bash; this module does not defend against it. Other systems than Linux do not name the sender.

use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::net::UnixStream;
use ulid::Ulid;

use crate::sys::sender::{self, Received};

/// Precedes each message: a late interrupt may cost bash a byte. Bash skips empty messages.
const PADDING: &[u8] = &[0; 4];

/// The maximum length of a line that bash says, in bytes.
const LONGEST_LINE: usize = 256;

/// The socket to bash.
#[derive(Debug)]
pub(super) struct ShellChannel {
    socket: UnixStream,
    /// The process whose words count.
    shell: u32,
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
    /// Bash says the status of the command that it has ended.
    Status { nonce: String, status: i32 },
    /// Bash has ended, or another program has taken its place.
    Ended,
}

impl ShellChannel {
    pub(super) fn new(socket: UnixStream, shell: u32) -> Self {
        Self {
            socket,
            shell,
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

    /// Asks for the status of the last command; bash prints a marker with `nonce` and says the status.
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
            if let Some(line) = self.next_line() {
                match said(&line) {
                    Some(event) => return Ok(event),
                    None => continue,
                }
            }
            let interest = if self.outgoing.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            let ready = self.socket.ready(interest).await?;
            if ready.is_readable() {
                let mut said = [0; 64];
                let read = self.socket.try_io(Interest::READABLE, || {
                    sender::receive(self.socket.as_fd(), self.shell, &mut said)
                });
                match read {
                    Ok(Received::End) => break,
                    Ok(Received::FromOther) => {
                        tracing::warn!("a program wrote to the socket of the shell that runs it");
                        continue;
                    }
                    Ok(Received::FromShell(count)) => {
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

    /// Takes the next line that bash said.
    fn next_line(&mut self) -> Option<String> {
        let Some(end) = memchr::memchr(b'\n', &self.incoming) else {
            if self.incoming.len() > LONGEST_LINE {
                self.incoming.clear();
            }
            return None;
        };
        let line: Vec<u8> = self.incoming.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

/// What a line of bash says.
fn said(line: &str) -> Option<ChannelEvent> {
    if let Some(word) = line.strip_prefix('D') {
        let word = word.to_owned();
        return Some(ChannelEvent::ShellDone { word });
    }
    let (nonce, status) = line.strip_prefix('S')?.split_once(' ')?;
    Some(ChannelEvent::Status {
        nonce: nonce.to_owned(),
        status: status.parse().ok()?,
    })
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
