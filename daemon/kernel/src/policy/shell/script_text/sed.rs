//! Reads a program of sed just far enough to show that it only edits the text that passes through
//! it.
//!
//! Versions of sed differ: a label ends at a blank, at `;`, at `}` or only at the end of its line,
//! and a slash in brackets ends a regular expression or does not. A program is plain only if every
//! reading of it is. No reading may be at another place than the others behind the end of a line, so
//! an expression that goes over the end of a line without a backslash is not plain.

use super::Word;

/// How many labels, read in several ways, a program may have.
const MAX_READINGS: usize = 64;

/// Whether a call of sed may run something, or read or write a file that its program names.
pub(in super::super) fn sed_runs(arguments: &[Word]) -> bool {
    let Some(call) = Call::read(arguments) else {
        return true;
    };
    let mut scripts = call.scripts.clone();
    // Where options may not follow operands, the first operand is the program all the same.
    if (scripts.is_empty() && !call.has_file) || call.begins_with_operand {
        let Some(operand) = call.operands.first() else {
            return false;
        };
        match operand.text() {
            Some(text) => scripts.push(text),
            None => return true,
        }
    }
    let joined = scripts.join("\n");
    let parts = || scripts.iter().all(|script| is_plain_sed(script));
    !(is_plain_sed(&joined) && parts())
}

/// The words of a call, as far as they matter here.
#[derive(Default)]
struct Call<'w> {
    scripts: Vec<&'w str>,
    /// Whether a program is in a file, whose contents are not judged.
    has_file: bool,
    operands: Vec<&'w Word>,
    /// Whether an operand stands before an option that names a program.
    begins_with_operand: bool,
}

impl<'w> Call<'w> {
    /// Returns `None` if it is not certain which words are programs.
    fn read(arguments: &'w [Word]) -> Option<Self> {
        let mut call = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.text() else {
                if word.may_be_option() {
                    return None;
                }
                call.operands.push(word);
                continue;
            };
            if text == "--" {
                call.operands.extend(words);
                break;
            }
            if let Some(long) = text.strip_prefix("--") {
                call.long(long, &mut words)?;
            } else if text.len() > 1 && text.starts_with('-') {
                call.letters(text, &mut words)?;
            } else {
                call.operands.push(word);
            }
        }
        Some(call)
    }

    /// Reads a long option. Its beginning stands for the whole of it.
    fn long(&mut self, text: &'w str, words: &mut std::slice::Iter<'w, Word>) -> Option<()> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let mut next = || value.or_else(|| words.next().and_then(Word::text));
        if "expression".starts_with(name) {
            let script = next()?;
            self.script(script);
        } else if "file".starts_with(name) {
            next()?;
            self.file();
        } else if "line-length".starts_with(name) {
            next()?;
        }
        Some(())
    }

    fn letters(&mut self, text: &'w str, words: &mut std::slice::Iter<'w, Word>) -> Option<()> {
        let mut letters = text.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            let attached = Some(letters.as_str()).filter(|rest| !rest.is_empty());
            let mut value = || attached.or_else(|| words.next().and_then(Word::text));
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' => {}
                // The rest is the ending of the backup.
                'i' => return Some(()),
                'e' => {
                    let script = value()?;
                    self.script(script);
                    return Some(());
                }
                'f' => {
                    value()?;
                    self.file();
                    return Some(());
                }
                // Not every version takes a number here.
                'l' => {
                    let number = value()?;
                    let is_number = number.chars().all(|it| it.is_ascii_digit());
                    return is_number.then_some(());
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn script(&mut self, script: &'w str) {
        self.begins_with_operand |= !self.operands.is_empty();
        self.scripts.push(script);
    }

    fn file(&mut self) {
        self.begins_with_operand |= !self.operands.is_empty();
        self.has_file = true;
    }
}

/// Whether a sed program only edits the text that passes through it: no `e`, no `w`, no file.
pub(super) fn is_plain_sed(script: &str) -> bool {
    // Where a reading goes on, as the rest of the program.
    let mut starts = vec![script];
    let mut at = 0;
    while let Some(rest) = starts.get(at).copied() {
        if starts.len() > MAX_READINGS {
            return false;
        }
        at += 1;
        let mut sed = Sed {
            rest,
            others: Vec::new(),
        };
        if !sed.is_plain() {
            return false;
        }
        for other in sed.others {
            let is_new = !starts.iter().any(|start| start.len() == other.len());
            if is_new {
                starts.push(other);
            }
        }
    }
    true
}

/// One reading of a program.
struct Sed<'t> {
    rest: &'t str,
    /// Where other versions of sed go on.
    others: Vec<&'t str>,
}

