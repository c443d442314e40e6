//! What was typed while nobody read the terminal. It was typed before a question was shown, so it is no
//! answer to it.

/// The most bytes that are taken at once; a terminal holds less.
#[cfg(unix)]
const MOST: usize = 64 * 1024;

/// Takes what was typed until now, also a line without its end.
#[cfg(unix)]
pub(super) fn take() -> String {
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    let Ok(before) = tcgetattr(&stdin) else {
        return String::new();
    };
    // Reads what is there without waiting, also the beginning of a line.
    let mut at_once = before.clone();
    at_once
        .local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO);
    at_once.special_codes[SpecialCodeIndex::VMIN] = 0;
    at_once.special_codes[SpecialCodeIndex::VTIME] = 0;
    if tcsetattr(&stdin, OptionalActions::Now, &at_once).is_err() {
        return String::new();
    }
    let mut typed = Vec::new();
    let mut buffer = [0; 1024];
    while typed.len() < MOST {
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => typed.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
    // A failure cannot be helped: the terminal is gone.
    tcsetattr(&stdin, OptionalActions::Now, &before).ok();
    readable(&String::from_utf8_lossy(&typed))
}

/// Lets Ctrl-C leave in the terminal what was typed and not read: usually it is thrown away. Dropping it puts
/// back what was before.
pub(crate) struct KeepsTyped(#[cfg(unix)] bool);

impl KeepsTyped {
    #[cfg(unix)]
    pub(super) fn begin() -> Self {
        let keeps = change(|modes| {
            let was_set = modes.contains(rustix::termios::LocalModes::NOFLSH);
            modes.insert(rustix::termios::LocalModes::NOFLSH);
            !was_set
        });
        Self(keeps == Some(true))
    }

    #[cfg(not(unix))]
    pub(super) fn begin() -> Self {
        Self()
    }
}

#[cfg(unix)]
impl Drop for KeepsTyped {
    fn drop(&mut self) {
        if self.0 {
            change(|modes| modes.remove(rustix::termios::LocalModes::NOFLSH));
        }
    }
}

/// Changes the modes of the terminal; `None` if there is none.
#[cfg(unix)]
fn change<T>(change: impl FnOnce(&mut rustix::termios::LocalModes) -> T) -> Option<T> {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    let mut modes = tcgetattr(&stdin).ok()?;
    let changed = change(&mut modes.local_modes);
    tcsetattr(&stdin, OptionalActions::Now, &modes).ok()?;
    Some(changed)
}

#[cfg(not(unix))]
pub(super) fn take() -> String {
    String::new()
}

/// Returns the lines that were typed, without keys that are no text.
#[cfg(unix)]
fn readable(typed: &str) -> String {
    let ended = typed.replace('\r', "\n");
    let text: String = ended
        .chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .collect();
    text.trim_matches('\n').to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::readable;

    #[test]
    fn keys_that_are_no_text_are_left_out() {
        assert_eq!(readable("y\r"), "y");
        assert_eq!(readable("one\ntwo\u{4}\n\n"), "one\ntwo");
        assert_eq!(readable("\u{1b}\0"), "");
    }
}
