//! The hooks in force in a session: those of files and those of clients.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopd_proto::id::SessionId;
use parking_lot::Mutex;
use serde_json::Value;

use super::input::HookInput;
use crate::client::Client;
use crate::discovery::hooks::{
    HookCondition, HookDefinition, HookKind, MatchSubject, TYPING_TOOL, claude_names,
    names_mcp_tool, runs_commands,
};
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::policy::shell::{self, LineFit};
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
                    let runs = kind.is_guard() && runs_commands(subject);
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

/// The arguments of tools that conditions are compared with.
const MAIN_ARGUMENTS: [&str; 6] = ["command", "input", "path", "file_path", "url", "pattern"];

fn condition_holds(
    condition: &HookCondition,
    (tool, of_servers): (&str, &[McpToolRef]),
    arguments: Option<&Value>,
    cwd: &Path,
    is_guard: bool,
) -> bool {
    let types = tool == TYPING_TOOL;
    let is_tool = condition.tool == tool
        || claude_names(tool).contains(&condition.tool.as_str())
        || (types && condition.tool == "bash")
        || names_mcp_tool(&condition.tool, of_servers);
    let Some(pattern) = condition.pattern.as_deref().filter(|_| is_tool) else {
        return is_tool;
    };
    let main = arguments.and_then(|arguments| {
        let mut names = MAIN_ARGUMENTS.iter();
        names.find_map(|name| arguments.get(*name)?.as_str())
    });
    let Some(main) = main else {
        // A patch, for example, which may change any file.
        return is_guard || shell::fits(pattern, "");
    };
    if types && is_guard {
        // What is typed may be the end of a line that began before.
        return true;
    }
    if types || matches!(tool, "bash" | "powershell") {
        let line = main.replace("{enter}", "\n");
        return shell::fits(pattern, main)
            || match shell::fit(pattern, &line) {
                LineFit::Certain => true,
                LineFit::Possible => is_guard,
                LineFit::No => false,
            };
    }
    shell::fits(pattern, main) || (is_guard && fits_path(pattern, main, cwd))
}

/// Whether a path fits a pattern in any spelling: absolute, relative, or the name of the file alone.
fn fits_path(pattern: &str, path: &str, cwd: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    // Claude's rules write `//` for the root of the disk.
    let absolute = pattern.strip_prefix('/').filter(|it| it.starts_with('/'));
    let below = plain.strip_prefix(cwd).ok().map(Path::to_string_lossy);
    let name = plain.file_name().map(|name| name.to_string_lossy());
    let whole = plain.to_string_lossy();
    shell::fits(absolute.unwrap_or(pattern), &whole)
        || below.is_some_and(|below| {
            shell::fits(pattern, &below) || shell::fits(pattern, &format!("/{below}"))
        })
        || name.is_some_and(|name| shell::fits(pattern, &name))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guard_with_a_condition_is_asked_unless_the_call_is_something_else() {
        let table = [
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "echo x; touch b"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": " touch b"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "ls"}),
                false,
                false,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "$x"}),
                true,
                false,
            ),
            (
                "Bash(touch *)",
                "write_bash",
                json!({"input": "uch x{enter}"}),
                true,
                false,
            ),
            (
                "bash(touch *)",
                "write_bash",
                json!({"input": "touch x{enter}"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "view",
                json!({"path": "touch x"}),
                false,
                false,
            ),
            (
                "Write(.env)",
                "create",
                json!({"path": "/app/.env"}),
                true,
                false,
            ),
            (
                "Write(./.env)",
                "create",
                json!({"path": "sub/../.env"}),
                true,
                false,
            ),
            (
                "Write(*.env)",
                "create",
                json!({"path": "/app/.env"}),
                true,
                true,
            ),
            (
                "Write(//app/src/**)",
                "create",
                json!({"path": "src/a"}),
                true,
                false,
            ),
            (
                "Write(src/*)",
                "create",
                json!({"path": "/app/src/a"}),
                true,
                false,
            ),
            (
                "Write(.env)",
                "create",
                json!({"path": "other"}),
                false,
                false,
            ),
            (
                "Edit(.env)",
                "apply_patch",
                json!({"patch": "x"}),
                true,
                false,
            ),
            (
                "mcp__srv__wr(/x*)",
                "srv-wr",
                json!({"path": "/x/y"}),
                true,
                true,
            ),
            (
                "mcp__other__wr(/x*)",
                "srv-wr",
                json!({"path": "/x/y"}),
                false,
                false,
            ),
            (
                "WebFetch(https://a/*)",
                "web_fetch",
                json!({"url": "https://a/b"}),
                true,
                true,
            ),
        ];
        for (condition, tool, arguments, guard, other) in table {
            let (name, pattern) = condition.split_once('(').unwrap_or_default();
            let read = HookCondition {
                tool: name.to_owned(),
                pattern: pattern.strip_suffix(')').map(str::to_owned),
            };
            let server = McpToolRef {
                server: "srv".to_owned(),
                tool: "wr".to_owned(),
            };
            let of_servers = [server];
            let of_servers = of_servers.get(usize::from(tool != "srv-wr")..);
            let tool = (tool, of_servers.unwrap_or_default());
            let holds = |is_guard| {
                condition_holds(&read, tool, Some(&arguments), Path::new("/app"), is_guard)
            };
            let found = (holds(true), holds(false));
            assert_eq!(found, (guard, other), "{condition} {tool:?} {arguments}");
        }
    }
}
