//! Puts the terminal back into its usual mode when the process ends while a line is being typed.

use parking_lot::Mutex;
use rustix::termios::Termios;

/// The mode of the terminal before the line that is being typed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Keeps the mode of the terminal, before the editor changes it.
pub(crate) fn remember() {
    *BEFORE.lock() = rustix::termios::tcgetattr(std::io::stdin()).ok();
}

/// Notes that the editor has put the mode back.
pub(crate) fn forget() {
    *BEFORE.lock() = None;
}

/// Puts the mode back if a line is being typed.
pub(crate) fn restore() {
    use std::io::Write;
    if let Some(before) = BEFORE.lock().take() {
        let now = rustix::termios::OptionalActions::Now;
        // A failure cannot be helped: the terminal is gone.
        rustix::termios::tcsetattr(std::io::stdin(), now, &before).ok();
        // Turns off the mode in which pasted text is marked.
        std::io::stderr().write_all(b"\x1b[?2004l\n").ok();
    }
}
