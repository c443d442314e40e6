//! Rules about shell commands as people write them: `rm -rf`, `git push:*`.

use super::word::{Count, Word};

/// A rule: a program, and words that have to be among its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(super) program: String,
    pub(super) words: Vec<String>,
    /// Whether the text could be read as words. If not, the words are a guess.
    pub(super) is_certain: bool,
}

/// Why a rule cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error(
        "it names no command; name a program, such as `rm`, or a program and words, such as `git push`"
    )]
    Empty,
    #[error("a quote is not closed; close it, or leave the quotes out")]
    Quote,
    #[error("the quotes make one word of it, and no program has that name; leave them out")]
    QuotedProgram,
    #[error("a comma parts nothing in a rule; write a rule of its own for each command")]
    Several,
    #[error(
        "`{0}` means something to the shell, and a rule names one command in plain words; quote it if it is meant literally, and write a rule of its own for each command"
    )]
    Operator(char),
    #[error(
        "it begins with an assignment; begin with the program, which is denied with any environment"
    )]
    Assignment,
    #[error(
        "`*` stands for the program, which would be every command; leave the argument out to deny all"
    )]
    AnyProgram,
    #[error(
        "`{0}` is a pattern that a rule does not know; spell the word out, or end the rule with `:*`"
    )]
    Pattern(char),
}

impl Rule {
    /// Reads the argument of a rule.
    pub(crate) fn parse(argument: &str) -> Result<Self, RuleError> {
        let text = argument.strip_suffix(":*").unwrap_or(argument);
        let mut words = split(text)?.into_iter();
        let program = words.next().ok_or(RuleError::Empty)?;
        if program.is_empty() {
            return Err(RuleError::Empty);
        }
        if program.contains('*') {
            return Err(RuleError::AnyProgram);
        }
        if program.contains('=') {
            return Err(RuleError::Assignment);
        }
        if program.contains(char::is_whitespace) && !program.contains('/') {
            return Err(RuleError::QuotedProgram);
        }
        let words: Vec<String> = words.collect();
        // `-Wl,-x` is one word, `rm -rf, curl` are two commands.
        if program.contains(',') || words.iter().any(|word| word.ends_with(',')) {
            return Err(RuleError::Several);
        }
        let is_pattern = |word: &String| {
            let star = word.starts_with('-').then_some('*');
            word.chars()
                .find(|&c| matches!(c, '?' | '[') || Some(c) == star)
        };
        let mut all = std::iter::once(&program).chain(&words);
        if let Some(mark) = all.find_map(is_pattern) {
            return Err(RuleError::Pattern(mark));
        }
        Ok(Self {
            program,
            // A single star stands for any word.
            words: words.into_iter().filter(|word| word != "*").collect(),
            is_certain: true,
        })
    }

    /// Returns the rule or, if it cannot be understood, its most likely meaning.
    pub(super) fn guess(argument: &str) -> Option<Self> {
        Self::parse(argument).ok().or_else(|| {
            let border = |c: char| c.is_whitespace() || super::BORDERS.contains(c) || c == '\\';
            let mut words = argument
                .split(border)
                .filter(|word| !word.is_empty())
                .map(str::to_owned);
            Some(Self {
                program: words.next()?,
                words: words.collect(),
                is_certain: false,
            })
        })
    }
}

/// Splits a rule into words. Quotes join, as in a shell.
fn split(text: &str) -> Result<Vec<String>, RuleError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        match next {
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(RuleError::Quote),
                        Some(end) if end == quote => break,
                        Some(inner) => word.push(inner),
                    }
                }
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '$' | '\\' => {
                return Err(RuleError::Operator(next));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Returns a word of a rule as a pattern, in which a star stands for anything.
pub(super) fn pattern(word: &str) -> Word {
    let mut pattern = Word::default();
    for (place, piece) in word.split('*').enumerate() {
        if place > 0 {
            pattern.push_any(Count::One);
        }
        if !piece.is_empty() {
            pattern.push_str(piece);
        }
    }
    pattern
}

#[cfg(test)]
mod tests;