impl<'t> Sed<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    fn skip(&mut self, characters: &str) {
        self.rest = self
            .rest
            .trim_start_matches(|character| characters.contains(character));
    }

    fn is_plain(&mut self) -> bool {
        loop {
            self.skip(" \t\n;}");
            if self.rest.is_empty() {
                return true;
            }
            if !self.address() {
                return false;
            }
            self.skip(" \t!");
            let is_plain = match self.bump() {
                Some('{') => true,
                Some(
                    'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'z' | '='
                    | 'F',
                ) => self.ends(),
                Some('q' | 'Q' | 'l' | 'L') => {
                    self.skip(" \t0123456789");
                    self.ends()
                }
                Some('b' | 't' | 'T' | ':') => self.label(),
                Some('#' | 'a' | 'i' | 'c') => {
                    self.rest = self.after("\n");
                    true
                }
                Some('s') => {
                    let is_whole = self.two_texts();
                    self.skip("gpiImM0123456789");
                    is_whole && self.ends()
                }
                Some('y') => self.two_texts() && self.ends(),
                _ => false,
            };
            if !is_plain {
                return false;
            }
        }
    }

    /// Whether a command ends here.
    fn ends(&mut self) -> bool {
        self.skip(" \t");
        matches!(self.peek(), None | Some(';' | '\n' | '}' | '#'))
    }

    /// Reads a label. What may come after it in one version may belong to it in another.
    fn label(&mut self) -> bool {
        self.skip(" \t");
        self.rest = self
            .rest
            .trim_start_matches(|it: char| it.is_ascii_alphanumeric() || "_.-".contains(it));
        let other_ends = [self.after(" \t;\n"), self.after("\n")];
        self.others.extend(other_ends);
        self.ends()
    }

    /// Returns what comes from the first of these characters on.
    fn after(&self, ends: &str) -> &'t str {
        let end = self.rest.find(|c| ends.contains(c));
        self.rest
            .get(end.unwrap_or(self.rest.len())..)
            .unwrap_or_default()
    }

    /// Reads one address or two: numbers, `$`, `/regex/`, `+3`, `~4`.
    fn address(&mut self) -> bool {
        loop {
            self.skip(" \t0123456789$,+~");
            match self.peek() {
                Some('/') => {
                    self.bump();
                    if !self.delimited('/') {
                        return false;
                    }
                    self.skip("IM");
                }
                Some('\\') => {
                    self.bump();
                    let Some(mark) = self.bump() else {
                        return false;
                    };
                    if !self.delimited(mark) {
                        return false;
                    }
                    self.skip("IM");
                }
                _ => return true,
            }
        }
    }

    /// Reads the mark and the two texts of `s` and `y`.
    fn two_texts(&mut self) -> bool {
        let Some(mark) = self.bump() else {
            return false;
        };
        self.delimited(mark) && self.delimited(mark)
    }

    /// Reads up to the mark. Versions differ about a mark that may be in brackets, so the program is
    /// not plain then.
    fn delimited(&mut self, mark: char) -> bool {
        if !mark.is_ascii_punctuation() || matches!(mark, '\\' | '[' | ']' | '^') {
            return false;
        }
        let mut in_brackets = false;
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    // In brackets a backslash may be an ordinary character.
                    let escaped = self.bump();
                    let class = [":", ".", "="].iter().any(|it| self.rest.starts_with(it));
                    if in_brackets && escaped == Some('[') && class {
                        return false;
                    }
                }
                '\n' => return false,
                _ if next == mark => return !in_brackets,
                '[' if !in_brackets => {
                    in_brackets = true;
                    // The first `]` is an ordinary character.
                    self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
                    self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
                }
                '[' => {
                    if let Some(kind @ (':' | '.' | '=')) = self.peek()
                        && kind != mark
                    {
                        self.class(kind);
                    }
                }
                ']' => in_brackets = false,
                _ => {}
            }
        }
        false
    }

    /// Reads the rest of `[:alpha:]` inside brackets, if it is one.
    fn class(&mut self, kind: char) {
        let inside = self.rest.get(1..).unwrap_or_default();
        let end = inside.find(|it: char| !it.is_ascii_alphanumeric());
        let rest = end.and_then(|end| inside.get(end..));
        let rest = rest.and_then(|rest| rest.strip_prefix(kind)?.strip_prefix(']'));
        self.rest = rest.unwrap_or(self.rest);
    }
}
