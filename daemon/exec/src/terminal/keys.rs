//! Typed text and named keys, and the bytes that a terminal sends for them.
//!
//! `{name}` is a key; the names are those of [`NAMES`], `{ctrl-x}`, `{alt-x}` and `{f1}` to
//! `{f12}`. [`parts`] says which braces are keys: `{"a": 1}` and `{ }` can be typed unchanged.

use loopd_kernel::policy::typed::{InputPart, parts};

/// The named keys, and the bytes that a terminal sends for them.
const NAMES: [(&str, &str); 16] = [
    ("enter", "\r"),
    ("tab", "\t"),
    ("esc", "\x1b"),
    ("space", " "),
    ("backspace", "\x7f"),
    ("delete", "\x1b[3~"),
    ("insert", "\x1b[2~"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("pageup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("shift-tab", "\x1b[Z"),
];

const FUNCTION_KEYS: [&str; 12] = [
    "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[17~", "\x1b[18~", "\x1b[19~",
    "\x1b[20~", "\x1b[21~", "\x1b[23~", "\x1b[24~",
];

/// Input to type: text and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedInput(Vec<KeyStroke>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyStroke {
    Bytes(String),
    /// A key that is sent differently in application mode.
    Cursor(&'static str),
}

/// Why input was not typed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error(
        "there is no key {{{0}}}: keys are {{enter}}, {{tab}}, {{shift-tab}}, {{esc}}, {{space}}, {{backspace}}, {{delete}}, {{insert}}, {{up}}, {{down}}, {{left}}, {{right}}, {{home}}, {{end}}, {{pageup}}, {{pagedown}}, {{f1}} to {{f12}}, {{ctrl-a}} to {{ctrl-z}} and {{alt-}} with any character; to type {{{0}}} as text write {{{{{0}}}"
    )]
    UnknownKey(String),
    #[error("the command runs without a terminal and cannot be given input")]
    NoTerminal,
    #[error("the command has ended and reads nothing any more")]
    Ended,
    #[error("the command does not read its input, and no more fits into the terminal")]
    NotRead,
}

/// Parses text with named keys.
pub fn parse_input(text: &str) -> Result<TypedInput, InputError> {
    let mut input = TypedInput(Vec::new());
    for part in parts(text) {
        match part {
            InputPart::Text(text) => input.text(text),
            InputPart::Key(name) => input.key(name)?,
        }
    }
    Ok(input)
}

impl TypedInput {
    /// The bytes that a terminal sends in this mode of the cursor keys.
    pub(super) fn encode(&self, cursor_keys: CursorKeys) -> Vec<u8> {
        let mut bytes = Vec::new();
        for stroke in &self.0 {
            match (stroke, cursor_keys) {
                (KeyStroke::Bytes(text), _) => bytes.extend_from_slice(text.as_bytes()),
                (KeyStroke::Cursor(key), CursorKeys::Normal) => {
                    bytes.extend_from_slice(key.as_bytes());
                }
                (KeyStroke::Cursor(key), CursorKeys::Application) => {
                    bytes.extend_from_slice(key.replace('[', "O").as_bytes());
                }
            }
        }
        bytes
    }

    fn text(&mut self, text: &str) {
        // The enter key sends a carriage return, which the terminal converts if the program wants
        // it.
        self.bytes(text.replace("\r\n", "\r").replace('\n', "\r"));
    }

    fn bytes(&mut self, more: String) {
        match self.0.last_mut() {
            Some(KeyStroke::Bytes(text)) => text.push_str(&more),
            Some(KeyStroke::Cursor(_)) | None => self.0.push(KeyStroke::Bytes(more)),
        }
    }

    fn key(&mut self, name: &str) -> Result<(), InputError> {
        if let Some((_, sent)) = NAMES.iter().find(|(known, _)| *known == name) {
            match name {
                "up" | "down" | "left" | "right" | "home" | "end" => {
                    self.0.push(KeyStroke::Cursor(sent));
                }
                _ => self.bytes((*sent).to_owned()),
            }
            return Ok(());
        }
        let unknown = || InputError::UnknownKey(name.to_owned());
        let number = name
            .strip_prefix('f')
            .and_then(|rest| rest.parse::<usize>().ok());
        if let Some(sent) = number.and_then(|number| FUNCTION_KEYS.get(number.checked_sub(1)?)) {
            self.bytes((*sent).to_owned());
        } else if let Some(letter) = name.strip_prefix("ctrl-") {
            self.bytes(control(letter).ok_or_else(unknown)?.to_string());
        } else if let Some(letter) = name.strip_prefix("alt-")
            && letter.chars().count() == 1
        {
            self.bytes(format!("\x1b{letter}"));
        } else {
            return Err(unknown());
        }
        Ok(())
    }
}

/// The control character for a key.
fn control(key: &str) -> Option<char> {
    let mut characters = key.chars();
    let (Some(character), None) = (characters.next(), characters.next()) else {
        return (key == "space").then_some('\0');
    };
    match character {
        'a'..='z' | 'A'..='Z' | '@' | '[' | '\\' | ']' | '^' | '_' => {
            Some(char::from(character.to_ascii_uppercase() as u8 & 0x1F))
        }
        _ => None,
    }
}

/// The mode of the cursor keys, which a program selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CursorKeys {
    #[default]
    Normal,
    Application,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
