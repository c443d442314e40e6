//! Reads one simple command: assignments, words, redirections, and the here-documents after its
//! line.

use super::{Assignment, Doubt, Input, MAX_DEPTH, Pending, Read, Reader, Simple};
use crate::policy::shell::word::Word;

impl Reader<'_, '_> {
    /// Reads a simple command, or the head of a function.
    pub(super) fn simple(&mut self) -> Read {
        let index = self.script.commands.len();
        // The empty entry keeps the position, so that commands inside the words come after this
        // one.
        self.script.commands.push(Simple::default());
        let mut simple = Simple::default();
        let read = self.parts_of(&mut simple, index);
        if let Some(place) = self.script.commands.get_mut(index) {
            // The here-document may have been read inside a substitution in the meantime.
            if simple.input == Input::Unknown {
                simple.input = std::mem::take(&mut place.input);
            }
            *place = simple;
        }
        read
    }

    fn parts_of(&mut self, simple: &mut Simple, index: usize) -> Read {
        let mut something = false;
        loop {
            self.cursor.skip_blanks();
            if self.redirection(index, &mut simple.input)? {
                something = true;
                continue;
            }
            match self.cursor.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')' | '#') => break,
                Some('(') if simple.words.len() == 1 && self.empty_parentheses() => {
                    // This is the head of a function. Its body is read as the commands that follow.
                    simple.words.clear();
                    self.script.defines = true;
                    something = true;
                    break;
                }
                Some(_) if self.cursor.at_word() => {}
                Some(_) => return Err(Doubt),
            }
            something = true;
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            simple.words.push(self.word()?);
        }
        if something { Ok(()) } else { Err(Doubt) }
    }

    /// Reads `NAME=value`, `NAME+=value` or `NAME=(words)`.
    fn assignment(&mut self) -> Read<Option<Assignment>> {
        let before = self.cursor;
        let name = self
            .cursor
            .take_while(|character| character.is_ascii_alphanumeric() || character == '_');
        let starts_well = name
            .chars()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
        if !starts_well || !(self.cursor.eat("=") || self.cursor.eat("+=")) {
            self.cursor = before;
            return Ok(None);
        }
        let value = if self.cursor.peek() == Some('(') {
            self.array()?
        } else if self.cursor.at_word() {
            self.word()?
        } else {
            Word::default()
        };
        Ok(Some(Assignment {
            name: name.to_owned(),
            value,
        }))
    }

    /// Reads `(words)` after a `=`.
    pub(super) fn array(&mut self) -> Read<Word> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Doubt);
        }
        self.cursor.bump();
        loop {
            self.space()?;
            if self.cursor.eat(")") {
                self.depth -= 1;
                return Ok(Word::anything());
            }
            if !self.cursor.at_word() {
                return Err(Doubt);
            }
            let word = self.word()?;
            // The words of an array may be run later.
            self.script.listed.push(word);
        }
    }

    /// Reads a redirection, if one comes next.
    fn redirection(&mut self, owner: usize, input: &mut Input) -> Read<bool> {
        let before = self.cursor;
        let bare = self.cursor.bare();
        let is_descriptor = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
        let is_variable = bare.starts_with('{')
            && bare.ends_with('}')
            && bare.len() > 2
            && bare
                .trim_matches(['{', '}'])
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_descriptor || is_variable {
            self.cursor.eat(bare);
        }
        let rest = self.cursor.rest();
        let is_substitution = rest.starts_with("<(") || rest.starts_with(">(");
        let operators = [
            "&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">",
        ];
        let operator = operators
            .iter()
            .find(|operator| rest.starts_with(**operator))
            .filter(|operator| !(operator.starts_with('&') && (is_descriptor || is_variable)));
        let Some(operator) = operator.filter(|_| !is_substitution) else {
            self.cursor = before;
            return Ok(false);
        };
        self.cursor.eat(operator);
        self.cursor.skip_blanks();
        self.script.defines |= is_variable;
        if matches!(*operator, "<<" | "<<-") {
            self.announce(owner, *operator == "<<-")?;
            return Ok(true);
        }
        if !self.cursor.at_word() {
            return Err(Doubt);
        }
        let word = self.word()?;
        // Bash expands the word after `>&` a second time, even if it is quoted.
        if operator.ends_with('&') && word.texts().any(|text| text.contains(['$', '`'])) {
            self.script.doubt = true;
        }
        if matches!(*operator, "<" | "<>") {
            self.script.opened.push(word.clone());
        }
        match *operator {
            "<<<" => *input = Input::Text(word),
            "<" => *input = Input::File(word),
            "<&" => *input = Input::Unknown,
            _ => {
                if *operator == "<>" {
                    *input = Input::Unknown;
                }
                if *operator != ">&" || !is_open_file(&word) {
                    self.script.written.push(word);
                }
            }
        }
        Ok(true)
    }

    /// Reads the delimiter of a here-document, whose text begins on the next line.
    fn announce(&mut self, owner: usize, strips_tabs: bool) -> Read {
        let mut delimiter = String::new();
        let mut expands = true;
        while self.cursor.at_word() {
            match self.cursor.bump() {
                Some(quote @ ('\'' | '"')) => {
                    expands = false;
                    delimiter.push_str(self.cursor.take_while(|c| c != quote));
                    if self.cursor.bump().is_none() {
                        return Err(Doubt);
                    }
                }
                Some('\\') => {
                    expands = false;
                    delimiter.extend(self.cursor.bump());
                }
                Some('$' | '`') | None => return Err(Doubt),
                Some(other) => delimiter.push(other),
            }
        }
        if delimiter.contains(['\\', '\n']) || (delimiter.is_empty() && expands) {
            return Err(Doubt);
        }
        self.pending.push(Pending {
            delimiter,
            strips_tabs,
            expands,
            owner: Some(owner),
        });
        Ok(())
    }

    /// Reads the here-documents that the previous line announced.
    pub(super) fn here_documents(&mut self) {
        for here in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            let mut closed = false;
            while let Some(line) = self.cursor.line() {
                let line = if here.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == here.delimiter {
                    closed = true;
                    break;
                }
                // Bash joins lines that end with a backslash before it looks for the delimiter.
                if here.expands && line.ends_with('\\') {
                    self.script.doubt = true;
                }
                body.push_str(line);
                body.push('\n');
            }
            if !closed {
                self.script.doubt = true;
            }
            let text = if here.expands {
                self.expanded(&body)
            } else {
                Word::literal(&body)
            };
            let owner = here.owner.and_then(|i| self.script.commands.get_mut(i));
            if let Some(owner) = owner {
                owner.input = Input::Text(text);
            }
        }
    }
}

/// Whether the word after `>&` is a descriptor that is open, or closes one.
fn is_open_file(word: &Word) -> bool {
    word.text().is_some_and(|text| {
        text == "-" || (!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))
    })
}
