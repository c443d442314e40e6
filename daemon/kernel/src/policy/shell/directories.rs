//! Where the commands of a line may run: the folders that `cd` and options like it may lead to.

use super::runs::{ProgramRun, Runs};
use super::word::{Word, base_name};

/// How many folders a line may be in. With more, it is not known where it is.
const MAX_FOLDERS: usize = 16;

/// Variables that change where `cd` leads, or that run a text before the next command.
const GUIDING: &[&str] = &["CDPATH", "PROMPT_COMMAND", "DIRSTACK"];

/// Builtins after which `cd`, or another name, may lead elsewhere.
const UNSETTLING: &[&str] = &[
    ".",
    "source",
    "alias",
    "shopt",
    "trap",
    "enable",
    "exec",
    "fc",
    "bind",
    "eval",
    "mapfile",
    "readarray",
];

/// Builtins that set variables. With a name that is computed, it may be one of [`GUIDING`].
const SETTING: &[&str] = &[
    "declare", "export", "local", "read", "readonly", "typeset", "getopts", "printf",
];

/// Programs with an option that names the folder in which they work.
const WITH_FOLDER: &[&str] = &["env", "git", "make", "gmake", "sudo", "tar", "ninja"];

/// The folders that a line may be in.
#[derive(Debug)]
pub(crate) struct Directories {
    /// Relative to where the line began, which is the first, or absolute.
    pub folders: Vec<String>,
    /// Whether the line may also be elsewhere.
    pub is_unknown: bool,
}

impl Default for Directories {
    fn default() -> Self {
        Self {
            folders: vec![String::new()],
            is_unknown: false,
        }
    }
}

impl Directories {
    /// Adds the folders that the commands of a line may run in.
    pub(crate) fn read(&mut self, text: &str, runs: &Runs) {
        let goes = runs.programs.iter().any(goes);
        self.is_unknown |= goes && GUIDING.iter().any(|name| text.contains(name));
        for run in &runs.programs {
            self.program(run);
        }
    }

    /// Returns the folders that a line may leave its shell in, or `None` if that is not known.
    pub(crate) fn after(text: &str) -> Option<Vec<String>> {
        let runs = Runs::of(text);
        let mut directories = Self::default();
        directories.read(text, &runs);
        let is_unsettled = runs.anything
            || GUIDING.iter().any(|name| text.contains(name))
            || runs.programs.iter().any(unsettles);
        (!directories.is_unknown && !is_unsettled).then_some(directories.folders)
    }

    fn program(&mut self, run: &ProgramRun) {
        let Some((program, arguments)) = run.words.split_first() else {
            return;
        };
        match program.text().map(base_name) {
            Some("cd" | "chdir") => match operands(arguments).as_slice() {
                [.., to] => self.go(to),
                [] => self.is_unknown = true,
            },
            Some("pushd") => {
                if let [.., to] = operands(arguments).as_slice()
                    && !to.prefix().starts_with('+')
                {
                    self.go(to);
                }
            }
            Some(name) if WITH_FOLDER.contains(&name) => {
                for (at, word) in arguments.iter().enumerate() {
                    let is_option = matches!(word.text(), Some("-C" | "--chdir" | "--directory"));
                    let to = match arguments.get(at + 1) {
                        Some(next) if is_option => Some(next.clone()),
                        _ => ["--chdir=", "--directory="]
                            .iter()
                            .find_map(|option| word.without_prefix(option)),
                    };
                    if let Some(to) = to {
                        self.go(&to);
                    }
                }
            }
            _ => {}
        }
    }

    /// Follows `cd`. It may have failed, or have led only a part of the line there.
    fn go(&mut self, to: &Word) {
        let Some(to) = to.text().filter(|to| *to != "-" && !to.starts_with('~')) else {
            self.is_unknown = true;
            return;
        };
        let entered: Vec<String> = if to.starts_with('/') {
            vec![to.to_owned()]
        } else {
            self.folders.iter().map(|it| below(it, to)).collect()
        };
        for folder in entered {
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        if self.folders.len() > MAX_FOLDERS {
            self.is_unknown = true;
            self.folders.truncate(MAX_FOLDERS);
        }
    }
}

/// Returns a name below a folder. An empty folder is where the line began.
pub(crate) fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() || name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn goes(run: &ProgramRun) -> bool {
    let name = run.words.first().and_then(Word::text).map(base_name);
    matches!(name, Some("cd" | "chdir" | "pushd" | "popd"))
}

fn unsettles(run: &ProgramRun) -> bool {
    let Some((program, arguments)) = run.words.split_first() else {
        return false;
    };
    let Some(name) = program.text() else {
        return true;
    };
    let is_computed = |word: &Word| word.is_computed() && word.prefix().is_empty();
    UNSETTLING.contains(&name) || (SETTING.contains(&name) && arguments.iter().any(is_computed))
}

/// Returns the words that are no options.
fn operands(arguments: &[Word]) -> Vec<&Word> {
    let is_option = |word: &&Word| word.prefix().starts_with('-') && word.text() != Some("-");
    arguments.iter().filter(|word| !is_option(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_a_line_are_collected() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("ls", Some(&[""])),
            ("cd a/b", Some(&["", "a/b"])),
            ("cd a && cd ../b", Some(&["", "a", "../b", "a/../b"])),
            ("cd /x; cd /x", Some(&["", "/x"])),
            ("cd -P a", Some(&["", "a"])),
            ("pushd a; popd", Some(&["", "a"])),
            ("export A=b; set -e; umask 22", Some(&[""])),
            ("f() { cd a; }", Some(&["", "a"])),
            ("cd", None),
            ("cd -", None),
            ("cd ~", None),
            ("cd ~/x", None),
            ("cd \"$d\"", None),
            ("f() { cd \"$1\"; }", None),
            ("alias x='cd a'", None),
            ("source x", None),
            (". ./x", None),
            ("eval \"$x\"", None),
            ("CDPATH=a", None),
            ("export CDPATH=a", None),
            ("export \"$x\"", None),
            ("PROMPT_COMMAND='cd a'", None),
            ("exec bash", None),
            ("echo 'open", None),
        ];
        for (line, folders) in table {
            let after = Directories::after(line);
            let after: Option<Vec<&str>> = after
                .as_ref()
                .map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(after.as_deref(), *folders, "{line}");
        }
        let many: Vec<String> = (0..20).map(|at| format!("cd a{at}")).collect();
        assert_eq!(Directories::after(&many.join("; ")), None);
    }
}
