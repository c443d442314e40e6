//! The arguments of a command: which ones its text uses, and filling them in.

use std::fmt;

use super::definition::CommandFormat;
use super::quoting::{self, NotQuotable, Piece, Takes};

/// The longest text that may come of the text of a command and its arguments, in bytes.
pub const LONGEST_TEXT: usize = 1024 * 1024;

/// Which arguments a text uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether the text uses all words at once.
    whole: bool,
    /// The highest number of a word that the text uses.
    last: usize,
    /// The named inputs of a prompt file, in the order of the text.
    pub inputs: Vec<NamedInput>,
}

/// A named input of a prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedInput {
    pub name: String,
    /// What the author says about it.
    pub hint: Option<String>,
}

/// The inputs that a prompt file needs and that were not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingInputs(Vec<NamedInput>);

impl fmt::Display for MissingInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let first = self.0.first().map_or("name", |input| &input.name);
        write!(
            f,
            "it needs {}; write the words after its name, or {first}=… for each",
            names.join(", ")
        )
    }
}

/// Why a command of a file does not run with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFilled {
    Missing(MissingInputs),
    NotQuotable(NotQuotable),
    /// One of its commands writes a file, and one runs a file.
    RunsWritten,
    /// This word comes before the first named input, and all inputs are named.
    NoPlace(String),
    TooLong,
}

impl fmt::Display for NotFilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => missing.fmt(f),
            Self::NotQuotable(place) => place.fmt(f),
            Self::RunsWritten => f.write_str(
                "one of its commands writes a file and another one runs a file, so what was typed after its \
                 name might run; leave it out, or put these commands into a script of your project",
            ),
            Self::NoPlace(word) => write!(
                f,
                "`{word}` belongs to no input, because all of them are named after it; leave it out, or \
                 write it after a name"
            ),
            Self::TooLong => write!(
                f,
                "its text has more than {} KiB with its arguments filled in",
                LONGEST_TEXT / 1024
            ),
        }
    }
}

impl fmt::Display for NamedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "`{}` ({hint})", self.name),
            None => write!(f, "`{}`", self.name),
        }
    }
}

/// A place of a text where an argument goes.
enum Place<'a> {
    Whole,
    Word(usize),
    /// `${…}`, without the dollar sign and the braces.
    Variable(&'a str),
}

impl Wanted {
    pub(super) fn of(text: &str, format: CommandFormat) -> Self {
        let mut wanted = Self::default();
        let mut rest = text;
        while let Some((_, place, after)) = next(rest, format) {
            match place {
                Place::Whole => wanted.whole = true,
                Place::Word(number) => wanted.last = wanted.last.max(number),
                Place::Variable(variable) => wanted.add(variable),
            }
            rest = after;
        }
        wanted
    }

    fn add(&mut self, variable: &str) {
        let Some(input) = input_of(variable) else {
            return;
        };
        if !self.inputs.iter().any(|known| known.name == input.name) {
            self.inputs.push(input);
        }
    }

    /// Returns whether the text says where arguments go.
    pub fn is_any(&self) -> bool {
        self.whole || self.last > 0 || !self.inputs.is_empty()
    }
}

/// Returns the named input of a variable `input:name` or `input:name:hint`.
fn input_of(variable: &str) -> Option<NamedInput> {
    let input = variable.strip_prefix("input:")?;
    let (name, hint) = match input.split_once(':') {
        Some((name, hint)) => (name, Some(hint.trim().to_owned())),
        None => (input, None),
    };
    Some(NamedInput {
        name: name.trim().to_owned(),
        hint: hint.filter(|hint| !hint.is_empty()),
    })
}

/// Returns the variables of a prompt file that only an editor could fill in.
pub(super) fn editor_variables(text: &str) -> Vec<&str> {
    let mut unknown = Vec::new();
    let mut rest = text;
    while let Some((_, place, after)) = next(rest, CommandFormat::Prompt) {
        if let Place::Variable(variable) = place
            && input_of(variable).is_none()
            && folder_variable(variable, "").is_none()
            && !unknown.contains(&variable)
        {
            unknown.push(variable);
        }
        rest = after;
    }
    unknown
}

