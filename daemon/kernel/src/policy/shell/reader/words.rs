//! Words: quotes, escapes and expansions.

use super::{Doubt, End, IS_ONE_WORD, MAX_ATTEMPTS, MAX_DEPTH, Read, Reader};
use crate::policy::shell::word::{Count, Word};

/// Whether an expansion is inside double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    Double,
}

impl Quoting {
    fn count(self) -> Count {
        match self {
            Self::Bare => Count::Several,
            Self::Double => Count::One,
        }
    }
}

impl Reader<'_, '_> {
    /// Reads the next word.
    pub(super) fn word(&mut self) -> Read<Word> {
        let mut word = Word::default();
        let mut braces = Vec::new();
        if self.cursor.peek() == Some('~') {
            self.cursor
                .take_while(|c| !" \t\n;&|()<>/\"'$`\\:".contains(c));
            word.push_variable(Count::One);
        }
        while self.cursor.at_word() {
            let rest = self.cursor.rest();
            if rest.starts_with("<(") || rest.starts_with(">(") {
                self.cursor.bump();
                self.cursor.bump();
                self.list(End::Parenthesis)?;
                word.push_gap(Count::One);
                continue;
            }
            let Some(next) = self.cursor.bump() else {
                break;
            };
            match next {
                '\\' => match self.cursor.bump() {
                    Some('\n') => {}
                    Some(escaped) => word.push(escaped),
                    None => word.push('\\'),
                },
                '\'' => {
                    let text = self.cursor.take_while(|c| c != '\'');
                    word.push_str(text);
                    if !self.cursor.eat("'") {
                        return Err(Doubt);
                    }
                }
                '"' => self.double_quoted(&mut word)?,
                '$' => self.dollar(&mut word, Quoting::Bare)?,
                '`' => self.backquoted(&mut word, Quoting::Bare)?,
                '[' if !self.cursor.closes_bracket() => word.push('['),
                '*' | '?' | '[' => word.push_gap(Count::Several),
                '{' if self.cursor.peek() == Some('}') => {
                    self.cursor.bump();
                    word.push_str("{}");
                }
                '{' => {
                    braces.push((word.mark(), self.cursor.rest()));
                    word.push('{');
                }
                '}' => match braces.pop() {
                    // `{a}` without a comma or dots is an ordinary word.
                    Some((mark, inside)) => {
                        let length = inside.len() - self.cursor.rest().len();
                        let inside = inside.get(..length).unwrap_or_default();
                        if inside.contains(',') || inside.contains("..") {
                            word.blur_from(mark, inside);
                        } else {
                            word.push('}');
                        }
                    }
                    None => word.push('}'),
                },
                '=' if self.cursor.peek() == Some('(') => {
                    // `declare a=(…)` is valid. Elsewhere bash reports an error.
                    if word.text().is_none_or(str::is_empty) {
                        return Err(Doubt);
                    }
                    self.array()?;
                    word.push_any(Count::Several);
                }
                '=' | ':' if self.cursor.peek() == Some('~') => {
                    word.push(next);
                    word.push_variable(Count::One);
                    self.cursor
                        .take_while(|c| !" \t\n;&|()<>/\"'$`\\:".contains(c));
                }
                other => word.push(other),
            }
        }
        Ok(word)
    }

