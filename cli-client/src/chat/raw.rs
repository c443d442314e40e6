//! The terminal in the mode in which every key is read at once.

use std::io::{self, Write};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc;

use crate::terminal::restore;

/// How many reads may wait for the conversation.
const WAITING: usize = 64;

/// Keeps the terminal in this mode until it is dropped.
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        restore::remember();
        let mut raw = before.clone();
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.input_modes
            .remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        // Pasted text is marked as such.
        io::stdout().write_all(b"\x1b[?2004h")?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // A failure cannot be helped: the terminal is gone.
        out.write_all(b"\x1b[?2004l").ok();
        out.flush().ok();
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
        restore::forget();
    }
}

/// Reads the bytes of the terminal on a thread of its own, until it is closed.
pub(super) fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = [0; 4_096];
        loop {
            match rustix::io::read(io::stdin(), &mut buffer) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receiver
}

/// Writes to the terminal at once.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
