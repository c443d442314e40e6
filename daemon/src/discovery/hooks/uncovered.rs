//! Tells people where the trust in a hook ends: what its command runs without naming the file.

use super::definition::{HookAction, HookDefinition};
use super::named_files::{PLUGIN_VARIABLES, PROJECT_VARIABLES, beside};
use std::fmt::Write as _;

/// Programs and options that run what some other file of the project says.
const RUNNERS: [&str; 21] = [
    "-m", "ant", "bun", "bundle", "cargo", "composer", "deno", "go", "gradle", "just", "make",
    "mvn", "ninja", "npm", "npx", "pnpm", "poetry", "rake", "tox", "uv", "yarn",
];

/// How many files that are not covered are named.
const MOST_SHOWN: usize = 8;

impl HookDefinition {
    /// Returns why the hook may run files of the project that the trust in it does not cover.
    pub fn uncovered(&self) -> Option<String> {
        self.source.folder.as_ref()?;
        let (script, words) = match &self.action {
            HookAction::Script { script, .. } => {
                (Some(script), script.split_whitespace().collect::<Vec<_>>())
            }
            HookAction::Program { program, args, .. } => {
                let args = args.iter().map(String::as_str);
                (
                    None,
                    std::iter::once(program.as_str()).chain(args).collect(),
                )
            }
            HookAction::Http { .. } | HookAction::Prompt { .. } => return None,
        };
        if words.iter().any(|word| RUNNERS.contains(word)) {
            return Some("it runs what other files say, and their content is not covered".into());
        }
        if script.is_some_and(|script| is_computed(script)) {
            return Some(
                "names in it are known only when it runs, and their content is not covered".into(),
            );
        }
        if ignores_environment(&words) {
            return Some(
                "with -E or -I Python may load what is in `__pycache__` instead of its files"
                    .into(),
            );
        }
        if self.named_files.is_empty() {
            return Some("it names no file of the project, and no content is covered".into());
        }
        let beside = beside(self);
        let (shown, more) = beside.split_at(beside.len().min(MOST_SHOWN));
        let mut told =
            "what its files read or load when they run, other than these, is not covered"
                .to_owned();
        if !shown.is_empty() {
            told.push_str("; beside them and not covered: ");
            told.push_str(&shown.join(", "));
        }
        if !more.is_empty() {
            // Writing to a string cannot fail.
            write!(told, " and {} more", more.len()).ok();
        }
        Some(told)
    }
}

/// Whether Python is told not to look at its environment, which turns its cache off.
fn ignores_environment(words: &[&str]) -> bool {
    let mut rest = words.iter().skip_while(|word| !word.contains("python"));
    let options = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    rest.next().is_some()
        && rest
            .take_while(options)
            .any(|word| word.contains(['E', 'I']))
}

/// Whether the words of a script depend on variables, patterns or output of commands.
fn is_computed(script: &str) -> bool {
    let mut quote = None;
    let mut letters = script.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let rest = script.get(at + letter.len_utf8()..).unwrap_or_default();
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                if quote.is_none() {
                    return true;
                }
                letters.next();
            }
            (None, '\'' | '"') => quote = Some(letter),
            (_, '$') if is_known(rest) => {
                // `$?` is no pattern.
                letters.next_if(|_| rest.starts_with('?'));
            }
            (_, '`' | '$') | (None, '*' | '?') => return true,
            // `[ -f x ]` is a command.
            (None, '[') if !rest.starts_with([' ', '[']) => return true,
            (None, '{') if rest.split('}').next().is_some_and(|it| it.contains(',')) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Whether what comes after a `$` is the name of a folder that is known, or a number.
fn is_known(rest: &str) -> bool {
    let name = rest.strip_prefix('{').unwrap_or(rest);
    let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
    let mut known = PROJECT_VARIABLES.iter().chain(&PLUGIN_VARIABLES);
    known.any(|it| *it == name) || rest.starts_with(['?', '#', '$', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_known_only_when_a_script_runs() {
        let table = [
            ("./guard.sh", false),
            ("\"$CLAUDE_PROJECT_DIR\"/guard.sh 2>&1", false),
            ("${CLAUDE_PLUGIN_ROOT}/x.sh; exit $?", false),
            ("jq -r '.a[] | $x' | ./g.sh", false),
            ("[ -f x ] && ./g.sh", false),
            ("X=g8; ./$X.sh", true),
            ("./[a]*.sh", true),
            ("./{a,b}.sh", true),
            ("./sp\\ ace.sh", true),
            ("`cat name`", true),
            ("\"$(cat name)\"", true),
        ];
        for (script, wanted) in table {
            assert_eq!(is_computed(script), wanted, "{script}");
        }
    }
}
