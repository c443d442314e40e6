//! Puts what a person typed into a shell command, so that it is data there and never code.
//!
//! The command is the author's. Each argument becomes one word of it, whatever it contains: it is put
//! into single quotes, also where the author has quotes around its place. Where text cannot be quoted
//! (`$((…))`, `${…}`, a comment), or where it is not known that the place takes a word as data (`sh -c
//! "…"`, `awk '…'`, `x=…`, `[[ … -eq 1 ]]`, a program that nobody knows), nothing is put in and the command
//! does not run. A plain word may also name a target of `make` and the like.
//!
//! `$ARGUMENTS` outside quotes hands over all that was typed, options included, except those with which a
//! program runs or writes something. Any other place takes a word, which must not become an option: one
//! that begins with a dash is refused unless `--` stands before its place.

use std::cell::RefCell;
use std::fmt;

use loopd_kernel::policy::shell::{self, Typed};

/// Why an argument cannot be put into a shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotQuotable {
    /// The command as its author wrote it.
    command: String,
    why: String,
    /// The file and the line in it, once they are known.
    place: Option<String>,
}

impl fmt::Display for NotQuotable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            command,
            why,
            place,
        } = self;
        if let Some(place) = place {
            write!(f, "{place}: ")?;
        }
        write!(
            f,
            "what was typed after its name cannot be put into its command `{command}` safely: {why}; write the command so that the argument is a word of its own, as in `cmd \"$1\"`"
        )
    }
}

impl NotQuotable {
    /// Says in which file and line the command stands.
    pub(super) fn in_file(&mut self, path: &std::path::Path, line: usize) {
        self.place = Some(format!("{}:{line}", path.display()));
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }
}

/// A piece of a command.
pub(super) enum Piece {
    /// Text of the author.
    Text(String),
    /// What was typed: a word for each argument, and the text for a place in quotes.
    Typed {
        words: Vec<String>,
        text: String,
        takes: Takes,
    },
}

/// What the place of an argument takes outside quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Words,
    WordsAndOptions,
}

/// Puts the arguments into a command.
pub(super) fn quoted(command: &str, pieces: &[Piece]) -> Result<String, NotQuotable> {
    let refused = |why: &str| NotQuotable {
        command: command.to_owned(),
        why: why.to_owned(),
        place: None,
    };
    let typed = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(_) => None,
        Piece::Typed { words, text, .. } => Some((words, text)),
    });
    if typed.clone().any(|(_, text)| text.contains('\0')) {
        return Err(refused("it has a character that no word can have"));
    }
    // A text of several words counts as more: its spaces and line ends mean something to a shell.
    let is_plain = typed
        .clone()
        .flat_map(|(words, text)| words.iter().chain([text]))
        .all(|word| word.is_empty() || is_harmless(word));
    let kind = if is_plain {
        Typed::Plain
    } else {
        Typed::Anything
    };
    let text = filled(pieces, |text, _| text.to_owned()).map_err(refused)?;
    if typed.clone().any(|(words, _)| !words.is_empty()) {
        is_data(pieces, &text, kind).map_err(|why| refused(&why))?;
    }
    let dashed = typed.flat_map(|(words, text)| words.iter().chain([text]));
    let dashed: Vec<&str> = dashed
        .map(String::as_str)
        .filter(|text| text.starts_with('-'))
        .collect();
    if !dashed.is_empty() {
        let marked = filled(pieces, |text, takes| match takes {
            Takes::Words if text.starts_with('-') => DASHED.to_owned(),
            Takes::Words | Takes::WordsAndOptions => MARK.to_owned(),
        });
        if shell::may_be_option(&marked.map_err(refused)?, DASHED) {
            return Err(refused(
                "it begins with a dash and would be taken for an option, unless `--` stands before its \
                 place",
            ));
        }
        if let Some(option) = shell::running_option(&text, &dashed) {
            return Err(refused(&format!(
                "with the option `{option}` its program may run or write something"
            )));
        }
    }
    Ok(text)
}

/// Checks that each word which was put into a line is one word of data there. The line is read a second
/// time for this, by the reader of the permission rules, so that one mistake of a reader is not enough.
fn is_data(pieces: &[Piece], text: &str, typed: Typed) -> Result<(), String> {
    let marked = filled(pieces, |_, _| MARK.to_owned())?;
    if let Some(why) = shell::why_evaluated(&marked, MARK, typed) {
        return Err(format!(
            "bash or a program in it may evaluate its place ({why})"
        ));
    }
    let values = RefCell::new(Vec::new());
    let marked = filled(pieces, |value, _| {
        let mut values = values.borrow_mut();
        let mark = format!("{MARK}{}x", values.len());
        values.push((mark.clone(), value.to_owned()));
        mark
    })?;
    let values = values.into_inner();
    if !shell::differ_in_words_only(&marked, text, &values) {
        return Err("bash or a program in it may evaluate its place".to_owned());
    }
    Ok(())
}

/// A word that stands for an argument, and one for an argument that begins with a dash.
const MARK: &str = "loopdargument";
const DASHED: &str = "loopddashed";