fn folder_variable(variable: &str, folder: &str) -> Option<String> {
    match variable {
        "workspaceFolder" => Some(folder.to_owned()),
        "workspaceFolderBasename" => {
            let name = std::path::Path::new(folder).file_name();
            Some(name.unwrap_or_default().to_string_lossy().into_owned())
        }
        _ => None,
    }
}

/// Finds the next place of an argument: the text before it, the place, the text after it. A backslash
/// before the dollar sign makes it ordinary text.
fn next(text: &str, format: CommandFormat) -> Option<(&str, Place<'_>, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('$')?;
        let (before, found) = text.split_at(at);
        from = at + 1;
        if before.ends_with('\\') {
            continue;
        }
        let found = found.strip_prefix('$')?;
        let place = match format {
            CommandFormat::Prompt => variable(found),
            CommandFormat::Claude | CommandFormat::Opencode => numbered(found),
        };
        if let Some((place, after)) = place {
            return Some((before, place, after));
        }
    }
}

fn variable(found: &str) -> Option<(Place<'_>, &str)> {
    let inner = found.strip_prefix('{')?;
    let end = inner.find(['}', '\n', '{'])?;
    let (name, after) = inner.split_at(end);
    Some((Place::Variable(name), after.strip_prefix('}')?))
}

fn numbered(found: &str) -> Option<(Place<'_>, &str)> {
    let goes_on = |after: &str| {
        let letter = after.chars().next();
        letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    if let Some(after) = found.strip_prefix("ARGUMENTS") {
        return (!goes_on(after)).then_some((Place::Whole, after));
    }
    let digits = found.len()
        - found
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .len();
    let (number, after) = found.split_at(digits);
    let number = number.parse().ok().filter(|number| *number > 0)?;
    (!goes_on(after)).then_some((Place::Word(number), after))
}

/// How many bytes the texts of one call may still take. It is asked before memory is taken: the text
/// and the arguments are both small, and their product is not.
pub(super) struct Room(usize);

impl Room {
    pub(super) fn new() -> Self {
        Self(LONGEST_TEXT)
    }

    fn take(&mut self, bytes: usize) -> Result<(), NotFilled> {
        self.0 = self.0.checked_sub(bytes).ok_or(NotFilled::TooLong)?;
        Ok(())
    }

    fn add(&mut self, to: &mut String, text: &str) -> Result<(), NotFilled> {
        self.take(text.len())?;
        to.push_str(text);
        Ok(())
    }
}

/// The arguments of one call, ready to be filled in.
pub(super) struct Filled<'a> {
    wanted: &'a Wanted,
    format: CommandFormat,
    input: &'a str,
    folder: &'a str,
    words: Vec<String>,
    /// The values of the named inputs, in their order.
    inputs: Vec<(&'a str, String)>,
}

impl<'a> Filled<'a> {
    pub(super) fn new(
        wanted: &'a Wanted,
        format: CommandFormat,
        input: &'a str,
        folder: &'a str,
    ) -> Result<Self, NotFilled> {
        let input = input.trim();
        let words = split(input);
        let inputs = named_values(&wanted.inputs, &words)?;
        Ok(Self {
            wanted,
            format,
            input,
            folder,
            words,
            inputs,
        })
    }

    /// Returns the arguments, if the text has no place for them.
    pub(super) fn unused(&self) -> Option<&str> {
        (!self.wanted.is_any() && !self.input.is_empty()).then_some(self.input)
    }

    /// Fills in a text. `room` is what the texts of one call may still take.
    pub(super) fn fill(&self, text: &str, room: &mut Room) -> Result<String, NotFilled> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, place, after)) = next(rest, self.format) {
            room.add(&mut filled, &plain(before))?;
            match place {
                Place::Whole => room.add(&mut filled, self.input)?,
                Place::Word(number) => room.add(&mut filled, &self.word(number))?,
                Place::Variable(variable) => {
                    let value = self.variable(variable);
                    let value = value.unwrap_or_else(|| format!("${{{variable}}}"));
                    room.add(&mut filled, &value)?;
                }
            }
            rest = after;
        }
        room.add(&mut filled, &plain(rest))?;
        Ok(filled)
    }

    /// Fills in a shell command. What was typed is data there, one word for each argument.
    pub(super) fn fill_shell(&self, command: &str, room: &mut Room) -> Result<String, NotFilled> {
        let mut pieces = Vec::new();
        let mut rest = command;
        room.take(command.len())?;
        while let Some((before, place, after)) = next(rest, self.format) {
            pieces.push(Piece::Text(plain(before)));
            let takes = match place {
                Place::Whole => Takes::WordsAndOptions,
                Place::Word(_) | Place::Variable(_) => Takes::Words,
            };
            let (words, text) = match place {
                Place::Whole => {
                    room.take(self.input.len())?;
                    (self.words.clone(), self.input.to_owned())
                }
                Place::Word(number) => (vec![self.word(number)], self.word(number)),
                Place::Variable(variable) => {
                    let value = self.variable(variable).unwrap_or_default();
                    (vec![value.clone()], value)
                }
            };
            room.take(text.len())?;
            let words = words.into_iter().filter(|word| !word.is_empty());
            let words = words.collect();
            pieces.push(Piece::Typed { words, text, takes });
            rest = after;
        }
        pieces.push(Piece::Text(plain(rest)));
        quoting::quoted(command, &pieces).map_err(NotFilled::NotQuotable)
    }

    /// Returns the word with this number. The last word that the text uses takes all further ones.
    fn word(&self, number: usize) -> String {
        let from = self
            .words
            .get(number.saturating_sub(1)..)
            .unwrap_or_default();
        if number == self.wanted.last {
            return from.join(" ");
        }
        from.first().cloned().unwrap_or_default()
    }

    fn variable(&self, variable: &str) -> Option<String> {
        let Some(input) = input_of(variable) else {
            return folder_variable(variable, self.folder);
        };
        let mut values = self.inputs.iter();
        let value = values.find(|(name, _)| *name == input.name);
        value.map(|(_, value)| value.clone())
    }
}

