//! The transports: the process's own pipes, TCP on loopback, and the local socket of this user.
//! Each hands a stream and its launch to the server; no transport knows JSON.

pub mod local_socket;
#[cfg(unix)]
mod peer;
pub mod stdio;
pub mod tcp;

use std::io::{self, Write};

/// Writes a line to stdout for the process that started this one, such as "clients may connect".
pub fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
