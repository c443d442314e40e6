//! The patterns of LIKE and GLOB. A match that takes long asks again and again whether it may go on.

/// After how many steps a match asks.
const STEPS: usize = 4096;

/// How a pattern is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `%` and `_`; the case of ASCII letters does not count.
    Like { escape: Option<char> },
    /// `*`, `?` and `[…]`.
    Glob,
}

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    folds_case: bool,
}

#[derive(Debug)]
enum Piece {
    /// Any number of letters.
    Many,
    /// One letter.
    One,
    Is(char),
    /// One of these letters, or none of them.
    Set {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
    /// No letter: a set without an end, or an escape without a letter.
    Nothing,
}

impl Pattern {
    pub(super) fn of(pattern: &str, syntax: Syntax) -> Self {
        let letters: Vec<char> = pattern.chars().collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(letter) = letters.get(at).copied() {
            at += 1;
            pieces.push(match (syntax, letter) {
                (Syntax::Like { escape }, letter) if escape == Some(letter) => {
                    let meant = letters.get(at).copied();
                    at += 1;
                    meant.map_or(Piece::Nothing, |meant| Piece::Is(fold(meant)))
                }
                (Syntax::Like { .. }, '%') | (Syntax::Glob, '*') => Piece::Many,
                (Syntax::Like { .. }, '_') | (Syntax::Glob, '?') => Piece::One,
                (Syntax::Glob, '[') => {
                    let rest = letters.get(at..).unwrap_or_default();
                    let (set, taken) = set(rest);
                    at += taken;
                    set
                }
                (Syntax::Like { .. }, letter) => Piece::Is(fold(letter)),
                (Syntax::Glob, letter) => Piece::Is(letter),
            });
        }
        Self {
            pieces,
            folds_case: matches!(syntax, Syntax::Like { .. }),
        }
    }

    /// Returns whether the whole text has this form; `None` if `over` said that it must not go on.
    pub(super) fn matches(&self, text: &str, over: impl Fn() -> bool) -> Option<bool> {
        let letters: Vec<char> = text.chars().collect();
        let (mut piece, mut letter, mut steps) = (0, 0, 0_usize);
        // The last piece that takes any number of letters, and where what follows it is tried next.
        let mut many: Option<(usize, usize)> = None;
        while let Some(next) = letters.get(letter).copied() {
            steps += 1;
            if steps.is_multiple_of(STEPS) && over() {
                return None;
            }
            match self.pieces.get(piece) {
                Some(Piece::Many) => {
                    piece += 1;
                    many = Some((piece, letter));
                }
                Some(wanted) if wanted.takes(if self.folds_case { fold(next) } else { next }) => {
                    piece += 1;
                    letter += 1;
                }
                Some(_) | None => {
                    let Some((after, from)) = many else {
                        return Some(false);
                    };
                    piece = after;
                    letter = from + 1;
                    many = Some((after, letter));
                }
            }
        }
        let mut rest = self.pieces.iter().skip(piece);
        Some(rest.all(|piece| matches!(piece, Piece::Many)))
    }
}

impl Piece {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Many | Self::Nothing => false,
            Self::One => true,
            Self::Is(wanted) => *wanted == letter,
            Self::Set { ranges, negated } => {
                let mut ranges = ranges.iter();
                ranges.any(|(from, to)| (*from..=*to).contains(&letter)) != *negated
            }
        }
    }
}

fn fold(letter: char) -> char {
    letter.to_ascii_lowercase()
}

/// Reads a set after its `[`; returns it with the number of letters that it has.
fn set(letters: &[char]) -> (Piece, usize) {
    let negated = letters.first() == Some(&'^');
    let begin = usize::from(negated);
    let mut ranges = Vec::new();
    let mut at = begin;
    while let Some(letter) = letters.get(at).copied() {
        if letter == ']' && at > begin {
            return (Piece::Set { ranges, negated }, at + 1);
        }
        let to = letters.get(at + 2).copied();
        match (letters.get(at + 1), to) {
            (Some('-'), Some(to)) if to != ']' => {
                ranges.push((letter, to));
                at += 3;
            }
            _ => {
                ranges.push((letter, letter));
                at += 1;
            }
        }
    }
    (Piece::Nothing, letters.len())
}
