//! Reads programs in awk and sed just far enough to show that they run nothing.

use super::word::Word;

/// Splits a text of bare and quoted words. Returns `None` if the split is not certain.
pub(super) fn plain_words(text: &str) -> Option<Vec<String>> {
    let commands = super::plain::words(text)?;
    (!commands.is_empty()).then_some(commands)
}

/// Whether a call of awk may run something.
pub(super) fn awk_runs(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            return true;
        };
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => {
                words.next();
            }
            // The program is in a file, whose contents are not judged.
            "-f" | "--file" => return false,
            "--" => return words.next().is_none_or(awk_text_runs),
            _ if text.starts_with("-F") || text.starts_with("-v") || text.starts_with("-f") => {}
            "--version" | "--help" | "-V" | "--posix" | "--traditional" | "--re-interval" => {}
            _ if text.starts_with('-') && text.len() > 1 => return true,
            _ => return awk_text_runs(word),
        }
    }
    false
}

fn awk_text_runs(word: &Word) -> bool {
    let Some(text) = word.text() else {
        return true;
    };
    let without_or = text.replace("||", "");
    ["system", "getline", "@", "|"]
        .iter()
        .any(|mark| without_or.contains(mark))
}

/// Whether an awk program writes files. [`awk_runs`] says whether it runs something.
pub(super) fn awk_writes(arguments: &[Word]) -> bool {
    // Before the first action, and in `>=`, the mark compares.
    let writes = |text: &str| {
        text.split_once('{')
            .is_some_and(|(_, actions)| actions.replace(">=", "").contains('>'))
    };
    arguments.iter().filter_map(Word::text).any(writes)
        || arguments
            .iter()
            .filter_map(Word::text)
            .any(|text| text.starts_with("-f") || text.starts_with("--file"))
}

/// Whether a call of sed may run something.
pub(super) fn sed_runs(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let mut has_script = false;
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        let text = word.text().unwrap_or(word.prefix());
        if let Some(script) = text.strip_prefix("--expression=") {
            has_script = true;
            if word.is_computed() || !is_plain_sed(script) {
                return true;
            }
        } else if text.starts_with("--file") || text == "-f" {
            // The program is in a file, whose contents are not judged.
            has_script = true;
            if !text.contains('=') {
                words.next();
            }
        } else if text.starts_with("--") {
        } else if let Some(letters) = text.strip_prefix('-').filter(|l| !l.is_empty()) {
            // `-i.bak` takes the rest of the word.
            let letters = letters.split('i').next().unwrap_or_default();
            if let Some((_, attached)) = letters.split_once('e') {
                has_script = true;
                let plain = if attached.is_empty() {
                    words.next().and_then(Word::text).is_some_and(is_plain_sed)
                } else {
                    text.split_once('e')
                        .is_some_and(|(_, script)| is_plain_sed(script))
                        && !word.is_computed()
                };
                if !plain {
                    return true;
                }
            } else if letters.ends_with(['l', 'E', 'n', 'r', 's', 'u', 'z']) || letters.is_empty() {
                if letters.ends_with('l') {
                    words.next();
                }
            } else {
                return true;
            }
        } else {
            operands.push(word);
        }
    }
    if has_script {
        return false;
    }
    match operands.first() {
        Some(script) => !script.text().is_some_and(is_plain_sed),
        None => false,
    }
}

/// Whether a sed program only edits the text that passes through it: no `e`, no `w`, no file.
pub(super) fn is_plain_sed(script: &str) -> bool {
    Sed { rest: script }.is_plain()
}

struct Sed<'t> {
    rest: &'t str,
}

impl Sed<'_> {
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
            match self.bump() {
                Some('{') => {}
                Some(
                    'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | '=' | 'F',
                ) => {
                    self.skip(" \t");
                    if !matches!(self.peek(), None | Some(';' | '\n' | '}' | '#')) {
                        return false;
                    }
                }
                Some('q' | 'Q' | 'l' | 'L') => self.skip(" \t0123456789"),
                Some('b' | 't' | 'T' | ':' | '#') => self.line(";\n"),
                Some('a' | 'i' | 'c') => self.line("\n"),
                Some('s') => {
                    let Some(mark) = self.bump() else {
                        return false;
                    };
                    if !(self.delimited(mark) && self.delimited(mark)) {
                        return false;
                    }
                    self.skip("gpiIM0123456789");
                    self.skip(" \t");
                    if !matches!(self.peek(), None | Some(';' | '\n' | '}' | '#')) {
                        return false;
                    }
                }
                Some('y') => {
                    let Some(mark) = self.bump() else {
                        return false;
                    };
                    if !(self.delimited(mark) && self.delimited(mark)) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }

    fn line(&mut self, ends: &str) {
        let end = self
            .rest
            .find(|c| ends.contains(c))
            .unwrap_or(self.rest.len());
        self.rest = self.rest.get(end..).unwrap_or_default();
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

    /// Reads up to the mark. A mark in brackets does not count for sed, so the program is not plain
    /// then.
    fn delimited(&mut self, mark: char) -> bool {
        if mark == '\n' || mark == '\\' {
            return false;
        }
        let mut in_brackets = false;
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    self.bump();
                }
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ if next == mark => return !in_brackets,
                _ => {}
            }
        }
        false
    }
}

/// Whether a program text of `jq` brings in another file.
pub(super) fn jq_imports(text: &str) -> bool {
    ["import", "include"].iter().any(|keyword| {
        let mut after = text.split(keyword).skip(1);
        after.any(|rest| rest.trim_start().starts_with(['"', '#']))
    })
}

#[cfg(test)]
mod tests;
