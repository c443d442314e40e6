//! Lines that only look: they write nothing, run nothing that a project brings, and send nothing.
//! The rule `look` covers them where all their paths lie in the directories of the session.
//!
//! `tables/looks.txt` names the commands. The line is read by `reader`, so pipes, conditions,
//! quotes, patterns and substitutions are understood. Whatever is not certain is no look.

pub(crate) mod named;
pub(crate) mod reach;
pub(crate) mod reads;

use super::coverage::{self, Coverage};
use super::reader::{Script, Simple};
use super::table;
use super::word::Word;

const LOOKS: &str = include_str!("tables/looks.txt");

/// The longest line, in bytes, that is read. Links in a longer one are not looked up.
pub(super) const MAX_TEXT: usize = 8 * 1024;

/// How many folders a line may be in. Each `cd` doubles them.
const MAX_FOLDERS: usize = 4;

/// How the line of programs begins that can be asked for their version.
const VERSION: &str = "version:";

/// Files of the machine that anybody may know.
const PUBLIC: &[&str] = &[
    "/dev/null",
    "/etc/lsb-release",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
];

/// Variables that change how something is printed and nothing else.
const HARMLESS_VARIABLES: &[&str] = &["LANG", "LC_ALL", "NO_COLOR", "TZ"];

/// A path that a line looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path as it is written, below the folders that `cd` named before it.
    pub path: String,
    /// Whether it is a pattern. Its gaps are written as `*`.
    pub is_pattern: bool,
}

/// Whether every command of a line only looks.
pub(crate) fn only_looks(text: &str) -> bool {
    places(text).is_some()
}

/// Returns the paths that a line looks at, or `None` if it may do more than look.
pub(crate) fn places(text: &str) -> Option<Vec<Place>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let script = Script::read(text);
    let is_certain = !script.doubt && !script.calculates && !script.defines;
    if !is_certain || !script.listed.is_empty() || !has_simple_braces(text) || has_strange(text) {
        return None;
    }
    let is_nowhere = |word: &Word| word.text() == Some("/dev/null");
    if !script.written.iter().all(is_nowhere) {
        return None;
    }
    let mut found = Found::new();
    for command in &script.commands {
        found.command(command)?;
    }
    for word in &script.opened {
        found.place(word)?;
    }
    Some(found.places)
}

/// Whether a program with these arguments only looks, wherever its paths are.
pub(crate) fn is_looking(name: &str, arguments: &[Word]) -> bool {
    Found::new().program(name, arguments).is_some()
}

/// Whether the text has characters whose meaning differs from what they look like.
fn has_strange(text: &str) -> bool {
    text.chars().any(|character| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || super::plain::is_invisible(character)
    })
}

