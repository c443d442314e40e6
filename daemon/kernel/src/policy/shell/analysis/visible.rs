//! Shows a person what a command really is: what cannot be seen, what turns text around and what
//! looks like another letter is written out. Called by `analysis`. Pure.

use crate::policy::shell::plain::is_invisible;

/// How many characters are named by their number.
const NAMED: usize = 5;

/// Warns of what is not what it seems, with the whole command written out so that nothing hides.
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

/// Writes a text so that every character can be seen and only one text is written so.
pub(super) fn written_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other if is_hidden(other) || is_lookalike(other) => {
                // `\u{1b}`, as Rust writes it.
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

/// What nobody sees, what turns text around, and spaces that bash takes for letters.
fn is_hidden(character: char) -> bool {
    is_invisible(character)
        || (character.is_control() && !matches!(character, '\n' | '\t'))
        || (character.is_whitespace() && !matches!(character, ' ' | '\n' | '\t'))
}

/// Letters of other scripts that stand for Latin ones in made-up names.
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