fn filled(pieces: &[Piece], value: impl Fn(&str, Takes) -> String) -> Result<String, &'static str> {
    let mut place = ShellPlace::default();
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(more) => {
                place.read(more);
                text.push_str(more);
            }
            Piece::Typed { words, .. } if words.is_empty() => {}
            Piece::Typed {
                words,
                text: typed,
                takes,
            } => match place.quotes()? {
                Quotes::None => {
                    let words = words.iter().map(|word| word_of(&value(word, *takes)));
                    let words: Vec<String> = words.collect();
                    text.push_str(&words.join(" "));
                    place.after_word();
                }
                Quotes::Single => text.push_str(&value(typed, Takes::Words).replace('\'', "'\\''")),
                // The quotes are closed, because history is expanded in them.
                Quotes::Double => {
                    text.extend(["\"", &single(&value(typed, Takes::Words)), "\""]);
                }
            },
        }
    }
    Ok(text)
}

/// Whether a text means the same everywhere in a shell and in other languages.
fn is_harmless(text: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
    !text.is_empty() && text.chars().all(usual)
}

/// Words that mean something to a shell where a command begins.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// Returns a word as it is written in a shell.
fn word_of(word: &str) -> String {
    if is_harmless(word) && !RESERVED.contains(&word) {
        word.to_owned()
    } else {
        single(word)
    }
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The quotes around a place.
enum Quotes {
    None,
    Single,
    Double,
}

/// What a part of a command is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Single,
    Double,
    /// `$'…'`
    Ansi,
    /// `(…)`, `$(…)`
    Parentheses,
    /// `${…}`
    Braces,
    /// `$((…))`, `((…))`
    Arithmetic,
    Comment,
    /// Text after `<<`.
    Here,
}

/// Where in a command a text is, after what was read so far.
#[derive(Debug, Default)]
struct ShellPlace {
    inside: Vec<Inside>,
    /// The character before, unless it is quoted.
    before: Option<char>,
    escaped: bool,
}

impl ShellPlace {
    /// Returns the quotes around this place; the error says why nothing can be put here.
    fn quotes(&self) -> Result<Quotes, &'static str> {
        if self.escaped {
            return Err("a backslash stands before its place");
        }
        if self.before == Some('$') {
            return Err("a dollar sign stands before its place");
        }
        let unusable = |inside: &Inside| match inside {
            Inside::Ansi => Some("its place is in `$'…'`"),
            Inside::Braces => Some("its place is in `${…}`"),
            Inside::Arithmetic => Some("its place is in a calculation"),
            Inside::Comment => Some("its place is in a comment"),
            Inside::Here => Some("its place is after `<<`"),
            Inside::Single | Inside::Double | Inside::Parentheses => None,
        };
        if let Some(why) = self.inside.iter().find_map(unusable) {
            return Err(why);
        }
        Ok(match self.inside.last() {
            Some(Inside::Single) => Quotes::Single,
            Some(Inside::Double) => Quotes::Double,
            _ => Quotes::None,
        })
    }

    fn after_word(&mut self) {
        self.before = Some('x');
    }

    fn read(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let next = letters.peek().copied();
            if std::mem::take(&mut self.escaped) {
                self.before = Some('x');
                continue;
            }
            let after_dollar = self.before == Some('$');
            match (self.inside.last().copied(), letter) {
                (Some(Inside::Single | Inside::Ansi), '\'')
                | (Some(Inside::Double), '"')
                | (Some(Inside::Braces), '}')
                | (Some(Inside::Parentheses), ')')
                | (Some(Inside::Comment), '\n') => {
                    self.inside.pop();
                }
                (Some(Inside::Arithmetic), ')') if next == Some(')') => {
                    letters.next();
                    self.inside.pop();
                }
                (Some(Inside::Single | Inside::Comment | Inside::Here), _) => {}
                (_, '\\') => self.escaped = true,
                (Some(Inside::Ansi), _) => {}
                (inside, '\'') if inside != Some(Inside::Double) => {
                    let kind = if after_dollar {
                        Inside::Ansi
                    } else {
                        Inside::Single
                    };
                    self.inside.push(kind);
                }
                (_, '"') => self.inside.push(Inside::Double),
                (_, '{') if after_dollar => self.inside.push(Inside::Braces),
                (inside, '(') if after_dollar || inside != Some(Inside::Double) => {
                    if next == Some('(') {
                        letters.next();
                        self.inside.push(Inside::Arithmetic);
                    } else {
                        self.inside.push(Inside::Parentheses);
                    }
                }
                (Some(Inside::Double), _) => {}
                (_, '#') if self.begins_word() => self.inside.push(Inside::Comment),
                (_, '<') if next == Some('<') => {
                    letters.next();
                    if letters.peek() == Some(&'<') {
                        letters.next();
                    } else {
                        self.inside.push(Inside::Here);
                    }
                }
                _ => {}
            }
            self.before = Some(letter);
        }
    }

    fn begins_word(&self) -> bool {
        self.before
            .is_none_or(|before| before.is_whitespace() || ";&|()".contains(before))
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