/// Takes the backslashes before dollar signs out of a text of the author.
fn plain(text: &str) -> String {
    text.replace("\\$", "$")
}

/// Gives every named input its value. Words without a name go to the inputs that were not named, in
/// their order, and the last of these takes all further ones. If all inputs were named, a word belongs
/// to the name before it: `topic=a b c`.
fn named_values<'a>(
    inputs: &'a [NamedInput],
    words: &[String],
) -> Result<Vec<(&'a str, String)>, NotFilled> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let mut values: Vec<(&str, Option<String>)> = inputs
        .iter()
        .map(|input| (input.name.as_str(), None))
        .collect();
    // Each free word, with the place of the input that was named before it.
    let mut free: Vec<(&str, Option<usize>)> = Vec::new();
    let mut last = None;
    for word in words {
        let named = word.split_once('=').and_then(|(name, value)| {
            let at = values.iter().position(|(known, _)| *known == name)?;
            Some((at, value))
        });
        let Some((at, value)) = named else {
            free.push((word, last));
            continue;
        };
        last = Some(at);
        if let Some((_, slot)) = values.get_mut(at) {
            *slot = Some(value.to_owned());
        }
    }
    let mut open = values
        .iter_mut()
        .filter(|(_, value)| value.is_none())
        .peekable();
    let all_named = open.peek().is_none();
    let mut words = free.iter().map(|(word, _)| *word);
    while let Some((_, value)) = open.next() {
        *value = if open.peek().is_none() {
            let rest: Vec<&str> = words.by_ref().collect();
            (!rest.is_empty()).then(|| rest.join(" "))
        } else {
            words.next().map(str::to_owned)
        };
    }
    if all_named {
        for (word, before) in &free {
            let slot = before.and_then(|at| values.get_mut(at));
            let Some((_, Some(value))) = slot else {
                return Err(NotFilled::NoPlace((*word).to_owned()));
            };
            value.push(' ');
            value.push_str(word);
        }
    }
    let missing: Vec<NamedInput> = inputs
        .iter()
        .zip(&values)
        .filter(|(_, (_, value))| value.is_none())
        .map(|(input, _)| input.clone())
        .collect();
    if !missing.is_empty() {
        return Err(NotFilled::Missing(MissingInputs(missing)));
    }
    let values = values.into_iter();
    Ok(values
        .map(|(name, value)| (name, value.unwrap_or_default()))
        .collect())
}

/// Splits arguments into words. Quotes keep words together and are left out.
fn split(input: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in input.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || (letter == '\'' && word.is_none()) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
