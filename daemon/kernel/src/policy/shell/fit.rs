//! Compares the pattern of a command, as conditions of hooks have it, with everything that a line runs.

use super::deny::{self, Hit};
use super::rule::Rule;
use super::runs::{ProgramRun, Runs};
use super::word::{Word, base_name};
use super::{Quotes, words};

/// Whether a line runs a command that fits a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineFit {
    /// It runs something else.
    No,
    /// It may: words are computed, or the line is not understood.
    Possible,
    Certain,
}

/// Compares a pattern such as `git push *` with the commands of a line, at every depth. A star stands
/// for any text; `git:*` is `git` with any arguments.
pub fn fit(pattern: &str, line: &str) -> LineFit {
    let whole = pattern.strip_suffix(":*").unwrap_or(pattern).trim();
    let runs = Runs::of(line);
    let program = whole.split_whitespace().next().unwrap_or_default();
    if program.is_empty() || program.contains(['*', '?', '[']) {
        return by_text(pattern, line, &runs);
    }
    let Some(rule) = Rule::guess(whole) else {
        return by_text(pattern, line, &runs);
    };
    let mut hit = deny::hit(&rule, &runs);
    if !rule.is_certain {
        let mut ways = [Quotes::Joined, Quotes::Parting].into_iter();
        if ways.any(|quotes| deny::is_mentioned(&rule, &words(line, quotes))) {
            hit = hit.max(Hit::Possible);
        }
    }
    match hit {
        Hit::No => LineFit::No,
        Hit::Possible => LineFit::Possible,
        Hit::Certain => LineFit::Certain,
    }
}

/// Compares a pattern that does not name its program.
fn by_text(pattern: &str, line: &str, runs: &Runs) -> LineFit {
    let mut fit = if runs.anything {
        LineFit::Possible
    } else {
        LineFit::No
    };
    if fits(pattern, line.trim()) {
        return LineFit::Certain;
    }
    for run in &runs.programs {
        let Some(texts) = texts(run) else {
            fit = LineFit::Possible;
            continue;
        };
        let text = texts.join(" ");
        let short = match texts.split_first() {
            Some((program, rest)) => {
                let program = std::iter::once(base_name(program));
                program.chain(rest.iter().copied()).collect::<Vec<_>>()
            }
            None => Vec::new(),
        };
        if fits(pattern, &text) || fits(pattern, &short.join(" ")) {
            return LineFit::Certain;
        }
    }
    fit
}

/// Returns the words of a command, if all of them are known.
fn texts(run: &ProgramRun) -> Option<Vec<&str>> {
    run.words.iter().map(Word::text).collect()
}

/// Whether a text fits a pattern, in which a star stands for any text. `git:*` is `git` and all that
/// begins with `git `.
pub fn fits(pattern: &str, text: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix(":*") {
        let rest = text.strip_prefix(prefix);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    }
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::LineFit::{Certain, No, Possible};
    use super::*;

    #[test]
    fn a_pattern_is_compared_with_every_command_of_a_line() {
        let table = [
            ("touch *", "touch a", Certain),
            ("touch *", " touch a", Certain),
            ("touch *", "\ttouch a", Certain),
            ("touch *", "true; touch a", Certain),
            ("touch *", "cd . && touch a", Certain),
            ("touch *", "env touch a", Certain),
            ("touch *", "echo x | xargs touch", Certain),
            ("touch *", "sh -c 'touch a'", Certain),
            ("touch *", "/usr/bin/touch a", Certain),
            ("touch *", "t=touch; $t a", Possible),
            ("touch *", "eval \"$x\"", Possible),
            ("touch *", "echo touch", No),
            ("touch *", "ls -la", No),
            ("git push *", "git status", No),
            ("git push *", "git status && git -C x push origin", Certain),
            ("git:*", "git push", Certain),
            ("git:*", "ls", No),
            ("*secret*", "cat a-secret", Certain),
            ("*secret*", "ls; cat secret.txt", Certain),
            ("*secret*", "ls", No),
            ("*secret*", "cat $x", Possible),
            ("*", "ls", Certain),
            ("tou*", "true; touch a", Certain),
        ];
        for (pattern, line, wanted) in table {
            let found = fit(pattern, line);
            // To take a command for a possible one is no harm.
            let is_right = found == wanted || (wanted == Certain && found == Possible);
            assert!(is_right, "{pattern} {line}: {found:?}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        let table = [
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("git *", "git push", true),
            ("git *", "gitk", false),
            ("git:*", "git", true),
            ("git:*", "git push", true),
            ("git:*", "gitk", false),
            ("*.env", "/work/.env", true),
            ("*secret*", "a secret file", true),
            ("*secret*", "nothing", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
        ];
        for (pattern, text, wanted) in table {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
