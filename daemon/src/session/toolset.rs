//! The tools a session offers its model right now: built in, plus what its clients brought, less
//! what the configuration filters out. Computed when needed, kept nowhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use loopd_proto::session::{ClientTool, SessionOptions};
use serde_json::json;

use super::clients::attach::Attachment;
use crate::services::Services;
use crate::subagent::definitions::{self, Roster, ToolOrigin};
use crate::tool::DynTool;
use crate::tool::task::TASK;
use loopd_exec::terminal::Backend;
use loopd_kernel::model::ToolSpec;
use loopd_kernel::state::State;

/// The name of the tool that asks a person.
pub(super) const ASK_USER: &str = "ask_user";

/// Where a tool runs.
#[derive(Clone)]
pub(super) enum Origin {
    BuiltIn(Arc<dyn DynTool>),
    /// In the daemon's session: a question to the user.
    AskUser,
    Client(Arc<ClientTool>),
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) spec: ToolSpec,
    pub(super) origin: Origin,
}

/// The tools of one moment.
#[derive(Clone, Default)]
pub(super) struct Toolset {
    entries: Vec<Entry>,
}

impl Toolset {
    pub(super) fn of(
        state: &State,
        services: &Services,
        attachments: &[Attachment],
        backend: Backend,
        roster: &Roster,
    ) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let client_tools: Vec<Arc<ClientTool>> = attachments
            .iter()
            .filter_map(|attachment| attachment.offer.tools.as_ref())
            .flatten()
            .map(|tool| Arc::new(tool.clone()))
            .collect();
        let profile = state.subagent.as_ref().map(|own| &own.profile);
        // Subagents answer to who started them, and ask nobody; a fork is given what its parent was.
        let asks = profile.is_none_or(|profile| profile.fork);
        let can_ask = asks
            && state.options.ask_user_disabled != Some(true)
            && attachments.iter().any(|a| a.offer.request_user_input);
        for spec in &services.tool_specs {
            let replaced = client_tools
                .iter()
                .any(|client| client.name == spec.name && client.overrides_built_in_tool);
            let Some(tool) = services.catalog.get(&spec.name) else {
                continue;
            };
            let origin = if spec.name == ASK_USER {
                if !can_ask {
                    continue;
                }
                Origin::AskUser
            } else if backend == Backend::Process && tool.needs_terminal() {
                continue;
            } else {
                Origin::BuiltIn(tool)
            };
            if !replaced {
                let spec = if spec.name == TASK {
                    with_agents(spec, state, roster)
                } else {
                    spec.clone()
                };
                entries.push(Entry { spec, origin });
            }
        }
        for tool in client_tools {
            if entries.iter().any(|entry| entry.spec.name == tool.name) {
                continue;
            }
            entries.push(Entry {
                spec: ToolSpec {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    parameters: tool
                        .parameters
                        .clone()
                        .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
                },
                origin: Origin::Client(tool),
            });
        }
        entries.retain(|entry| is_offered(state, entry));
        Self { entries }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.name == name)
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.entries
            .iter()
            .map(|entry| entry.spec.clone())
            .collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.spec.name.as_str())
    }

    /// The names of tools that run in a client, and so may leave with it.
    pub(super) fn client_names(&self) -> BTreeSet<String> {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.origin, Origin::Client(_)))
            .map(|entry| entry.spec.name.clone())
            .collect()
    }
}

/// Whether the configuration lets the agent that answers now see this tool.
fn is_offered(state: &State, entry: &Entry) -> bool {
    let options: &SessionOptions = &state.options;
    let named = |list: &Option<Vec<String>>| {
        list.as_ref()
            .is_some_and(|list| list.iter().any(|pattern| matches(pattern, entry)))
    };
    let excluded = named(&options.excluded_tools);
    let available = options.available_tools.is_none() || named(&options.available_tools);
    let kept = if options.tool_filter_precedence.as_deref() == Some("available")
        && options.available_tools.is_some()
    {
        available
    } else {
        available && !excluded
    };
    if !kept {
        return false;
    }
    let origin = match entry.origin {
        Origin::Client(_) => ToolOrigin::Client,
        Origin::BuiltIn(_) | Origin::AskUser => ToolOrigin::BuiltIn,
    };
    if let Some(profile) = state.subagent.as_ref().map(|own| &own.profile)
        && !profile.fork
    {
        let (tools, off) = (profile.tools.as_deref(), &profile.disallowed_tools);
        return definitions::allows(tools, off, &entry.spec.name, origin);
    }
    let agent = state.agent.as_ref().map(|name| {
        let mut agents = options.custom_agents.iter().flatten();
        // A client may define its agents anew; those of files keep what they were selected with.
        match agents.find(|agent| agent.name == *name) {
            Some(agent) => &agent.tools,
            None => &state.agent_tools,
        }
    });
    match agent {
        Some(tools) => tools.as_ref().is_none_or(|tools| {
            tools
                .iter()
                .any(|pattern| pattern == "*" || matches(pattern, entry))
        }),
        None => !options.default_agent.as_ref().is_some_and(|agent| {
            agent
                .excluded_tools
                .iter()
                .flatten()
                .any(|pattern| matches(pattern, entry))
        }),
    }
}

/// The tool `task` with the agents that may be started, so that a model can choose.
fn with_agents(spec: &ToolSpec, state: &State, roster: &Roster) -> ToolSpec {
    let settings = state.options.subagents.as_ref();
    let off = settings.and_then(|settings| settings.disabled_subagents.as_ref());
    let is_off =
        |name: &str| off.is_some_and(|off| off.iter().any(|it| definitions::is_same(it, name)));
    let agents: Vec<_> = roster
        .startable()
        .filter(|agent| !is_off(&agent.name))
        .collect();
    let mut spec = spec.clone();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    if let Some(kind) = spec.parameters.pointer_mut("/properties/agent_type") {
        *kind = json!({
            "type": "string",
            "enum": names,
            "description": "Which agent. Of two that fit, prefer one of the project or the user over a built-in one.",
        });
    }
    spec.description.push_str("\n\nThe agents:");
    for agent in agents {
        let what = agent
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Writing to a string cannot fail.
        write!(spec.description, "\n- {}: {what}", agent.name).ok();
    }
    spec
}

/// A pattern is a name, or `builtin:` / `custom:` followed by a name or `*`.
fn matches(pattern: &str, entry: &Entry) -> bool {
    let is_client = matches!(entry.origin, Origin::Client(_));
    let names = |name: &str| name == "*" || name == entry.spec.name;
    match pattern.split_once(':') {
        Some(("builtin", name)) => !is_client && names(name),
        Some(("custom", name)) => is_client && names(name),
        Some(_) => false,
        None => pattern == entry.spec.name,
    }
}
