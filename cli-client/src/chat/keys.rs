//! Reads keys from the bytes of a terminal.

/// A key, or a text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    /// Alt-Enter, Shift-Enter or Ctrl-J: a new line in the text.
    NewLine,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    Escape,
    /// Ctrl and a letter, in lower case.
    Ctrl(char),
    /// Alt and a letter, in lower case.
    Alt(char),
    Paste(String),
}

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";
/// The most bytes of one paste; the rest is dropped.
const MOST_PASTED: usize = 1024 * 1024;
/// The most bytes of an escape sequence; a longer one is none.
const LONGEST_SEQUENCE: usize = 32;

/// Splits bytes into keys. What is not complete waits for the next bytes.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the beginning of the bytes is.
enum Found {
    /// A key, or nothing that is known, in so many bytes.
    Key(Option<Key>, usize),
    PasteBegins(usize),
    Incomplete,
}

impl KeyReader {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            if self.paste.is_some() {
                if !self.read_paste(&mut keys) {
                    return keys;
                }
                continue;
            }
            if self.pending.is_empty() {
                return keys;
            }
            match first(&self.pending) {
                Found::Incomplete => return keys,
                Found::Key(key, length) => {
                    self.pending.drain(..length.min(self.pending.len()));
                    keys.extend(key);
                }
                Found::PasteBegins(length) => {
                    self.pending.drain(..length.min(self.pending.len()));
                    self.paste = Some(Vec::new());
                }
            }
        }
    }

    /// Returns whether an escape waits, which may be the key or the beginning of a sequence.
    pub(super) fn has_escape(&self) -> bool {
        self.paste.is_none() && self.pending.first() == Some(&ESCAPE)
    }

    /// Takes a waiting escape as the key, because nothing came after it.
    pub(super) fn escape(&mut self) -> Option<Key> {
        if !self.has_escape() {
            return None;
        }
        let alone = self.pending.len() == 1;
        self.pending.clear();
        alone.then_some(Key::Escape)
    }

    /// Reads pasted text; returns whether its end has come.
    fn read_paste(&mut self, keys: &mut Vec<Key>) -> bool {
        let Some(paste) = &mut self.paste else {
            return true;
        };
        let end = self
            .pending
            .windows(PASTE_END.len())
            .position(|part| part == PASTE_END);
        let (taken, is_end) = match end {
            Some(end) => (end, true),
            // The end may be in the next bytes in part.
            None => (
                self.pending.len().saturating_sub(PASTE_END.len() - 1),
                false,
            ),
        };
        let room = MOST_PASTED.saturating_sub(paste.len());
        paste.extend(self.pending.drain(..taken).take(room));
        if is_end {
            self.pending.drain(..PASTE_END.len());
            let text = String::from_utf8_lossy(&self.paste.take().unwrap_or_default()).into_owned();
            keys.push(Key::Paste(text.replace("\r\n", "\n").replace('\r', "\n")));
        }
        is_end
    }
}

fn first(bytes: &[u8]) -> Found {
    let Some((byte, rest)) = bytes.split_first() else {
        return Found::Incomplete;
    };
    match *byte {
        ESCAPE => escaped(rest),
        b'\r' => Found::Key(Some(Key::Enter), 1),
        b'\n' => Found::Key(Some(Key::NewLine), 1),
        b'\t' => Found::Key(Some(Key::Tab), 1),
        0x7f | 0x08 => Found::Key(Some(Key::Backspace), 1),
        control @ 1..=26 => Found::Key(Some(Key::Ctrl(char::from(control - 1 + b'a'))), 1),
        0 | 0x1c..=0x1f => Found::Key(None, 1),
        lead => {
            let length = match lead {
                0..0x80 => 1,
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0..0xf8 => 4,
                _ => return Found::Key(None, 1),
            };
            let Some(letter) = bytes.get(..length) else {
                return Found::Incomplete;
            };
            match std::str::from_utf8(letter) {
                Ok(letter) => Found::Key(letter.chars().next().map(Key::Char), length),
                Err(_) => Found::Key(None, 1),
            }
        }
    }
}

