//! Options as tables list them, and a walk through the words of a command by such a list.
//!
//! A list is a text of words:
//!
//! ```text
//! -abc        flags of one letter
//! -n=         a letter with a value, attached or as the next word
//! -U?         a letter with a value that is attached or left out
//! -NUM        a number such as -5
//! --all       a flag
//! --sort=     with a value, after `=` or as the next word
//! --color?    with a value after `=`, or none
//! -name=      in a list of long words with one dash (`find`, `go`): as above
//! ```

use super::word::Word;

/// How the options of a program look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// One dash with letters, two dashes with a word.
    Letters,
    /// One dash or two, with a word.
    Words,
}

/// The options that a table lists for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a> {
    pub(super) list: &'a str,
    pub(super) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    None,
    Required,
    Attached,
}

/// What a word of a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An option of the list.
    Known,
    /// An option that is not in the list.
    Unknown,
    /// The value of the option before it.
    Value,
    Operand,
    /// A computed word, which may be anything.
    Computed,
    /// `--`.
    Separator,
}

impl Options<'_> {
    fn tokens(&self) -> impl Iterator<Item = &str> {
        self.list.split_ascii_whitespace()
    }

    fn letter(&self, letter: char) -> Option<Value> {
        self.tokens().find_map(|token| {
            let name = token.strip_prefix('-')?;
            if name.starts_with('-') || name == "NUM" {
                return None;
            }
            match (name.strip_suffix('='), name.strip_suffix('?')) {
                (Some(one), _) => one.contains(letter).then_some(Value::Required),
                (_, Some(one)) => one.contains(letter).then_some(Value::Attached),
                (None, None) => name.contains(letter).then_some(Value::None),
            }
        })
    }

    /// Whether a letter has a value, in the next word if none is attached.
    pub(super) fn needs_value(&self, letter: char) -> bool {
        self.letter(letter) == Some(Value::Required)
    }

    fn word(&self, name: &str) -> Option<Value> {
        self.tokens().find_map(|token| {
            if let Some(with) = token.strip_suffix('=') {
                return (with == name).then_some(Value::Required);
            }
            if let Some(with) = token.strip_suffix('?') {
                return (with == name).then_some(Value::Attached);
            }
            (token == name).then_some(Value::None)
        })
    }

    pub(super) fn takes_numbers(&self) -> bool {
        self.tokens().any(|token| token == "-NUM")
    }

    /// Reads one option. Returns `None` if it is not listed, else whether the next word is its
    /// value.
    fn option(&self, text: &str) -> Option<bool> {
        if self.takes_numbers()
            && let Some(number) = text.strip_prefix('-')
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
        {
            return Some(false);
        }
        if text.starts_with("--") || self.style == Style::Words {
            return match text.split_once('=') {
                Some((name, _)) => (self.word(name)? != Value::None).then_some(false),
                None => Some(self.word(text)? == Value::Required),
            };
        }
        let mut letters = text.strip_prefix('-')?.chars();
        while let Some(letter) = letters.next() {
            match self.letter(letter)? {
                Value::None => {}
                Value::Required => return Some(letters.as_str().is_empty()),
                Value::Attached => return Some(false),
            }
        }
        Some(false)
    }

    /// Whether the next word is the value of this one.
    fn takes_next(&self, word: &Word) -> bool {
        let text = word.text().filter(|text| text.starts_with('-'));
        text.and_then(|text| self.option(text)).unwrap_or_default()
    }

    /// Whether a command uses an option, and no program can read the word as a value or an operand.
    pub(super) fn uses(&self, words: &[Word], wanted: &str) -> bool {
        let mut before: Option<&Word> = None;
        for word in words {
            let text = word.text().unwrap_or_default();
            if text == "--" {
                return false;
            }
            let is_value = before.is_some_and(|before| self.takes_next(before));
            if !is_value && self.is_spelled(text, wanted) {
                return true;
            }
            before = Some(word);
        }
        false
    }

    /// Whether a word is an option, or letters of which one is this option.
    fn is_spelled(&self, text: &str, wanted: &str) -> bool {
        if text.split('=').next() == Some(wanted) {
            return true;
        }
        let (Some(letters), Some(letter)) = (text.strip_prefix('-'), wanted.strip_prefix('-'))
        else {
            return false;
        };
        // A letter that has a value ends the letters.
        self.style == Style::Letters
            && !letters.starts_with('-')
            && letter.len() == 1
            && letters
                .chars()
                .take_while(|own| self.letter(*own) == Some(Value::None))
                .any(|own| letter.starts_with(own))
    }

    /// Returns the role of each word of a command, up to the first operand or to the end.
    pub(super) fn walk(&self, words: &[Word], extent: Extent) -> Vec<Role> {
        let mut roles = Vec::with_capacity(words.len());
        let mut awaits_value = false;
        let mut only_operands = false;
        for word in words {
            let role = if awaits_value && !word.may_be_option() {
                awaits_value = false;
                Role::Value
            } else if awaits_value && word.is_computed() {
                awaits_value = false;
                // A computed value may become several words, one of which may be an option.
                if word.may_be_several() {
                    Role::Computed
                } else {
                    Role::Value
                }
            } else if only_operands {
                Role::Operand
            } else {
                // A value that looks like an option counts as an option, because the list may be
                // wrong about it.
                let (role, takes_next) = self.role(word);
                awaits_value = takes_next;
                role
            };
            only_operands |= role == Role::Separator;
            roles.push(role);
            if extent == Extent::Options && matches!(role, Role::Operand | Role::Computed) {
                break;
            }
        }
        roles
    }

    fn role(&self, word: &Word) -> (Role, bool) {
        let Some(text) = word.text() else {
            return (self.computed(word), false);
        };
        if text == "--" {
            return (Role::Separator, false);
        }
        if text.len() < 2 || !text.starts_with('-') {
            return (Role::Operand, false);
        }
        match self.option(text) {
            Some(takes_next) => (Role::Known, takes_next),
            None => (Role::Unknown, false),
        }
    }

    /// Returns the role of a word of which only the beginning is known.
    fn computed(&self, word: &Word) -> Role {
        let prefix = word.prefix();
        if prefix.is_empty() || word.may_be_several() && prefix == "-" {
            return Role::Computed;
        }
        if !prefix.starts_with('-') {
            return Role::Operand;
        }
        let known = match prefix.split_once('=') {
            Some((name, _)) => self.word(name).is_some_and(|value| value != Value::None),
            None if prefix.starts_with("--") || self.style == Style::Words => false,
            None => {
                let mut letters = prefix.chars().skip(1);
                letters.any(|letter| self.letter(letter).is_some_and(|v| v != Value::None))
                    && prefix.chars().skip(1).all(|l| self.letter(l).is_some())
            }
        };
        if known { Role::Known } else { Role::Unknown }
    }
}

/// How far a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The walk ends at the first word that is not an option. There the command of a wrapper
    /// begins.
    Options,
    /// The walk goes to the end, because options may be anywhere.
    All,
}
