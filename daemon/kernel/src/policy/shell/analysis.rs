//! Reads a shell command for its permission request: what it certainly runs, or that this is not
//! known.
//!
//! Only a closed, plain subset of bash is understood: words and quoted literals joined by `&&`,
//! `||`, `;` and `|`. Any other text is [`Syntax::Opaque`] and is identified by its whole text,
//! because a parse tree is no proof of what bash runs: bash evaluates even quoted text in some
//! places. `bash` calls this module, which decides nothing and runs nothing.

mod hints;
mod visible;

use std::collections::BTreeSet;

pub use crate::policy::shell::looks::Place;
pub use crate::policy::shell::looks::reach::{ComputedPath, LeftOut, Reach, Shows, Walk, reach};
use crate::policy::shell::word::base_name;
use crate::policy::shell::write_targets::WriteTargets;
use crate::policy::shell::{Argv, identifier, is_harmless, looks, plain, written};

/// Returns the words of a command that rules compare with places on disk: what a command that only
/// looks looks at, and what any other may write to and read. Links among them have to be resolved.
pub fn places(command: &str) -> Vec<Place> {
    if command.len() > looks::MAX_TEXT {
        return Vec::new();
    }
    looks::places(command).unwrap_or_else(|| {
        let written = written::names(command).unwrap_or_default();
        let read = looks::reads::places(command).unwrap_or_default();
        let read = read.places.into_iter().map(|place| place.path);
        let targets = WriteTargets::of(command).unwrap_or_default();
        let read = read.chain(targets.in_folders());
        let read: BTreeSet<String> = read.filter(|path| !written.contains(path)).collect();
        let place = |path| Place {
            path,
            is_pattern: false,
        };
        written.into_iter().chain(read).map(place).collect()
    })
}

/// Returns the words of a plain command that name what it moves. Whoever moves a folder puts all
/// that is in it elsewhere, which no rule for a command covers. Returns `None` if it is not known
/// where the words lead.
pub fn moved(command: &str) -> Option<Vec<String>> {
    let commands = plain::parse(command).unwrap_or_default();
    let mut moved = Vec::new();
    for argv in &commands {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let arguments = match words.as_slice() {
            [program, rest @ ..] if matches!(base_name(program), "mv" | "gmv") => rest,
            [program, "mv", rest @ ..] if base_name(program) == "git" => rest,
            _ => continue,
        };
        let has_target = arguments
            .iter()
            .any(|word| word.starts_with("-t") || word.starts_with("--t"));
        let operands: Vec<&str> = arguments
            .iter()
            .copied()
            .filter(|word| !word.starts_with('-'))
            .collect();
        let kept = usize::from(!has_target);
        let sources = operands.len().saturating_sub(kept);
        moved.extend(operands.iter().take(sources).map(|word| (*word).to_owned()));
    }
    let goes = |argv: &Argv| argv.first().is_some_and(|program| program == "cd");
    (moved.is_empty() || !commands.iter().any(goes)).then_some(moved)
}

/// What is known about a command text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syntax {
    /// The text runs these programs with exactly these arguments, in this order. Some may be
    /// skipped.
    Plain(Vec<Argv>),
    /// The text may run anything.
    Opaque,
}

impl Syntax {
    /// Reads a command text.
    pub fn of(command: &str) -> Self {
        match plain::parse(command) {
            Some(commands) => Self::Plain(commands),
            None => Self::Opaque,
        }
    }
}

/// Whether one approval may cover later commands with the same identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionApproval {
    Offer,
    Withhold,
}

/// Everything a permission request says about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    pub syntax: Syntax,
    /// One for each simple command. An opaque command has one, its whole text.
    pub identifiers: Vec<String>,
    pub session_approval: SessionApproval,
    /// Words that look like paths, as written. They are a hint and no proof of what is touched.
    pub possible_paths: Vec<String>,
    /// Words that look like URLs. They are a hint as well.
    pub possible_urls: Vec<String>,
    pub writes_by_redirection: bool,
    /// A warning for the person who decides.
    pub warning: Option<String>,
}

impl Analysis {
    /// Analyses a command text.
    pub fn of(command: &str) -> Self {
        let syntax = Syntax::of(command);
        let (identifiers, session_approval) = match &syntax {
            Syntax::Plain(commands) => (
                commands.iter().map(|argv| identifier::of(argv)).collect(),
                if commands.iter().all(|argv| is_harmless(argv, 0)) {
                    SessionApproval::Offer
                } else {
                    SessionApproval::Withhold
                },
            ),
            Syntax::Opaque => (vec![command.to_owned()], SessionApproval::Withhold),
        };
        let words = hints::words(command, &syntax);
        Self {
            possible_paths: hints::paths(&words),
            possible_urls: hints::urls(&words),
            writes_by_redirection: hints::writes_by_redirection(command, &syntax),
            warning: visible::warning(command),
            syntax,
            identifiers,
            session_approval,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