/// Reads what comes after an escape.
fn escaped(rest: &[u8]) -> Found {
    match rest {
        [b'[', sequence @ ..] => control_sequence(sequence),
        [b'O', letter, ..] => Found::Key(letter_key(*letter, ""), 3),
        [] | [b'O'] => Found::Incomplete,
        [b'\r' | b'\n', ..] => Found::Key(Some(Key::NewLine), 2),
        [0x7f | 0x08, ..] => Found::Key(Some(Key::Ctrl('w')), 2),
        // Two escapes are the key twice.
        [ESCAPE, ..] => Found::Key(Some(Key::Escape), 1),
        [letter, ..] => {
            let letter = char::from(letter.to_ascii_lowercase());
            Found::Key(letter.is_ascii_graphic().then_some(Key::Alt(letter)), 2)
        }
    }
}

fn control_sequence(sequence: &[u8]) -> Found {
    let end = sequence
        .iter()
        .position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end else {
        return if sequence.len() > LONGEST_SEQUENCE {
            Found::Key(None, sequence.len() + 2)
        } else {
            Found::Incomplete
        };
    };
    let length = end + 3;
    let parameters = sequence.get(..end).unwrap_or_default();
    let parameters = std::str::from_utf8(parameters).unwrap_or_default();
    let last = sequence.get(end).copied().unwrap_or_default();
    let key = match (last, parameters) {
        (b'~', "200") => return Found::PasteBegins(length),
        (b'~', parameters) => match parameters.split(';').next() {
            Some("1" | "7") => Some(Key::Home),
            Some("4" | "8") => Some(Key::End),
            Some("3") => Some(Key::Delete),
            // Shift-Enter and its kin, as xterm sends other keys.
            Some("27") if parameters.ends_with(";13") => Some(Key::NewLine),
            _ => None,
        },
        // Keys with modifiers, as newer terminals send them.
        (b'u', parameters) => match parameters.split_once(';') {
            Some(("13", _)) => Some(Key::NewLine),
            Some(("27", _)) => Some(Key::Escape),
            _ if parameters == "27" => Some(Key::Escape),
            _ => None,
        },
        (b'Z', _) => Some(Key::BackTab),
        (letter, parameters) => letter_key(letter, parameters),
    };
    Found::Key(key, length)
}

fn letter_key(letter: u8, parameters: &str) -> Option<Key> {
    // Ctrl or Alt with an arrow moves by words.
    let by_words = parameters
        .split_once(';')
        .is_some_and(|(_, modifier)| ["3", "5", "7"].contains(&modifier));
    Some(match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if by_words => Key::WordRight,
        b'D' if by_words => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let table: [(&[u8], &[Key]); 14] = [
            (b"a", &[Key::Char('a')]),
            ("é好".as_bytes(), &[Key::Char('é'), Key::Char('好')]),
            (b"\r", &[Key::Enter]),
            (b"\n", &[Key::NewLine]),
            (b"\x1b\r", &[Key::NewLine]),
            (b"\x1b[13;2u", &[Key::NewLine]),
            (b"\x03\x02", &[Key::Ctrl('c'), Key::Ctrl('b')]),
            (b"\x1b[A\x1bOB", &[Key::Up, Key::Down]),
            (b"\x1b[1;5C\x1b[1;3D", &[Key::WordRight, Key::WordLeft]),
            (b"\x1b[3~\x7f", &[Key::Delete, Key::Backspace]),
            (b"\x1bb", &[Key::Alt('b')]),
            (b"\x1b[Z", &[Key::BackTab]),
            (b"\x1b[99;9X!", &[Key::Char('!')]),
            (
                b"\x1b[200~one\rtwo\x1b[201~!",
                &[Key::Paste("one\ntwo".to_owned()), Key::Char('!')],
            ),
        ];
        for (bytes, keys) in table {
            assert_eq!(KeyReader::default().feed(bytes), keys, "{bytes:?}");
            // The bytes may come one by one.
            let mut reader = KeyReader::default();
            let found: Vec<Key> = bytes
                .iter()
                .flat_map(|byte| reader.feed(&[*byte]))
                .collect();
            assert_eq!(found, keys, "{bytes:?} one by one");
        }
    }

    #[test]
    fn an_escape_is_a_key_when_nothing_follows() {
        let mut reader = KeyReader::default();
        assert!(reader.feed(b"\x1b").is_empty());
        assert!(reader.has_escape());
        assert_eq!(reader.escape(), Some(Key::Escape));
        assert!(reader.feed(b"\x1b[").is_empty());
        assert_eq!(reader.escape(), None);
        assert_eq!(reader.feed(b"x"), [Key::Char('x')]);
    }
}
