//! Protected files that a line may write to without naming them: by a pattern, or by a variable that the
//! line sets.

use super::{FILES, FOLDERS, is_protected};
use crate::policy::path_pattern::is_like;
use crate::policy::shell::looks::{is_looking, reach};
use crate::policy::shell::runs::{ProgramRun, Runs};
use crate::policy::shell::word::Word;

/// Whether a line may write to a protected file that it does not name.
pub(super) fn may_write(text: &str) -> bool {
    let text = text.replace("{enter}", "\n");
    let runs = Runs::of(&text);
    let writes = |run: &&ProgramRun| {
        let Some((program, arguments)) = run.words.split_first() else {
            return false;
        };
        !program
            .text()
            .is_some_and(|name| is_looking(name, arguments))
    };
    let named = runs.programs.iter().filter(writes);
    let named = named.flat_map(|run| run.words.iter().skip(1));
    if named.chain(runs.redirected()).any(matches_protected) {
        return true;
    }
    // `f=.git/config; echo x >> $f`
    let writes_unknown = runs.redirected().iter().any(Word::expands);
    let is_border = |letter: char| " \t\n;&|()<>\"'`=,".contains(letter);
    writes_unknown && text.split(is_border).any(is_protected)
}

/// Whether a pattern may match a protected name. A hidden name is matched only by a dot.
fn matches_protected(word: &Word) -> bool {
    if word.expands() || !word.matches() {
        return false;
    }
    let pattern = reach::pattern(word).to_lowercase();
    let mut parts = pattern.split('/');
    parts.any(|part| {
        let names = FILES.iter().chain(FOLDERS);
        let mut names = names.flat_map(|name| name.split('/'));
        part.starts_with('.') && part.contains('*') && names.any(|name| is_like(part, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_without_its_name() {
        let table = [
            ("echo x >> .g?t/config", true),
            ("echo x >> .gi*/config", true),
            ("cp plain .env*", true),
            ("f=.git/config; echo x >> $f", true),
            ("ed -s .g*/config", true),
            ("rm -rf .*", true),
            ("cat .g*/config", false),
            ("echo x > out.*", false),
            ("prettier --write *.json", false),
            ("echo $x > \"$out\"", false),
            ("cp src/*.rs /tmp", false),
            ("rm .eslintcache*", false),
        ];
        for (line, expected) in table {
            assert_eq!(may_write(line), expected, "{line}");
        }
    }
}