    /// Reads up to the closing double quote.
    fn double_quoted(&mut self, word: &mut Word) -> Read {
        // An empty quoted word is a word, too.
        word.push_str("");
        loop {
            match self.cursor.bump() {
                None => return Err(Doubt),
                Some('"') => return Ok(()),
                Some('\\') => match self.cursor.bump() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => word.push(escaped),
                    Some(other) => {
                        word.push('\\');
                        word.push(other);
                    }
                    None => return Err(Doubt),
                },
                Some('$') => self.dollar(word, Quoting::Double)?,
                Some('`') => self.backquoted(word, Quoting::Double)?,
                Some(other) => word.push(other),
            }
        }
    }

    /// Reads the expansions in the text of a here-document.
    pub(super) fn expanded(&mut self, body: &str) -> Word {
        let mut word = Word::default();
        let mut reader = Reader::new(body, self.script, self.depth + 1);
        let mut doubt = self.depth >= MAX_DEPTH;
        while let Some(next) = reader.cursor.bump() {
            let read = match next {
                '\\' => {
                    match reader.cursor.bump() {
                        Some('\n') | None => {}
                        Some(escaped @ ('$' | '`' | '\\')) => word.push(escaped),
                        Some(other) => {
                            word.push('\\');
                            word.push(other);
                        }
                    }
                    Ok(())
                }
                '$' => reader.dollar(&mut word, Quoting::Double),
                '`' => reader.backquoted(&mut word, Quoting::Double),
                other => {
                    word.push(other);
                    Ok(())
                }
            };
            if read.is_err() || doubt {
                doubt = true;
                break;
            }
        }
        doubt |= !reader.pending.is_empty();
        self.script.doubt |= doubt;
        word
    }

    /// Reads the text after a `$`.
    fn dollar(&mut self, word: &mut Word, quoting: Quoting) -> Read {
        if self.cursor.rest().starts_with("((") {
            let before = self.cursor;
            self.cursor.eat("((");
            if self.arithmetic()? {
                word.push_any(quoting.count());
                return Ok(());
            }
            self.cursor = before;
        }
        match self.cursor.peek() {
            Some('(') => {
                self.cursor.bump();
                self.list(End::Parenthesis)?;
                word.push_output(quoting.count());
            }
            Some('{') => {
                self.cursor.bump();
                let count = self.braced(quoting)?;
                word.push_variable(count);
            }
            Some('[') => {
                self.cursor.bump();
                self.until(']', '[')?;
                self.script.calculates = true;
                word.push_any(quoting.count());
            }
            Some('\'') if quoting == Quoting::Bare => {
                self.cursor.bump();
                loop {
                    match self.cursor.bump() {
                        None => return Err(Doubt),
                        Some('\'') => break,
                        Some('\\') => {
                            self.cursor.bump();
                        }
                        Some(_) => {}
                    }
                }
                word.push_variable(Count::One);
            }
            Some('"') if quoting == Quoting::Bare => {
                self.cursor.bump();
                self.double_quoted(word)?;
                // The translation of the text may differ.
                word.push_any(Count::One);
            }
            Some('@') => {
                self.cursor.bump();
                word.push_variable(Count::Several);
            }
            Some(first) if first.is_ascii_digit() || "*#?$!-".contains(first) => {
                self.cursor.bump();
                word.push_variable(quoting.count());
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                let name = self
                    .cursor
                    .take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                word.push_variable(if IS_ONE_WORD.contains(&name) {
                    Count::One
                } else {
                    quoting.count()
                });
            }
            _ => word.push('$'),
        }
        Ok(())
    }

    /// Reads `${…}` after its brace.
    fn braced(&mut self, quoting: Quoting) -> Read<Count> {
        let start = self.cursor.rest();
        // Newer shells run `${ command; }`.
        if start.starts_with([' ', '\t', '\n', '|', '(']) {
            return Err(Doubt);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Doubt);
        }
        let mut sink = Word::default();
        loop {
            match self.cursor.bump() {
                None => return Err(Doubt),
                Some('}') => break,
                Some('\\') => {
                    self.cursor.bump();
                }
                // Inside double quotes, the meaning of a single quote depends on its position.
                Some('\'') if quoting == Quoting::Double => return Err(Doubt),
                Some('\'') => {
                    self.cursor.take_while(|c| c != '\'');
                    if self.cursor.bump().is_none() {
                        return Err(Doubt);
                    }
                }
                Some('"') => self.double_quoted(&mut sink)?,
                Some('$') => self.dollar(&mut sink, quoting)?,
                Some('`') => self.backquoted(&mut sink, quoting)?,
                Some('<' | '>') if self.cursor.peek() == Some('(') && quoting == Quoting::Bare => {
                    self.cursor.bump();
                    self.list(End::Parenthesis)?;
                }
                Some(_) => {}
            }
        }
        self.depth -= 1;
        let end = start.len() - self.cursor.rest().len();
        let inside = start.get(..end).unwrap_or_default();
        if inside.ends_with("@P}") {
            // The value is expanded as a prompt, which may contain commands.
            self.script.doubt = true;
        }
        // `${!x}` takes the value of `x` for a name, which may have a subscript.
        self.script.calculates |= inside.starts_with('!');
        if inside.contains([':', '[']) {
            // Offsets and subscripts are expressions.
            self.script.calculates |= inside.contains('[') || is_offset(inside);
        }
        // `${a[@]}` and `$@` become several words even inside quotes.
        let name = inside.strip_suffix('}').unwrap_or(inside);
        Ok(if IS_ONE_WORD.contains(&name) {
            Count::One
        } else if inside.contains('@') {
            Count::Several
        } else {
            quoting.count()
        })
    }

    /// Reads the text between backquotes as a text of its own.
    fn backquoted(&mut self, word: &mut Word, quoting: Quoting) -> Read {
        let mut text = String::new();
        loop {
            match self.cursor.bump() {
                None => return Err(Doubt),
                Some('`') => break,
                Some('\\') => match self.cursor.bump() {
                    Some(escaped @ ('$' | '`' | '\\')) => text.push(escaped),
                    Some('"') if quoting == Quoting::Double => text.push('"'),
                    Some(other) => {
                        text.push('\\');
                        text.push(other);
                    }
                    None => return Err(Doubt),
                },
                Some(other) => text.push(other),
            }
        }
        self.nested(&text);
        word.push_output(quoting.count());
        Ok(())
    }

    /// Reads an arithmetic expression after its `((`. If it is not one, returns false and reads
    /// nothing.
    pub(super) fn arithmetic(&mut self) -> Read<bool> {
        let before = (self.cursor, self.depth, self.pending.len());
        let kept = self.script.commands.len();
        let end = self.until(')', '(');
        if end.is_ok() && self.cursor.eat(")") {
            self.script.calculates = true;
            return Ok(true);
        }
        // After each failure, the text behind it is read once more.
        self.script.attempts += 1;
        if self.script.attempts > MAX_ATTEMPTS {
            return Err(Doubt);
        }
        self.script.commands.truncate(kept);
        self.pending.truncate(before.2);
        (self.cursor, self.depth) = (before.0, before.1);
        Ok(false)
    }

    /// Reads up to the closing mark, including expansions.
    fn until(&mut self, close: char, open: char) -> Read {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Doubt);
        }
        let mut open_marks = 1_usize;
        let mut sink = Word::default();
        loop {
            match self.cursor.bump() {
                None => return Err(Doubt),
                Some('\\') => {
                    self.cursor.bump();
                }
                Some('\'') => {
                    // Single quotes do not protect text in an expression, because bash expands
                    // subscripts again.
                    let quoted = self.cursor.take_while(|c| c != '\'');
                    self.script.doubt |= quoted.contains(['$', '`']);
                    self.cursor.bump();
                }
                Some('"') => self.double_quoted(&mut sink)?,
                Some('$') => self.dollar(&mut sink, Quoting::Double)?,
                Some('`') => self.backquoted(&mut sink, Quoting::Double)?,
                Some(next) if next == open => open_marks += 1,
                Some(next) if next == close => {
                    open_marks -= 1;
                    if open_marks == 0 {
                        self.depth -= 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether `${…}` takes a substring: `${x:1}`, unlike `${x:-y}`.
fn is_offset(inside: &str) -> bool {
    inside
        .split_once(':')
        .is_some_and(|(_, after)| !after.starts_with(['-', '=', '?', '+']))
}
