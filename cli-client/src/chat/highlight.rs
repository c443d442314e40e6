//! Light colours for code: comments, strings, numbers and common keywords.

use super::styled::{Colour, Line, Look};

const COMMENT: Look = Look::DIM;
const STRING: Look = Look::of(Colour::Green);
const NUMBER: Look = Look::of(Colour::Cyan);
const KEYWORD: Look = Look::of(Colour::Magenta);

/// Keywords of the languages that are met most.
const KEYWORDS: [&str; 74] = [
    "as",
    "async",
    "await",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "int",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "package",
    "pass",
    "private",
    "pub",
    "public",
    "raise",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "use",
    "var",
    "while",
    "yield",
];

/// Returns what begins a comment in a language; `None` if the language is no code.
fn comment_of(language: &str) -> Option<&'static [&'static str]> {
    Some(match language {
        "rust" | "rs" | "c" | "h" | "cpp" | "c++" | "java" | "javascript" | "js" | "jsx"
        | "typescript" | "ts" | "tsx" | "go" | "swift" | "kotlin" | "scala" | "csharp" | "cs"
        | "json" | "jsonc" | "zig" | "dart" => &["//"],
        "python" | "py" | "bash" | "sh" | "shell" | "zsh" | "console" | "ruby" | "rb" | "toml"
        | "yaml" | "yml" | "make" | "makefile" | "dockerfile" | "perl" | "r" => &["#"],
        "php" => &["//", "#"],
        "sql" | "lua" | "haskell" | "hs" => &["--"],
        _ => return None,
    })
}

/// Colours one line of code.
pub(super) fn code(text: &str, language: &str) -> Line {
    let language = language.split([' ', ',', '{']).next().unwrap_or_default();
    let language = language.to_lowercase();
    if ["diff", "patch"].contains(&language.as_str()) {
        return super::diff::line(text);
    }
    let Some(comments) = comment_of(&language) else {
        return Line::plain(text).verbatim();
    };
    let mut line = Line::default().verbatim();
    let mut rest = text;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        let begins_comment = comments.iter().any(|mark| rest.starts_with(mark));
        let (look, length) = if begins_comment && (before == ' ' || !rest.starts_with('#')) {
            (COMMENT, rest.len())
        } else if letter == '"' || letter == '`' || (letter == '\'' && is_string(rest)) {
            (STRING, string_length(rest, letter))
        } else if letter.is_alphabetic() || letter == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let end = end.unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            let is_keyword = KEYWORDS.contains(&word);
            (if is_keyword { KEYWORD } else { Look::PLAIN }, end)
        } else if letter.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
            (NUMBER, end.unwrap_or(rest.len()))
        } else {
            (Look::PLAIN, letter.len_utf8())
        };
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        before = taken.chars().next_back().unwrap_or(' ');
        line.push(look, taken);
        rest = left;
    }
    line
}

/// Returns whether a quote begins a string and not a lifetime or an apostrophe.
fn is_string(text: &str) -> bool {
    let inner = text.get(1..).unwrap_or_default();
    inner.contains('\'')
}

/// Returns how many bytes a string takes with its quotes.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
        } else if letter == quote {
            return at + letter.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_its_text_and_gets_colours() {
        let text = "let a = \"x // y\"; // 1";
        let line = code(text, "rust");
        assert_eq!(line.text(), text);
        let looks: Vec<(&str, Look)> = line
            .spans
            .iter()
            .map(|span| (span.text.as_str(), span.look))
            .collect();
        assert_eq!(looks.first(), Some(&("let", KEYWORD)));
        assert!(looks.contains(&("\"x // y\"", STRING)), "{looks:?}");
        assert_eq!(looks.last(), Some(&("// 1", COMMENT)));
        assert_eq!(
            code("fn<'a>(x: &'a str)", "rust").text(),
            "fn<'a>(x: &'a str)"
        );
        assert_eq!(code("for x", "").spans.len(), 1);
    }
}
