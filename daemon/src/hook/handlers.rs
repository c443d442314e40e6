//! The hooks in force in a session: those of files and those of clients.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopd_proto::id::SessionId;
use parking_lot::Mutex;

use super::condition::condition_holds;
use super::input::HookInput;
use crate::client::Client;
use crate::discovery::hooks::{
    HookDefinition, HookKind, MatchSubject, runs_commands, shows_output,
};
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::tool_call::McpToolRef;

/// How many things about the answers of one hook people are told.
const MOST_TOLD: usize = 100;

/// The hooks in force in a session. A sub-agent has those of its parents and its own.
#[derive(Clone, Default)]
pub struct Hooks {
    /// The clients at the top that answer hooks.
    pub clients: Vec<HookClient>,
    /// The apps whose hooks guard the session and that are not there.
    pub missing: ClientGuards,
    /// The hooks of files, those of whoever owns the machine first.
    pub files: Vec<Arc<FileHook>>,
}

/// A client that answers hooks.
#[derive(Clone)]
pub struct HookClient {
    pub client: Arc<dyn Client>,
    /// The name of its app; empty if it has none.
    pub name: String,
    /// The session that the client opened: the one at the top of those that it guards.
    pub session: SessionId,
}

impl HookClient {
    pub fn is(&self, other: &Self) -> bool {
        self.client.id() == other.client.id()
    }
}

/// A hook of a file, and whether it ran.
#[derive(Debug)]
pub struct FileHook {
    pub definition: HookDefinition,
    ran: AtomicBool,
    /// What people were told of its answers.
    told: Mutex<BTreeSet<String>>,
}

impl FileHook {
    pub fn new(definition: HookDefinition) -> Self {
        Self {
            definition,
            ran: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// Returns whether people were not told this of its answers yet.
    pub(super) fn is_news(&self, what: &str) -> bool {
        let mut told = self.told.lock();
        told.len() < MOST_TOLD && told.insert(what.to_owned())
    }

    /// Returns whether the hook may run now. A hook that runs once in a session is taken by this.
    pub(super) fn take(&self) -> bool {
        !self.definition.once || !self.ran.swap(true, Ordering::Relaxed)
    }

    /// Names the hook for people: its file and line.
    pub fn name(&self) -> String {
        format!(
            "{}:{}",
            self.definition.file.display(),
            self.definition.line
        )
    }

    /// Whether the hook may have something to say about a subject of this kind. `of_servers` are the tools
    /// of MCP servers that the subject may be.
    pub(super) fn is_for(
        &self,
        kind: HookKind,
        subject: Option<&str>,
        of_servers: &[McpToolRef],
    ) -> bool {
        let matcher = &self.definition.matcher;
        self.definition.kind == kind
            && subject.is_none_or(|subject| match kind.subject() {
                Some(MatchSubject::Tool) => {
                    // What is typed into a shell runs there: whoever guards `bash` guards it, too.
                    // What is read of its output is that of a command: whoever reviews `bash` reviews it.
                    let runs = match kind {
                        HookKind::PostToolUse => shows_output(subject),
                        _ => kind.is_guard() && runs_commands(subject),
                    };
                    matcher.matches_tool(subject)
                        || (runs && matcher.matches_tool("bash"))
                        || matcher.matches_mcp_tool(of_servers)
                }
                Some(_) => matcher.matches(subject),
                None => true,
            })
    }

    /// Whether the condition of the hook holds for a call. A guard is asked unless it certainly does
    /// not.
    fn covers(&self, input: &HookInput, cwd: &Path, of_servers: &[McpToolRef]) -> bool {
        let (Some(condition), Some(tool)) = (&self.definition.condition, &input.subject) else {
            return true;
        };
        condition_holds(
            condition,
            (tool, of_servers),
            input.arguments(),
            cwd,
            self.definition.kind.is_guard(),
        )
    }
}

impl Hooks {
    pub(super) fn files_for<'a>(
        &'a self,
        input: &'a HookInput,
        cwd: &'a Path,
        of_servers: &'a [McpToolRef],
    ) -> impl Iterator<Item = &'a Arc<FileHook>> {
        let subject = input.subject.as_deref();
        let hooks = self.files.iter();
        hooks.filter(move |hook| {
            hook.is_for(input.kind, subject, of_servers) && hook.covers(input, cwd, of_servers)
        })
    }
}
