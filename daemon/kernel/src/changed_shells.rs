//! Shells of a session that commands may have changed, so that names in them may mean something
//! else than in a fresh shell. A fold of the log.

use std::collections::BTreeSet;

use loopd_proto::event::tool::ToolComplete;

use super::model::ToolCall;
use super::policy::shell::changes::changes_shell;
use super::texts;

/// The tools that run a command in a shell, and those that type into one.
const RUNNING: [&str; 2] = ["bash", "powershell"];
const TYPING: [&str; 2] = ["write_bash", "write_powershell"];

/// The ids of shells that were changed. A shell stays in it also when it has ended and another one
/// has its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedShells(BTreeSet<String>);

impl ChangedShells {
    /// Takes the end of a call. A call that was not permitted changed nothing.
    pub(crate) fn after(&mut self, call: &ToolCall, complete: &ToolComplete) {
        let code = complete
            .error
            .as_ref()
            .and_then(|error| error.code.as_deref());
        if matches!(code, Some("denied" | texts::REJECTED_CODE)) {
            return;
        }
        if let Some(shell) = changed_by(call) {
            self.0.insert(shell.to_owned());
        }
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
            self.0.contains(id) || others.any(|other| changed_by(other) == Some(id))
        })
    }
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

fn shell(call: &ToolCall) -> Option<&str> {
    call.arguments
        .get("shellId")
        .and_then(serde_json::Value::as_str)
}
