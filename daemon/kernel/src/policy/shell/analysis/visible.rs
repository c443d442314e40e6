//! Shows a person what a command really contains. Invisible characters, characters that reverse the
//! text and letters that look like others are written as escapes. `analysis` calls this module.

use crate::policy::shell::plain::is_invisible;

/// How many characters are named by their code point.
const NAMED: usize = 5;

/// Warns of characters that mislead, and shows the whole command with escapes so that nothing is
/// hidden.
pub(super) fn warning(command: &str) -> Option<String> {
    let hidden: Vec<char> = command.chars().filter(|c| is_hidden(*c)).collect();
    let alike: Vec<char> = words(command)
        .filter(|word| word.contains(|c: char| c.is_ascii_alphabetic()))
        .flat_map(|word| word.chars().filter(|c| is_lookalike(*c)))
        .collect();
    let what = match (hidden.is_empty(), alike.is_empty()) {
        (true, true) => return None,
        (false, _) => format!(
            "The command contains characters that cannot be seen ({}); it may not do what it seems to.",
            numbers(&hidden)
        ),
        (true, false) => format!(
            "The command contains letters that look like others ({}); it may not do what it seems to.",
            numbers(&alike)
        ),
    };
    Some(format!("{what} Written out: {}", written_out(command)))
}

/// Writes a text so that every character can be seen. Different texts have different results.
pub(super) fn written_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other if is_hidden(other) || is_lookalike(other) => {
                // The form is Rust's, such as `\u{1b}`.
                out.extend(other.escape_unicode());
            }
            other => out.push(other),
        }
    }
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`$(){}<>|&;=,:/".contains(c))
}

fn numbers(characters: &[char]) -> String {
    let mut named: Vec<String> = Vec::new();
    for character in characters {
        let name = format!("U+{:04X}", u32::from(*character));
        if named.len() < NAMED && !named.contains(&name) {
            named.push(name);
        }
    }
    named.join(", ")
}

/// Whether a character is invisible, reverses the text, or is a space that bash takes for a letter.
fn is_hidden(character: char) -> bool {
    is_invisible(character)
        || (character.is_control() && !matches!(character, '\n' | '\t'))
        || (character.is_whitespace() && !matches!(character, ' ' | '\n' | '\t'))
}

/// Whether a letter of another script can pass for a Latin one.
fn is_lookalike(character: char) -> bool {
    matches!(
        character,
        '\u{370}'..='\u{3ff}'
            | '\u{400}'..='\u{52f}'
            | '\u{531}'..='\u{587}'
            | '\u{13a0}'..='\u{13ff}'
            | '\u{2010}'..='\u{2015}'
            | '\u{2212}'
            | '\u{ff01}'..='\u{ff5e}'
            | '\u{1d400}'..='\u{1d7ff}'
    )
}

#[cfg(test)]
mod tests;
