//! Shows text so that nothing in it is hidden. Control characters would steer a terminal, and
//! invisible or reversing characters would make a text look like another one; all of them are written
//! as escapes such as `\x1b` and `\u{202e}`. So are marks that pile up on one letter: many of them
//! cover the lines around it.
//!
//! The daemon shows files to models and requests to people in this form, and `loop` everything that
//! it prints. This is the only place that knows which characters are hidden.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The longest run of blanks, and of empty lines, that a person is shown as it is. A longer run could
/// push the rest of a text out of sight.
const MOST_BLANKS: usize = 40;
const MOST_EMPTY_LINES: usize = 3;

/// How many combining marks in a row are shown as they are. No script needs more on one letter.
const MOST_MARKS: usize = 4;

/// Returns the text with escapes in the place of hidden characters. Tabs and line breaks stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut changed = false;
    let mut characters = text.chars().peekable();
    // The character before, if it is shown as it is.
    let mut before = None;
    let mut marks = 0;
    while let Some(character) = characters.next() {
        let ends_line = character == '\r' && characters.peek() == Some(&'\n');
        marks = if is_mark(character) { marks + 1 } else { 0 };
        let is_plain = !is_hidden(character) && marks <= MOST_MARKS;
        if is_plain || ends_line || joins(before, character) {
            shown.push(character);
            before = Some(character);
            continue;
        }
        changed = true;
        before = None;
        // Writing to a string cannot fail.
        if character.is_ascii() {
            write!(shown, "\\x{:02x}", u32::from(character)).ok();
        } else {
            write!(shown, "\\u{{{:x}}}", u32::from(character)).ok();
        }
    }
    if changed {
        Cow::Owned(shown)
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the text with the escapes of [`visible`] turned back into their characters; `None` if it
/// has none.
pub fn hidden_again(text: &str) -> Option<String> {
    let mut restored = String::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        restored.push_str(rest.get(..at)?);
        rest = rest.get(at..)?;
        if let Some((character, length)) = escape(rest) {
            restored.push(character);
            rest = rest.get(length..)?;
            changed = true;
        } else {
            restored.push('\\');
            rest = rest.get(1..)?;
        }
    }
    restored.push_str(rest);
    changed.then_some(restored)
}

/// Reads an escape at the start of a text; returns its character and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let (digits, length) = if let Some(after) = text.strip_prefix("\\x") {
        (after.get(..2)?, 4)
    } else {
        let after = text.strip_prefix("\\u{")?;
        let digits = after.get(..after.find('}')?)?;
        (digits, digits.len() + 4)
    };
    let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (is_hidden(character) || is_mark(character)).then_some((character, length))
}

/// Returns the text for a person: nothing is hidden, and no run of blanks or empty lines pushes the
/// rest out of sight.
pub fn for_person(text: &str) -> String {
    let text = visible(text);
    let mut shown = String::with_capacity(text.len());
    let mut empty: Vec<&str> = Vec::new();
    let end_of_empty = |shown: &mut String, empty: &mut Vec<&str>| {
        if empty.len() > MOST_EMPTY_LINES {
            // Writing to a string cannot fail.
            writeln!(shown, "[{} empty lines]", empty.len()).ok();
        } else {
            for line in empty.iter() {
                shown.push_str(line);
                shown.push('\n');
            }
        }
        empty.clear();
    };
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let is_last = lines.peek().is_none();
        if !is_last && line.len() <= MOST_BLANKS && line.trim().is_empty() {
            empty.push(line);
            continue;
        }
        end_of_empty(&mut shown, &mut empty);
        shorten_blanks(line, &mut shown);
        if !is_last {
            shown.push('\n');
        }
    }
    shown
}

