//! The closed subset of bash whose meaning is certain.
//!
//! Every character that is not known to be harmless makes the whole text opaque. So an omission
//! here leads to a question and not to a permission.

use super::Argv;

/// Words that begin or separate compound commands.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// Builtins that run or evaluate their arguments, or that change what later words mean. `printf -v`
/// and array subscripts in variable names run substitutions even inside quotes.
const EVALUATING: &[&str] = &[
    ".",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "typeset",
    "ulimit",
    "unalias",
    "unset",
    "wait",
];

/// Reads the simple commands of a text. Returns `None` if the text is not plain.
pub(crate) fn parse(command: &str) -> Option<Vec<Argv>> {
    let mut commands = Vec::new();
    let mut argv = Argv::new();
    let mut rest = command
        .trim_end_matches(['\n', ' '])
        .trim_start_matches(' ');
    if rest.is_empty() {
        return None;
    }
    while let Some(next) = rest.chars().next() {
        if next == ' ' {
            rest = rest.trim_start_matches(' ');
        } else if let Some(after) = operator(rest) {
            commands.push(simple(std::mem::take(&mut argv))?);
            rest = after.trim_start_matches(' ');
            // Only `;` may end a text. The other operators need a command after them.
            if rest.is_empty() && !command.trim_end_matches(['\n', ' ']).ends_with(';') {
                return None;
            }
        } else {
            let (word, after) = word(rest)?;
            argv.push(word);
            rest = after;
        }
    }
    if !argv.is_empty() {
        commands.push(simple(argv)?);
    }
    Some(commands)
}

/// Splits one command, or a rule for one, into words without checking what they are.
pub(super) fn words(text: &str) -> Option<Argv> {
    let mut argv = Argv::new();
    let mut rest = text.trim_matches(' ');
    while !rest.is_empty() {
        let (next, after) = word(rest)?;
        argv.push(next);
        rest = after.trim_start_matches(' ');
    }
    Some(argv)
}

/// Takes `&&`, `||`, `;` or `|`. A longer operator that begins like these fails at its second part.
fn operator(text: &str) -> Option<&str> {
    ["&&", "||", ";", "|"]
        .iter()
        .find_map(|operator| text.strip_prefix(operator))
}

/// Reads one word: bare characters and quoted literals without a gap.
fn word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match next {
            '\'' | '"' => {
                let (literal, after) = rest.get(1..)?.split_once(next)?;
                if !literal.chars().all(|inner| is_literal(inner, next)) {
                    return None;
                }
                word.push_str(literal);
                rest = after;
            }
            bare if is_bare(bare) => {
                word.push(bare);
                rest = rest.get(1..)?;
            }
            ' ' | '&' | '|' | ';' => break,
            _ => return None,
        }
    }
    // A single `&` does not begin a word.
    (rest.len() < text.len()).then_some((word, rest))
}

/// Whether a character stands for itself outside quotes.
fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-./:@%+,=".contains(character)
}

/// Whether a character stands for itself inside the given quotes.
fn is_literal(character: char, quote: char) -> bool {
    if character.is_control() || is_invisible(character) {
        return false;
    }
    quote == '\'' || !matches!(character, '$' | '`' | '\\' | '!')
}

pub(crate) use loopd_proto::visible::is_invisible;

/// Accepts a command whose first word is a program or a harmless builtin.
fn simple(argv: Argv) -> Option<Argv> {
    let (program, arguments) = argv.split_first()?;
    let program = program.as_str();
    let is_assignment = program.contains('=');
    let is_job = program.starts_with('%');
    if program.is_empty() || is_assignment || is_job {
        return None;
    }
    if RESERVED.contains(&program) || EVALUATING.contains(&program) {
        return None;
    }
    let has_option = arguments
        .first()
        .is_some_and(|first| first.starts_with('-'));
    if program == "printf" && has_option {
        return None;
    }
    Some(argv)
}