/// Whether every `${…}` is a plain name. Other forms can assign.
fn has_simple_braces(text: &str) -> bool {
    text.split("${").skip(1).all(|after| {
        let name = after.split('}').next().unwrap_or_default();
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// What was found so far.
struct Found {
    places: Vec<Place>,
    /// The folders that `cd` may have led to, relative to where the line began. It may also have
    /// failed, or have led only a part of the line there.
    folders: Vec<String>,
}

/// A line of the table.
#[derive(Clone, Copy)]
struct Entry {
    marks: &'static str,
}

impl Entry {
    /// Finds the line for a program and the words after it. Returns how many of them it takes.
    fn find(name: &str, arguments: &[Word]) -> Option<(Self, usize)> {
        let has_subcommands = name == "git";
        let word = |at: usize| arguments.get(at).and_then(Word::text);
        let start = if has_subcommands {
            arguments
                .iter()
                .position(|word| word.text().is_none_or(|text| !text.starts_with('-')))?
        } else {
            0
        };
        let pair = match (word(start), word(start + 1)) {
            (Some(first), Some(second)) => format!("{first}:{second}"),
            _ => String::new(),
        };
        let mut single = None;
        let lines = LOOKS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with(VERSION));
        for line in lines {
            let mut names = line
                .split_ascii_whitespace()
                .filter(|it| !it.starts_with('['));
            if !has_subcommands {
                if names.any(|own| own == name) && !line.starts_with("git ") {
                    return Some((Self { marks: line }, 0));
                }
                continue;
            }
            if names.next() != Some("git") {
                continue;
            }
            for own in names {
                if own == pair {
                    return Some((Self { marks: line }, start + 2));
                }
                if Some(own) == word(start) {
                    single = Some((Self { marks: line }, start + 1));
                }
            }
        }
        single
    }

    fn has(self, mark: &str) -> bool {
        let mut words = self.marks.split_ascii_whitespace();
        words.any(|word| word.strip_prefix('[').and_then(|it| it.strip_suffix(']')) == Some(mark))
    }

    fn values(self, key: &str) -> Option<impl Iterator<Item = &'static str> + Clone> {
        let mut words = self.marks.split_ascii_whitespace();
        let list = words.find_map(|word| {
            word.strip_prefix('[')?
                .strip_suffix(']')?
                .strip_prefix(key)?
                .strip_prefix('=')
        })?;
        Some(list.split(','))
    }

    /// Whether one of the words is an option of a list.
    fn uses(self, key: &str, words: &[Word]) -> bool {
        let Some(listed) = self.values(key) else {
            return false;
        };
        words.iter().any(|word| {
            let text = word.prefix();
            listed.clone().any(|option| {
                if option.starts_with("--") {
                    // Programs accept the beginning of an option for the whole option.
                    let given = text.split('=').next().unwrap_or_default();
                    return given.len() > 2 && option.starts_with(given);
                }
                let letter = option.strip_prefix('-').unwrap_or(option);
                text == option
                    || (letter.len() == 1
                        && text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains(letter))
            })
        })
    }
}

impl Found {
    fn new() -> Self {
        Self {
            places: Vec::new(),
            folders: vec![String::new()],
        }
    }

    fn command(&mut self, command: &Simple) -> Option<()> {
        let harmless = |name: &str| HARMLESS_VARIABLES.contains(&name);
        let Some((program, arguments)) = command.words.split_first() else {
            // A line of redirections only.
            return command.assignments.is_empty().then_some(());
        };
        if !command
            .assignments
            .iter()
            .all(|it| harmless(&it.name) && !it.value.expands())
        {
            return None;
        }
        self.program(program.text()?, arguments)
    }

    fn program(&mut self, name: &str, arguments: &[Word]) -> Option<()> {
        match (name, arguments) {
            ("cd", [to]) => return self.enter(to.text()?),
            ("command", [option, _]) if matches!(option.text(), Some("-v" | "-V")) => {
                return Some(());
            }
            ("test" | "[", words) => {
                // Bash evaluates the subscript of a name.
                let evaluates = |text: &str| text.contains('[') || text == "-v" || text == "-R";
                if words.iter().any(|word| word.texts().any(evaluates)) {
                    return None;
                }
                return words
                    .iter()
                    .try_for_each(|word| self.word(word, Computed::Allowed));
            }
            // An option of `printf` stores into a variable.
            ("printf", [first, ..]) if first.text().is_none_or(|it| it.starts_with('-')) => {
                return None;
            }
            (_, [only]) if is_version(name, only) => return Some(()),
            _ => {}
        }
        if arguments.iter().any(is_open_option) {
            return None;
        }
        let (entry, taken) = Entry::find(name, arguments)?;
        let rest = arguments.get(taken..).unwrap_or_default();
        let is_free = entry.has("any") || entry.has("names");
        let is_harmless = match coverage::of_words(name, arguments, 0) {
            Coverage::Harmless => true,
            Coverage::Unlisted => is_free,
            Coverage::Notable | Coverage::Unknown => false,
        };
        if !is_harmless || entry.uses("not", rest) {
            return None;
        }
        if entry.has("literal") && rest.iter().any(Word::is_computed) {
            return None;
        }
        if entry.has("here") && self.folders.len() > 1 {
            return None;
        }
        let is_operand = |word: &&Word| !word.prefix().starts_with('-') || word.text() == Some("-");
        let mut operands = rest.iter().filter(is_operand);
        let wants_none = entry.has("none") && !entry.uses("list", rest);
        let lacks = entry.values("needs").is_some() && !entry.uses("needs", rest);
        if lacks || (wants_none && operands.clone().next().is_some()) {
            return None;
        }
        if entry.has("plus") && operands.clone().any(|word| !word.prefix().starts_with('+')) {
            // The value of `-d` is not an operand, but a date that is set looks the same.
            let given = rest.iter().any(|word| word.prefix().starts_with("-d"));
            if !given {
                return None;
            }
        }
        if let Some(only) = entry.values("only")
            && !operands
                .clone()
                .all(|word| only.clone().any(|own| word.text() == Some(own)))
        {
            return None;
        }
        if entry.has("names") {
            // A pattern lists the names in a folder, which must be known: not `$x/*`, not `~/*`.
            let in_braces = |word: &Word| word.braces().contains(['*', '?', '[']);
            if rest.iter().any(in_braces) {
                return None;
            }
            let mut patterns = rest.iter().filter(|word| word.matches());
            return patterns.try_for_each(|word| self.place(word));
        }
        let first = if entry.has("first") && !names_pattern_by_option(rest) {
            operands.next()
        } else {
            None
        };
        let is_open = first.is_some_and(Word::expands);
        if is_open || rest.iter().any(|script| reads_elsewhere(name, script)) {
            return None;
        }
        let computed = if is_free {
            Computed::Pattern
        } else {
            Computed::InFolder
        };
        if entry.has("folders") {
            rest.iter().try_for_each(|word| self.folder(word))?;
        }
        for word in rest {
            for path in attached_files(name, word) {
                self.add(path, false)?;
            }
        }
        rest.iter()
            .filter(|word| !first.is_some_and(|first| std::ptr::eq(first, *word)))
            .try_for_each(|word| self.word(word, computed))
    }

    /// Goes into a folder below.
    fn enter(&mut self, to: &str) -> Option<()> {
        let is_below = !to.is_empty()
            && !to.starts_with(['-', '/', '~'])
            && !to.split('/').any(|part| part == "..");
        if !is_below {
            return None;
        }
        if self.folders.len() > MAX_FOLDERS {
            return None;
        }
        let to = to.trim_end_matches('/');
        let below = self.folders.iter().map(|folder| format!("{folder}{to}/"));
        let below: Vec<String> = below.collect();
        let place = |path: &String| Place {
            path: path.clone(),
            is_pattern: false,
        };
        self.places.extend(below.iter().map(place));
        self.folders.extend(below);
        Some(())
    }

    /// Checks a word, which may be an option with a value.
    fn word(&mut self, word: &Word, computed: Computed) -> Option<()> {
        if word.expands() {
            return (computed == Computed::Allowed).then_some(());
        }
        if word.is_computed() && word.prefix().is_empty() && computed == Computed::InFolder {
            // A name that begins with a dash would be an option.
            return None;
        }
        let Some(text) = word.text() else {
            return self.place(word);
        };
        self.add(text, false)?;
        if let Some(rest) = text.strip_prefix('-') {
            // `--file=x` and `-fx`.
            if let Some((_, value)) = text.split_once('=') {
                self.add(value, false)?;
            }
            // The letter with the value may be the last of several.
            if let Some(start) = rest.find(['/', '~', '.']) {
                self.add(rest.get(start..).unwrap_or_default(), false)?;
            }
        }
        Some(())
    }

    /// Adds what lies in a folder, if the word or its value is the name of one.
    fn folder(&mut self, word: &Word) -> Option<()> {
        if word.is_process_output() {
            return Some(());
        }
        let text = word.text()?;
        let path = match text.split_once('=') {
            Some((option, value)) if option.starts_with('-') => value,
            _ => text,
        };
        self.add(&format!("{}/*", path.trim_end_matches('/')), true)
    }

    fn place(&mut self, word: &Word) -> Option<()> {
        if word.expands() {
            return None;
        }
        if let Some(text) = word.text() {
            return self.add(text, false);
        }
        if let Some((option, _)) = word.prefix().split_once('=')
            && option.starts_with("--")
        {
            return self.place(&word.without_prefix(&format!("{option}="))?);
        }
        let pieces: Vec<&str> = word.texts().collect();
        // `.*` matches the folder above in older shells.
        let is_hidden = |piece: &&str| {
            let last = piece.rsplit('/').next().unwrap_or_default();
            last == "." || last == ".."
        };
        if pieces.iter().any(is_hidden) || word.prefix().starts_with('-') {
            return None;
        }
        let start = if word.prefix().is_empty() { "*" } else { "" };
        let end = if word.ending().is_some() { "" } else { "*" };
        self.add(&format!("{start}{}{end}", pieces.join("*")), true)
    }

    fn add(&mut self, path: &str, is_pattern: bool) -> Option<()> {
        if path.starts_with('~') && !is_pattern {
            // A `~` in quotes is an ordinary name.
            return None;
        }
        if PUBLIC.contains(&path) || path == "-" || path.is_empty() {
            return Some(());
        }
        let place = |path: String| Place { path, is_pattern };
        if path.starts_with('/') {
            self.places.push(place(path.to_owned()));
        } else {
            let folders = self.folders.iter();
            let below = folders.map(|folder| place(format!("{folder}{path}")));
            self.places.extend(below);
        }
        Some(())
    }
}

/// Whether a word is an option of which only the beginning is known, such as `-{K..K}`. The value of a
/// long option may be a pattern: `--include=*.rs`.
fn is_open_option(word: &Word) -> bool {
    let start = word.prefix();
    word.is_computed()
        && start.starts_with('-')
        && !(start.starts_with("--") && start.contains('='))
}

/// Which computed words are harmless.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Computed {
    /// Any.
    Allowed,
    /// Patterns that match names of files.
    Pattern,
    /// Patterns that begin with a known name, so that no match is an option.
    InFolder,
}

