//! What a program does with one of its words.

use super::programs::{
    ABOUT_VARIABLES, BUILTINS, DATA, DATA_SUBCOMMANDS, DATABASES, HANDING_ON, LEADING,
    NAMING_SUBCOMMANDS, PLAIN_BUILTINS, SCRIPTED, SHELLS, after_wrappers, first_operand,
    has_subcommand, is_condition, is_own_script, is_plain_condition, script_file,
};
use super::{Refusal, TypedLine, TypedText, reach};
use crate::policy::shell::coverage::{self, Coverage};
use crate::policy::shell::runs::{self, code_options};
use crate::policy::shell::script_text;
use crate::policy::shell::word::{Word, base_name};

/// How deep texts of shells are read.
const DEEPEST: usize = 4;

/// A word of a command that has the mark.
pub(super) struct Place<'a> {
    pub(super) line: &'a TypedLine<'a>,
    pub(super) words: &'a [Word],
    /// The same words with what was typed.
    pub(super) actual: &'a [Word],
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl Place<'_> {
    /// Checks that the word is data for its program.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let Some(from) = after_wrappers(self.words) else {
            return Err("what its command runs is not certain".to_owned());
        };
        if self.at <= from {
            return Err("it would be a command".to_owned());
        }
        let own = Self {
            words: self.words.get(from..).unwrap_or_default(),
            actual: self.actual.get(from..).unwrap_or_default(),
            at: self.at - from,
            ..*self
        };
        let path = own.words.first().and_then(Word::text).unwrap_or_default();
        own.program(path)
    }

    fn is_plain(&self) -> bool {
        self.line.typed == TypedText::Plain
    }

    fn unless_plain(&self, why: String) -> Result<(), Refusal> {
        if self.is_plain() { Ok(()) } else { Err(why) }
    }

    fn program(&self, path: &str) -> Result<(), Refusal> {
        let name = base_name(path);
        self.leads_nowhere(name)?;
        if PLAIN_BUILTINS.contains(&name) && !path.contains('/') {
            return self.builtin(name);
        }
        if name == "cd" {
            // What is run there afterwards is checked with the line.
            return Ok(());
        }
        if is_condition(name) {
            return if is_plain_condition(self.words) {
                Ok(())
            } else {
                self.unless_plain("a condition may evaluate it".to_owned())
            };
        }
        if ABOUT_VARIABLES.contains(&name) {
            return self.unless_plain(format!("`{name}` may evaluate it"));
        }
        if SHELLS.contains(&name) || name == "eval" || name == "ssh" {
            return self.shell(name);
        }
        if DATABASES.contains(&name) {
            let begins = self.prefix().starts_with(self.line.mark);
            return if self.is_plain() && !begins {
                Ok(())
            } else {
                Err(format!("`{name}` may evaluate it"))
            };
        }
        if SCRIPTED.contains(&name) {
            return self.scripted(name);
        }
        if name == "find" || name == "gfind" || name == "xargs" {
            return self.handing_on(name);
        }
        if code_options(name).is_some() {
            return self.after_script(name);
        }
        self.other(path, name)
    }

    /// What the word begins with.
    fn prefix(&self) -> &str {
        self.words.get(self.at).map_or("", Word::prefix)
    }

    fn before(&self) -> &str {
        let before = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        before.and_then(Word::text).unwrap_or_default()
    }

    /// Checks that the word does not say where the program finds what it runs.
    fn leads_nowhere(&self, name: &str) -> Result<(), Refusal> {
        let own = self.prefix();
        let attached = |option: &&str| own.starts_with(&format!("{option}="));
        let leads = LEADING.contains(&self.before()) || LEADING.iter().any(|it| attached(&it));
        let is_makefile = matches!(name, "make" | "gmake") && self.before() == "-f";
        // Programs that only look find nothing to run anywhere.
        let looks = DATA.contains(&name) && !SCRIPTED.contains(&name) || name == "tar";
        if (leads && !looks) || is_makefile {
            return Err(format!("it would say where `{name}` finds what it runs"));
        }
        Ok(())
    }

    fn builtin(&self, name: &str) -> Result<(), Refusal> {
        if name != "printf" {
            return Ok(());
        }
        // The first word is the format, and `-v` names a variable.
        let format = self.words.get(1).filter(|word| !word.may_be_option());
        if self.at > 1 && format.and_then(Word::text).is_some() {
            return Ok(());
        }
        self.unless_plain("`printf` may evaluate it".to_owned())
    }

    /// Checks a word of a shell: the argument of a script is data, and a text is read as a line.
    fn shell(&self, name: &str) -> Result<(), Refusal> {
        if SHELLS.contains(&name)
            && let Some(script) = script_file(self.words)
        {
            return if self.at > script {
                Ok(())
            } else {
                Err("it would name the script that runs".to_owned())
            };
        }
        let texts = |words: &[Word]| -> Option<String> {
            let first = match name {
                "eval" => 1,
                // The host comes first.
                "ssh" => first_operand(words)? + 1,
                _ if words.get(1)?.text()? == "-c" => 2,
                _ => return None,
            };
            // What follows the text of a shell is handed to it, and may be evaluated there.
            let texts = words.get(first..)?;
            let is_one = matches!(name, "eval" | "ssh") || texts.len() == 1;
            let texts: Option<Vec<&str>> = texts.iter().map(Word::text).collect();
            texts.filter(|_| is_one).map(|texts| texts.join(" "))
        };
        let (Some(marked), Some(actual)) = (texts(self.words), texts(self.actual)) else {
            return Err(format!("`{name}` may evaluate it"));
        };
        if !self.is_plain() || !marked.contains(self.line.mark) || self.depth >= DEEPEST {
            return Err(format!("`{name}` evaluates the text that it is part of"));
        }
        let inner = TypedLine {
            marked: &marked,
            actual: &actual,
            ..*self.line
        };
        inner.check(self.depth + 1)
    }

    /// Checks a word of a program with a text in its own language.
    fn scripted(&self, name: &str) -> Result<(), Refusal> {
        let arguments = self.words.get(1..).unwrap_or_default();
        let is_awk = ["awk", "gawk", "mawk", "nawk"].contains(&name);
        let is_sed = ["sed", "gsed"].contains(&name);
        let runs = (is_awk && script_text::awk_runs(arguments))
            || (is_sed && script_text::sed_runs(arguments));
        let own = self.prefix();
        let files = ["-f", "--file", "--from-file", "-L"];
        let is_file = files.contains(&self.before())
            || own.starts_with('-') && files.iter().any(|file| own.starts_with(file));
        if runs || is_file {
            return Err(format!("the text for `{name}` may run it"));
        }
        let has_text = self.before() == "-e"
            || own.starts_with("-e")
            || first_operand(self.words) == Some(self.at);
        if !has_text {
            return Ok(());
        }
        if is_sed {
            return Err("it would be part of a text for `sed`, which may run commands".to_owned());
        }
        self.unless_plain(format!("it would be part of a text for `{name}`"))
    }

    /// Checks a word of a program that runs another one for what it finds.
    fn handing_on(&self, name: &str) -> Result<(), Refusal> {
        let runs = |word: &Word| {
            let text = word.text().unwrap_or_default();
            matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir")
        };
        let programs: Vec<usize> = if name == "xargs" {
            reach::program_of_xargs(self.words).into_iter().collect()
        } else {
            let words = self.words.iter().enumerate();
            words
                .filter(|(_, word)| runs(word))
                .map(|(at, _)| at + 1)
                .collect()
        };
        if programs.is_empty() {
            let arguments = self.actual.get(1..).unwrap_or_default();
            return if name != "xargs" && is_covered(name, arguments) {
                Ok(())
            } else {
                Err(format!("what `{name}` runs is not certain"))
            };
        }
        let takes_data = |at: &usize| {
            let called = self.words.get(*at).and_then(Word::text).map(base_name);
            let is_data = |name: &&str| DATA.contains(name) && !SCRIPTED.contains(name);
            called.as_ref().is_some_and(is_data) && self.at != *at
        };
        if programs.iter().all(takes_data) {
            return Ok(());
        }
        Err(format!("`{name}` runs a program that may evaluate it"))
    }

    /// Checks that the word is an argument of a script, and not code of an interpreter.
    fn after_script(&self, name: &str) -> Result<(), Refusal> {
        match script_file(self.words) {
            Some(script) if self.at > script => Ok(()),
            Some(_) => Err("it would name the script that runs".to_owned()),
            None => Err(format!("the code for `{name}` may evaluate it")),
        }
    }

    fn other(&self, path: &str, name: &str) -> Result<(), Refusal> {
        let arguments = self.actual.get(1..).unwrap_or_default();
        let is_quiet = runs::is_quiet(name, arguments);
        let is_data = DATA.contains(&name) || has_subcommand(DATA_SUBCOMMANDS, self.words);
        let filter = ["--jq", "-q", "--template"];
        let has_filter = filter.contains(&self.before())
            || filter.iter().any(|it| self.prefix().starts_with(it));
        let takes = if BUILTINS.contains(&name) && !path.contains('/') {
            false
        } else if is_data {
            is_quiet && (DATA.contains(&name) || !has_filter)
        } else if is_covered(name, arguments) {
            self.is_plain() || !HANDING_ON.contains(&name)
        } else if runs::is_for_running(name) {
            false
        } else {
            is_own_script(path)
                || self.is_plain() && (is_quiet || has_subcommand(NAMING_SUBCOMMANDS, self.words))
        };
        if takes {
            Ok(())
        } else {
            Err(format!("`{name}` is not known to take it as data only"))
        }
    }
}

/// Whether the tables know that a program runs nothing else with these arguments.
pub(super) fn is_covered(name: &str, arguments: &[Word]) -> bool {
    match coverage::of_words(name, arguments, 0) {
        Coverage::Harmless | Coverage::Notable => true,
        Coverage::Unknown | Coverage::Unlisted => false,
    }
}
