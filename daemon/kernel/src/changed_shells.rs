//! Shells of a session that commands may have changed, so that names in them may mean something
//! else than in a fresh shell, and the directories that they may be in. A fold of the log.

use std::collections::{BTreeMap, BTreeSet};

use loopd_proto::event::tool::ToolComplete;

use super::model::ToolCall;
use super::policy::plain;
use super::policy::shell::changes::changes_shell;
use super::policy::shell::directories::{Directories, below};
use super::policy::typed::{UnfinishedLine, stops_only};
use super::state::Turn;
use super::texts;

/// The tools that run a command in a shell, and those that type into one.
const RUNNING: [&str; 2] = ["bash", "powershell"];
const TYPING: [&str; 2] = ["write_bash", "write_powershell"];
/// The tools that close a shell.
const STOPPING: [&str; 2] = ["stop_bash", "stop_powershell"];

/// In how many directories a shell may be. With more, it is not known where it is.
const MAX_DIRECTORIES: usize = 16;

/// The shells that were used under a name. A shell stays in it also when it has ended and another
/// one has its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedShells(BTreeMap<String, UsedShell>);

/// What earlier commands may have made of a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct UsedShell {
    /// Whether names may mean something else.
    is_changed: bool,
    /// The directories that it may be in; `None` if that is not known.
    directories: Option<BTreeSet<String>>,
    /// What was typed into the program that runs in it and was not ended by {enter}.
    line: UnfinishedLine,
    /// Whether a command in it may have left something in the background.
    has_jobs: bool,
    /// Whether the model was told that the shell is gone.
    gone: ToldGone,
}

/// Whether the model was told that a shell is gone, so that its next command may run in a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ToldGone {
    #[default]
    No,
    /// By the result of a call of its last message. The other calls of that message do not know it.
    ByLastMessage,
    Yes,
}

impl ChangedShells {
    /// Takes the end of a call in a session that works in `cwd`. A call that was not permitted
    /// changed nothing.
    pub(crate) fn after(&mut self, call: &ToolCall, complete: &ToolComplete, cwd: &str) {
        let code = complete
            .error
            .as_ref()
            .and_then(|error| error.code.as_deref());
        if matches!(code, Some("denied" | texts::REJECTED_CODE)) {
            return;
        }
        let Some(id) = shell(call) else {
            return;
        };
        let name = call.name.as_str();
        if STOPPING.contains(&name)
            && complete.success
            && let Some(used) = self.0.get_mut(id)
        {
            used.has_jobs = false;
        }
        if !RUNNING.contains(&name) && !TYPING.contains(&name) {
            return;
        }
        let used = self.0.entry(id.to_owned()).or_insert_with(|| UsedShell {
            is_changed: false,
            directories: Some(BTreeSet::from([cwd.to_owned()])),
            line: UnfinishedLine::default(),
            has_jobs: false,
            gone: ToldGone::No,
        });
        if code == Some(texts::SHELL_GONE_CODE) {
            used.gone = ToldGone::ByLastMessage;
            used.has_jobs = false;
            return;
        }
        let text = command_of(call).or_else(|| input_of(call));
        used.has_jobs |= text.is_some_and(leaves_job);
        if RUNNING.contains(&name) {
            used.gone = ToldGone::No;
        }
        if let Some(input) = input_of(call) {
            used.line = std::mem::take(&mut used.line).after(input);
        } else if RUNNING.contains(&name) && complete.success {
            // The shell runs another command, so the program before it has ended.
            used.line = UnfinishedLine::default();
        }
        if changed_by(call).is_some() {
            used.is_changed = true;
            used.directories = used.directories.take().and_then(|at| moved(at, call));
        }
    }

    /// Takes a message of the model, which knows the results of the calls before it.
    pub(crate) fn after_message(&mut self) {
        for used in self.0.values_mut() {
            if used.gone == ToldGone::ByLastMessage {
                used.gone = ToldGone::Yes;
            }
        }
    }

    /// Whether the model still counts on what earlier commands made of a shell. If the shell is
    /// gone, it has to be told before a command runs in a new one.
    pub fn is_counted_on(&self, id: &str) -> bool {
        let used = self.0.get(id);
        used.is_some_and(|used| used.is_changed && used.gone != ToldGone::Yes)
    }

    /// Returns the ids of the shells in which commands may have left something in the background.
    pub(crate) fn with_jobs(&self) -> impl Iterator<Item = &str> {
        let left = self.0.iter().filter(|(_, used)| used.has_jobs);
        left.map(|(id, _)| id.as_str())
    }