/// Adds a line whose long runs of blanks are told by their length.
fn shorten_blanks(line: &str, shown: &mut String) {
    let mut rest = line;
    while let Some(start) = rest.find(char::is_whitespace) {
        let (before, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
        shown.push_str(before);
        let end = from
            .find(|character: char| !character.is_whitespace())
            .unwrap_or(from.len());
        let (blanks, after) = from.split_at_checked(end).unwrap_or((from, ""));
        let count = blanks.chars().count();
        if count > MOST_BLANKS {
            // Writing to a string cannot fail.
            write!(shown, " [{count} blanks] ").ok();
        } else {
            shown.push_str(blanks);
        }
        rest = after;
    }
    shown.push_str(rest);
}

/// Whether a character cannot be seen, or changes how others are seen.
fn is_hidden(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t')) || is_invisible(character)
}

/// Whether a character that cannot be seen is part of the one before it: in an emoji of several
/// characters, and in scripts that join their letters.
fn joins(before: Option<char>, character: char) -> bool {
    match character {
        '\u{200c}' | '\u{200d}' => before.is_some_and(|before| {
            let is_variant = matches!(before, '\u{fe0e}' | '\u{fe0f}');
            is_variant || !(before.is_ascii() || is_invisible(before))
        }),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before| {
            let is_keycap = before.is_ascii_digit() || matches!(before, '#' | '*');
            is_keycap || !(before.is_ascii() || is_invisible(before))
        }),
        _ => false,
    }
}

/// Whether a character is a mark that is drawn on the letter before it.
fn is_mark(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{591}'..='\u{5bd}'
            | '\u{610}'..='\u{61a}'
            | '\u{64b}'..='\u{65f}'
            | '\u{6d6}'..='\u{6dc}'
            | '\u{730}'..='\u{74a}'
            | '\u{e31}'
            | '\u{e34}'..='\u{e3a}'
            | '\u{e47}'..='\u{e4e}'
            | '\u{eb4}'..='\u{ebc}'
            | '\u{ec8}'..='\u{ece}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{302a}'..='\u{302f}'
            | '\u{3099}'..='\u{309a}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Whether a character is drawn as nothing, or reverses the text. White space does not count.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{16fe4}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_written_out_and_can_be_read_back() {
        let table = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[2Jgone", "\\x1b[2Jgone"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("over\rwritten", "over\\x0dwritten"),
            ("crlf\r\n", "crlf\r\n"),
            ("\u{e0041}", "\\u{e0041}"),
            ("Zürich 東京", "Zürich 東京"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("1\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
            ("é\u{200d}\u{200d}", "é\u{200d}\\u{200d}"),
            ("e\u{301}\u{323}", "e\u{301}\u{323}"),
            (
                "e\u{301}\u{301}\u{301}\u{301}\u{301}f",
                "e\u{301}\u{301}\u{301}\u{301}\\u{301}f",
            ),
        ];
        for (text, wanted) in table {
            let shown = visible(text);
            assert_eq!(shown, wanted);
            let back = hidden_again(&shown);
            assert_eq!(back.as_deref().unwrap_or(&shown), text);
        }
        assert_eq!(hidden_again("\\u{41} \\x41 \\n \\"), None);
        assert_eq!(hidden_again("\\u{zz} \\u{ \\x1").as_deref(), None);
    }

    #[test]
    fn characters_that_draw_nothing_are_written_out() {
        let nothing = [
            '\u{115f}',
            '\u{1160}',
            '\u{2800}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{13430}',
            '\u{16fe4}',
            '\u{1bca0}',
            '\u{1d159}',
            '\u{1d173}',
        ];
        for character in nothing {
            let text = format!("rm{character}x");
            let shown = format!("rm\\u{{{:x}}}x", u32::from(character));
            assert_eq!(visible(&text), shown);
            assert_eq!(for_person(&text), shown);
            assert_eq!(hidden_again(&shown), Some(text));
        }
    }

    #[test]
    fn padding_does_not_push_text_out_of_sight() {
        let blanks = " ".repeat(500);
        let text = format!("ls{blanks}; rm x");
        assert_eq!(for_person(&text), "ls [500 blanks] ; rm x");
        let text = format!("ls{}rm x", "\n".repeat(100));
        assert_eq!(for_person(&text), "ls\n[99 empty lines]\nrm x");
        for same in ["fn a() {\n\n    b();\n}\n", "", "\n", "a  b", "x\n"] {
            assert_eq!(for_person(same), same);
        }
    }
}
