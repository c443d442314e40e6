//! The relay, and the ways in which a process that an SDK starts speaks to its client: stdin and
//! stdout, TCP on loopback, signals. The daemon uses the latter, too, when it is its own relay
//! (`--private`).
//!
//! A crate of its own because there is a relay per client: it is compiled for speed, which also
//! keeps the part of the program small that it touches. The rest of the daemon is compiled for size.

mod relay;
pub mod shutdown;
pub mod stdio;
pub mod tcp;

use std::io::{self, Write};

pub use relay::{RelayOptions, RelayTransport, run};

/// Writes a line to stdout for the process that started this one, such as "clients may connect".
pub fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
