//! Divides a text into the pieces within which tokens are sought: words with the space before them,
//! numbers of up to three digits, runs of other characters, and white space.

/// What a character is for the division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    /// White space within a line.
    Space,
    LineEnd,
    Other,
}

impl Class {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            '\n' | '\r' => Self::LineEnd,
            ' ' | '\t' | '\u{b}' | '\u{c}' => Self::Space,
            _ if character.is_ascii() => Self::Other,
            _ if character.is_alphabetic() => Self::Letter,
            _ if character.is_numeric() => Self::Digit,
            _ if character.is_whitespace() => Self::Space,
            _ => Self::Other,
        }
    }
}

/// Divides a text. The pieces together are the whole text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at_checked(first_piece(rest)?)?;
        rest = after;
        Some(piece)
    })
}

/// Returns the length of the first piece; `None` if there is no text.
fn first_piece(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let width = first.len_utf8();
    Some(match Class::of(first) {
        Class::Letter => run(text, 0, Class::Letter),
        Class::Digit => digits(text),
        Class::LineEnd => run(text, 0, Class::LineEnd),
        // A word takes one character before it along.
        Class::Other => match class_at(text, width) {
            Some(Class::Letter) => run(text, width, Class::Letter),
            _ => others(text, 0),
        },
        Class::Space => space(text, first),
    })
}

/// Returns the length of a piece that begins with white space.
fn space(text: &str, first: char) -> usize {
    let end = run(text, 0, Class::Space);
    let Some(next) = class_at(text, end) else {
        return end;
    };
    if next == Class::LineEnd {
        return run(text, end, Class::LineEnd);
    }
    let last = text.get(..end).and_then(|space| space.chars().next_back());
    let before_last = end - last.map_or(0, char::len_utf8);
    if before_last > 0 {
        // The last space belongs to what follows.
        return before_last;
    }
    match next {
        Class::Letter => run(text, end, Class::Letter),
        Class::Other if first == ' ' => others(text, end),
        _ => end,
    }
}

/// Returns where a run of other characters ends that begins here, with the line ends after it.
fn others(text: &str, from: usize) -> usize {
    let end = run(text, from, Class::Other);
    run(text, end, Class::LineEnd)
}

fn digits(text: &str) -> usize {
    let digits = text.chars().take(3);
    let digits = digits.take_while(|it| Class::of(*it) == Class::Digit);
    digits.map(char::len_utf8).sum()
}

/// Returns where the characters of one class end that begin here.
fn run(text: &str, from: usize, class: Class) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.find(|it: char| Class::of(it) != class);
    from + length.unwrap_or(rest.len())
}

fn class_at(text: &str, at: usize) -> Option<Class> {
    text.get(at..)?.chars().next().map(Class::of)
}