/// Letters of options whose value is a file that is read.
const FILE_LETTERS: &[(&str, &[char])] = &[
    ("grep", &['f']),
    ("egrep", &['f']),
    ("fgrep", &['f']),
    ("ggrep", &['f']),
    ("zgrep", &['f']),
    ("rg", &['f']),
    ("jq", &['f']),
    ("gojq", &['f']),
    ("jaq", &['f']),
    ("git", &['O', 'f', 'S']),
    ("du", &['X']),
    ("diff", &['X']),
];

/// Returns what may be the name of a file that is attached to letters of options: `-cfnames`.
fn attached_files<'w>(name: &str, word: &'w Word) -> Vec<&'w str> {
    let listed = FILE_LETTERS.iter().find(|(own, _)| *own == name);
    let text = word.prefix();
    let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
    let (Some((_, listed)), Some(letters)) = (listed, letters) else {
        return Vec::new();
    };
    let ends = letters.match_indices(*listed);
    let values = ends.filter_map(|(at, letter)| letters.get(at + letter.len()..));
    values.filter(|value| !value.is_empty()).collect()
}

/// Whether an option holds the pattern or script, so that the first operand is a path.
fn names_pattern_by_option(words: &[Word]) -> bool {
    words.iter().any(|word| {
        let text = word.prefix();
        match text.strip_prefix("--") {
            Some(long) => ["re", "fi", "fr", "ex", "so", "ty"]
                .iter()
                .any(|it| long.starts_with(it)),
            None => text.starts_with('-') && text.contains(['e', 'f', 'g']),
        }
    })
}

/// Whether a script may read files that no operand names.
fn reads_elsewhere(name: &str, script: &Word) -> bool {
    let has = |words: &[&str]| {
        let mut texts = script.texts();
        texts.any(|text| words.iter().any(|word| text.contains(word)))
    };
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => has(&["getline", "ARGV", "@"]),
        "jq" | "gojq" | "jaq" => has(&["import", "include", "input_filename"]),
        _ => false,
    }
}

fn is_version(name: &str, argument: &Word) -> bool {
    // With `-v` some programs begin to work and talk much.
    let asks = ["--version", "-version", "-V", "version"];
    argument.text().is_some_and(|text| asks.contains(&text))
        && table::lines(LOOKS)
            .filter(|line| VERSION.starts_with(line.names))
            .any(|line| line.listed.split_ascii_whitespace().any(|own| own == name))
}

#[cfg(test)]
mod tests;
