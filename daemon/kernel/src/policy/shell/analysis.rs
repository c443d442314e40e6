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
        let read = read.into_iter().map(|place| place.path);
        let read: BTreeSet<String> = read.filter(|path| !written.contains(path)).collect();
        let place = |path| Place {
            path,
            is_pattern: false,
        };
        written.into_iter().chain(read).map(place).collect()
    })
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
