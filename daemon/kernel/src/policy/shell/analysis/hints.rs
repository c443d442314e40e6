//! Hints for a person or a policy about what a command may touch.
//!
//! Unlike the plain subset, hints are guesses over any text. They include too much rather than too
//! little.

use super::Syntax;

/// How many hints of one kind are given. A longer list would not help.
const MAX_HINTS: usize = 100;

/// Splits a command into words: exactly if it is plain, otherwise at every metacharacter.
pub(super) fn words(command: &str, syntax: &Syntax) -> Vec<String> {
    match syntax {
        Syntax::Plain(commands) => commands
            .iter()
            .flat_map(|argv| argv.iter().skip(1))
            .cloned()
            .collect(),
        Syntax::Opaque => command
            .split(|character: char| {
                character.is_whitespace() || "'\"`$(){}<>|&;\\,".contains(character)
            })
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

/// Picks the words, and the values of options, that look like paths.
pub(super) fn paths(words: &[String]) -> Vec<String> {
    unique(words.iter().filter_map(|word| {
        let value = match word.split_once('=') {
            Some((_, value)) => value,
            None => word,
        };
        looks_like_path(value).then_some(value)
    }))
}

/// Picks the URLs out of words.
pub(super) fn urls(words: &[String]) -> Vec<String> {
    unique(words.iter().filter_map(|word| {
        let scheme_end = word.find("://")?;
        let before = word.get(..scheme_end)?;
        let scheme_start = before
            .rfind(|character: char| !character.is_ascii_alphanumeric() && character != '+')
            .map_or(0, |place| place + 1);
        word.get(scheme_start..)
    }))
}

/// Says whether output may go to a file other than /dev/null.
pub(super) fn writes_by_redirection(command: &str, syntax: &Syntax) -> bool {
    if matches!(syntax, Syntax::Plain(_)) {
        return false;
    }
    // Quoted text can be skipped only if nothing inside quotes is evaluated.
    let text = if command.contains("$(") || command.contains('`') || command.contains("<<") {
        command.to_owned()
    } else {
        without_quoted(command)
    };
    text.split('>').skip(1).any(|after| {
        let after = after.trim_start_matches('|');
        match after.strip_prefix('&') {
            Some(target) => !is_descriptor(target),
            None => !is_null(after),
        }
    })
}

fn looks_like_path(word: &str) -> bool {
    if word.is_empty() || word.starts_with('-') || word.contains("://") {
        return false;
    }
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension
                .chars()
                .all(|character| character.is_ascii_alphanumeric())
            && extension.contains(|character: char| character.is_ascii_alphabetic())
    });
    word.contains('/') || word.starts_with(['~', '.']) || has_extension
}

fn unique<'a>(found: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for word in found {
        if unique.len() == MAX_HINTS {
            break;
        }
        if !unique.iter().any(|known| known == word) {
            unique.push(word.to_owned());
        }
    }
    unique
}

/// Returns the text without its quoted parts, or the whole text if a quote is not closed.
fn without_quoted(command: &str) -> String {
    let mut bare = String::new();
    let mut characters = command.chars();
    while let Some(next) = characters.next() {
        match next {
            '\\' => {
                characters.next();
            }
            '\'' | '"' => loop {
                match characters.next() {
                    None => return command.to_owned(),
                    Some('\\') if next == '"' => {
                        characters.next();
                    }
                    Some(inner) if inner == next => break,
                    Some(_) => {}
                }
            },
            other => bare.push(other),
        }
    }
    bare
}

/// Whether a redirection goes to a descriptor and not to a file, as in `>&2` and `>&-`.
fn is_descriptor(target: &str) -> bool {
    let target = target.trim_start_matches(' ');
    let end = target
        .find(|character: char| !character.is_ascii_digit() && character != '-')
        .unwrap_or(target.len());
    let (descriptor, after) = target.split_at_checked(end).unwrap_or((target, ""));
    !descriptor.is_empty() && is_word_end(after)
}

fn is_null(target: &str) -> bool {
    target
        .trim_start_matches(' ')
        .strip_prefix("/dev/null")
        .is_some_and(is_word_end)
}

fn is_word_end(after: &str) -> bool {
    after
        .chars()
        .next()
        .is_none_or(|next| " \t\n;|&)<>".contains(next))
}
