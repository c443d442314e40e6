//! Ways in: the process's own pipes, TCP on loopback, a socket of this user's. Each hands a stream
//! and what is known about its launch to the app; nothing here knows JSON.

pub mod local_socket;
pub mod stdio;
pub mod tcp;

use std::io::{self, Write};

/// Tells whoever started this process on stdout that clients may come.
pub fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
