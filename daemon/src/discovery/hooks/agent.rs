//! The hooks in the definition of an agent.

use std::path::{Path, PathBuf};

use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentOrigin};
use crate::regular_file;

use super::definition::{HookOrigin, HookSource};
use super::local_http::LocalHttp;
use super::named_files;
use super::parse::{HookFile, HookFileContent, HookText, parse};

/// The largest file of an agent that is searched for the line of a hook.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Reads the hooks of an agent's definition. A guard that cannot be used is among them and denies: who
/// wrote it meant the agent not to work without it.
pub fn of_agent(agent: &AgentDefinition, local_http: LocalHttp, root: &Path) -> HookFileContent {
    let Some(hooks) = &agent.hooks else {
        return HookFileContent::default();
    };
    // An agent that a client defined comes from no file.
    let path = agent.path.as_deref().unwrap_or(Path::new("customAgents"));
    let folder = folder_of_agent(agent, root);
    let source = HookSource {
        origin: HookOrigin::Agent,
        folder,
        plugin: None,
    };
    let said = serde_json::json!({ "hooks": hooks });
    let text = serde_json::to_string_pretty(&said).unwrap_or_default();
    let mut content = parse(&HookText {
        path,
        text: &text,
        file: HookFile::Own,
        source: &source,
        local_http,
    });
    // What was read is no text of the file.
    let lines = Lines::of(&text, path);
    for problem in &mut content.problems {
        problem.line = lines.in_file(problem.line);
        problem.what = format!("`hooks` of the agent `{}`: {}", agent.name, problem.what);
    }
    for hook in &mut content.hooks {
        named_files::include(hook, root);
    }
    let unusable = std::mem::take(&mut content.unusable_guards).into_iter();
    let unusable: Vec<_> = unusable.map(|it| it.stand_in(path, &source)).collect();
    if let Some(first) = unusable.first() {
        let what = format!(
            "`hooks` of the agent `{}`: a guard cannot be used, so that what it may guard is denied to \
             this agent",
            agent.name
        );
        content.problems.push(Problem {
            line: lines.in_file(Some(first.line)),
            ..Problem::new(path, what)
        });
    }
    content.hooks.extend(unusable);
    for hook in &mut content.hooks {
        hook.line = lines.in_file(Some(hook.line)).unwrap_or(1);
    }
    content
}

/// Returns the folder that has to be trusted with an agent, if its file is part of a project: `x` for
/// `x/.github/agents/a.md`, and the plugin for `plugin/agents/a.md`.
pub fn folder_of_agent(agent: &AgentDefinition, root: &Path) -> Option<PathBuf> {
    let real = agent.path.as_deref()?.canonicalize().ok()?;
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let depth = match agent.origin {
        AgentOrigin::Project => 3,
        AgentOrigin::Plugin => 2,
        AgentOrigin::Client | AgentOrigin::User | AgentOrigin::BuiltIn => return None,
    };
    let folder = real.ancestors().nth(depth);
    let inside = folder.filter(|folder| folder.starts_with(&root));
    match (inside, agent.origin) {
        (Some(folder), _) => Some(folder.to_owned()),
        // A link led elsewhere in the project.
        (None, AgentOrigin::Project) => Some(root),
        (None, _) => None,
    }
}

/// The lines of the hooks as they were read, and those of the file that they come from.
struct Lines<'a> {
    read: &'a str,
    file: String,
}

impl<'a> Lines<'a> {
    fn of(read: &'a str, path: &Path) -> Self {
        Self {
            read,
            // Without the file no line is told.
            file: regular_file::read_text(path, LARGEST_FILE).unwrap_or_default(),
        }
    }

    /// Returns the line of the file that names the kind of a hook, else that of `hooks`.
    fn in_file(&self, line: Option<usize>) -> Option<usize> {
        let names = |text: &str, name: &str| {
            let text = text.trim_start().trim_start_matches(['"', '\'']);
            let rest = text.strip_prefix(name);
            rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
        };
        let mut file = self.file.lines().enumerate();
        let (hooks, _) = file.find(|(_, text)| !text.starts_with(' ') && names(text, "hooks"))?;
        let before = self.read.lines().take(line.unwrap_or_default());
        // The kinds are members of `hooks`, two levels deep.
        let kinds = before.filter_map(|text| text.strip_prefix("    \"")?.split_once("\":"));
        let kind = kinds.last().map(|(kind, _)| kind);
        let at = kind.and_then(|kind| file.find(|(_, text)| names(text, kind)));
        Some(at.map_or(hooks, |(at, _)| at) + 1)
    }
}