    /// Returns the ids of the shells that were changed.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let changed = self.0.iter().filter(|(_, used)| used.is_changed);
        changed.map(|(id, _)| id.as_str())
    }

    /// Whether a call runs in a shell that was changed, or that one of these other calls may
    /// change before it runs.
    pub(crate) fn has_shell_of<'c>(
        &self,
        call: &ToolCall,
        mut others: impl Iterator<Item = &'c ToolCall>,
    ) -> bool {
        // Without a name, a command gets a fresh shell.
        shell(call).is_some_and(|id| {
            self.0.get(id).is_some_and(|used| used.is_changed)
                || others.any(|other| changed_by(other) == Some(id))
        })
    }

    /// Returns the unfinished line that a call which types goes on with. It is not known beside
    /// another call that types into the same program and comes before it.
    pub(crate) fn line_of<'c>(
        &self,
        call: &ToolCall,
        mut earlier: impl Iterator<Item = &'c ToolCall>,
    ) -> UnfinishedLine {
        let Some(id) = shell(call).filter(|_| input_of(call).is_some()) else {
            return UnfinishedLine::default();
        };
        if earlier.any(|other| input_of(other).is_some() && shell(other) == Some(id)) {
            return UnfinishedLine::Unknown;
        }
        self.0
            .get(id)
            .map(|used| used.line.clone())
            .unwrap_or_default()
    }

    /// Returns what may stand on the line that a call of this turn types into; `None` if that is not known.
    pub fn typed_before(&self, call: &ToolCall, turn: &Turn) -> Option<Vec<String>> {
        if input_of(call).is_none_or(stops_only) {
            return Some(vec![String::new()]);
        }
        let earlier = turn.calls().iter().take_while(|it| it.call.id != call.id);
        let earlier = earlier.filter(|other| other.is_open());
        let line = self.line_of(call, earlier.map(|other| &other.call));
        line.candidates()
    }

    /// Returns the directories that the shell of a call may be in, or `None` if that is not known:
    /// what is typed, and what runs beside a call that changes the shell, may be anywhere.
    pub(crate) fn directories_of<'c>(
        &self,
        call: &ToolCall,
        cwd: &str,
        mut others: impl Iterator<Item = &'c ToolCall>,
    ) -> Option<Vec<String>> {
        if TYPING.contains(&call.name.as_str()) {
            return None;
        }
        let Some(id) = shell(call) else {
            return Some(Vec::new());
        };
        if others.any(|other| changed_by(other) == Some(id)) {
            return None;
        }
        self.directories(id, cwd)
    }

    /// Returns the directories other than `cwd` that a shell may be in, or `None` if that is not
    /// known.
    pub fn directories(&self, id: &str, cwd: &str) -> Option<Vec<String>> {
        let Some(used) = self.0.get(id) else {
            return Some(Vec::new());
        };
        let directories = used.directories.as_ref()?.iter();
        let others = directories.filter(|directory| *directory != cwd);
        Some(others.cloned().collect())
    }
}

/// Returns the directories that a shell may be in after a call, or `None` if that is not known.
fn moved(at: BTreeSet<String>, call: &ToolCall) -> Option<BTreeSet<String>> {
    if TYPING.contains(&call.name.as_str()) {
        return None;
    }
    let text = call.arguments.get("command")?.as_str()?;
    let folders = Directories::after(text)?;
    let mut all = at.clone();
    for directory in at {
        for folder in &folders {
            let moved = plain(&below(&directory, folder));
            all.insert(moved.to_string_lossy().into_owned());
        }
    }
    (all.len() <= MAX_DIRECTORIES).then_some(all)
}

/// Returns the shell that a call may change.
fn changed_by(call: &ToolCall) -> Option<&str> {
    let id = shell(call)?;
    let name = call.name.as_str();
    let changes = TYPING.contains(&name)
        || (RUNNING.contains(&name)
            && call
                .arguments
                .get("command")
                .and_then(serde_json::Value::as_str)
                .is_none_or(changes_shell));
    changes.then_some(id)
}

/// Returns the command that a call runs in a shell.
pub(crate) fn command_of(call: &ToolCall) -> Option<&str> {
    let command = call.arguments.get("command");
    let command = command.filter(|_| RUNNING.contains(&call.name.as_str()));
    command.and_then(serde_json::Value::as_str)
}

/// Returns what a call types into a program.
pub(crate) fn input_of(call: &ToolCall) -> Option<&str> {
    let input = call.arguments.get("input");
    let input = input.filter(|_| TYPING.contains(&call.name.as_str()));
    input.and_then(serde_json::Value::as_str)
}

/// Whether a command may leave something in the background: it has a `&` that neither joins commands nor
/// belongs to a redirection.
fn leaves_job(command: &str) -> bool {
    let letters: Vec<char> = command.chars().collect();
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in letters.iter().enumerate() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (letter, quote) {
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(*letter),
            (letter, Some(open)) if *letter == open => quote = None,
            ('&', None) => {
                let before = at.checked_sub(1).and_then(|before| letters.get(before));
                let joins = |beside: Option<&char>, others: &[char]| {
                    beside.is_some_and(|beside| others.contains(beside))
                };
                if !joins(before, &['&', '>', '<', '|']) && !joins(letters.get(at + 1), &['&', '>'])
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn shell(call: &ToolCall) -> Option<&str> {
    call.arguments
        .get("shellId")
        .and_then(serde_json::Value::as_str)
}

#[cfg(test)]
mod tests;
