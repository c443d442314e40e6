//! The tools that a session offers its model now: the built-in tools, those of its clients and those of
//! MCP servers, without those that the configuration filters out. The set is computed when needed and never
//! stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use loopd_proto::session::SessionOptions;

use super::clients::attach::Attachment;
use crate::discovery::agents::AgentOrigin;
use crate::services::Services;
use crate::skill::SkillView;
use crate::subagent::definitions::{self, Roster, ToolOrigin};
use crate::tool::context_board::CONTEXT_BOARD;
use crate::tool::mcp::McpTools;
use crate::tool::source::{BuiltInTools, ClientTools, ResolvedTool, ToolSource};
use loopd_exec::terminal::Backend;
use loopd_kernel::autopilot::{Judgement, Situation, TASK_COMPLETE};
use loopd_kernel::model::ToolSpec;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::state::State;
use loopd_kernel::tool_call::McpToolRef;

/// The tools of a session at one moment.
pub(super) struct Toolset<'a> {
    state: &'a State,
    built_in: BuiltInTools<'a>,
    client: ClientTools<'a>,
    mcp: McpTools,
    planning: Planning,
}

impl<'a> Toolset<'a> {
    pub(super) fn of(
        state: &'a State,
        services: &'a Services,
        attachments: &'a [Attachment],
        backend: Backend,
        roster: Arc<Roster>,
        planning: Planning,
        skills: &SkillView,
    ) -> Self {
        let profile = state.subagent.as_ref().map(|own| &own.profile);
        // A sub-agent reports to its parent and asks no users; a fork has its parent's tools.
        let asks = profile.is_none_or(|profile| profile.fork);
        let can_ask = asks
            && state.options.ask_user_disabled != Some(true)
            && attachments.iter().any(|a| a.offer.request_user_input);
        let settings = state.options.subagents.as_ref();
        let off = settings.and_then(|settings| settings.disabled_subagents.as_ref());
        let offered = attachments.iter().filter_map(|it| it.offer.tools.as_ref());
        Self {
            state,
            built_in: BuiltInTools {
                catalog: &services.catalog,
                specs: &services.tool_specs,
                backend,
                can_ask,
                can_leave_plan_mode: planning == Planning::Mode
                    && attachments.iter().any(|a| a.offer.request_exit_plan_mode),
                can_complete: Judgement::of(&Situation::of(state)).offers_tool,
                researches: state.research_report().is_some(),
                has_board: names_board(state) && state.options.shares_notes(),
                skills: loads_skills(state, &roster)
                    .then(|| skills.listing())
                    .flatten(),
                roster,
                agents_off: off.map(Vec::as_slice).unwrap_or_default(),
            },
            client: ClientTools::new(offered.flatten()),
            mcp: McpTools::new(Vec::new()),
            planning,
        }
    }

    /// Adds the tools of MCP servers.
    pub(super) fn with_mcp(self, mcp: McpTools) -> Self {
        Self { mcp, ..self }
    }

    /// Returns the tool with this name.
    pub(super) fn resolve(&self, name: &str) -> Option<ResolvedTool> {
        let source = self
            .sources()
            .find(|source| source.names().contains(&name) && self.is_offered(*source, name))?;
        source.resolve(name)
    }

    pub(super) fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.offered()
            .filter_map(|(source, name)| source.spec(name))
            .collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.offered().map(|(_, name)| name)
    }

    /// Returns the names of tools of MCP servers.
    pub(super) fn mcp_names(&self) -> BTreeSet<String> {
        self.names_from(ToolOrigin::Mcp)
    }

    /// Returns the names of tools that run in a client. These tools go away when the client leaves.
    pub(super) fn client_names(&self) -> BTreeSet<String> {
        self.names_from(ToolOrigin::Client)
    }

    fn names_from(&self, origin: ToolOrigin) -> BTreeSet<String> {
        self.offered()
            .filter(|(source, _)| source.origin() == origin)
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    /// Lists the sources in the order in which the model sees their tools.
    fn sources(&self) -> impl Iterator<Item = &dyn ToolSource> {
        // Models see those of MCP servers before those of clients.
        [&self.built_in as &dyn ToolSource, &self.mcp, &self.client].into_iter()
    }

    fn offered(&self) -> impl Iterator<Item = (&dyn ToolSource, &str)> {
        self.sources().flat_map(|source| {
            let names = source.names().into_iter();
            names
                .filter(|name| self.is_offered(source, name) && !self.is_hidden(source, name))
                .map(move |name| (source, name))
        })
    }

    /// Returns whether plan mode hides this tool. A call of a hidden tool is resolved all the same,
    /// so that it is refused with the reason.
    fn is_hidden(&self, source: &dyn ToolSource, name: &str) -> bool {
        self.planning.is_on()
            && source.origin() == ToolOrigin::BuiltIn
            && self.built_in.writes(name)
    }

    /// Returns whether the model is offered this tool from this source.
    fn is_offered(&self, source: &dyn ToolSource, name: &str) -> bool {
        let overridden = self.client.overrides(name);
        let counts = match source.origin() {
            ToolOrigin::BuiltIn => !overridden,
            ToolOrigin::Client => overridden || self.built_in.resolve(name).is_none(),
            ToolOrigin::Mcp => {
                !self.client.names().contains(&name) && self.built_in.resolve(name).is_none()
            }
        };
        counts
            && match self
                .mcp_tool(name)
                .filter(|_| source.origin() == ToolOrigin::Mcp)
            {
                Some(tool) => lets_mcp_through(self.state, name, &tool),
                None => lets_through(self.state, &[name], source.origin()),
            }
    }

    /// Returns the tool of an MCP server that models know by this name.
    pub(super) fn mcp_tool(&self, name: &str) -> Option<McpToolRef> {
        self.mcp.reference(name)
    }
}

/// Returns whether the model may load skills. An agent that somebody defined has those that its
/// definition names, in its system message, and loads no others.
fn loads_skills(state: &State, roster: &Roster) -> bool {
    let profile = state.subagent.as_ref().map(|own| &own.profile);
    if let Some(profile) = profile.filter(|profile| !profile.fork) {
        return profile.skills.is_none();
    }
    let Some(agent) = state.agent_in_force() else {
        return true;
    };
    let agent = roster.get(agent);
    agent.is_some_and(|agent| agent.origin == AgentOrigin::BuiltIn)
}

/// Returns whether the configuration allows a tool of an MCP server, by any of its names.
fn lets_mcp_through(state: &State, name: &str, tool: &McpToolRef) -> bool {
    let McpToolRef { server, tool } = tool;
    let names = [
        name.to_owned(),
        format!("{server}/{tool}"),
        format!("{server}/*"),
        server.clone(),
        format!("mcp__{server}__{tool}"),
        format!("mcp__{server}"),
        format!("mcp__{server}__*"),
    ];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lets_through(state, &names, ToolOrigin::Mcp)
}

/// Returns whether the configuration allows the tool with these names for the current agent. A list may
/// use any of them.
fn lets_through(state: &State, names: &[&str], origin: ToolOrigin) -> bool {
    let options: &SessionOptions = &state.options;
    let lists_it = |list: &Option<Vec<String>>| {
        list.as_ref().is_some_and(|list| {
            list.iter()
                .any(|pattern| matches_any(pattern, names, origin))
        })
    };
    let excluded = lists_it(&options.excluded_tools);
    let available = options.available_tools.is_none() || lists_it(&options.available_tools);
    let kept = if options.tool_filter_precedence.as_deref() == Some("available")
        && options.available_tools.is_some()
    {
        available
    } else {
        available && !excluded
    };
    if origin == ToolOrigin::BuiltIn && names.contains(&TASK_COMPLETE) {
        // It belongs to the mode of the session and changes nothing outside, so that a list of tools
        // need not name it.
        return !excluded;
    }
    if !kept || !scopes_allow(state, names, origin) {
        return false;
    }
    if let Some(profile) = state.subagent.as_ref().map(|own| &own.profile)
        && !profile.fork
    {
        let (tools, off) = (profile.tools.as_deref(), &profile.disallowed_tools);
        let run = profile.run_tools.as_deref();
        return allows_any(tools, off, names, |tools, off, name| {
            definitions::allows_subagent(tools, off, name, origin)
        }) && allows_any(run, &[], names, |tools, off, name| {
            definitions::allows(tools, off, name, origin)
        });
    }
    let agent = state.agent.as_ref().map(|agent| {
        let mut agents = options.custom_agents.iter().flatten();
        // A client may redefine its agents. An agent from a file keeps its original tools.
        match agents.find(|known| known.name == *agent) {
            Some(agent) => &agent.tools,
            None => &state.agent_tools,
        }
    });
    match agent {
        Some(tools) => tools.as_ref().is_none_or(|tools| {
            tools
                .iter()
                .any(|pattern| pattern == "*" || matches_any(pattern, names, origin))
        }),
        None => !options.default_agent.as_ref().is_some_and(|agent| {
            agent
                .excluded_tools
                .iter()
                .flatten()
                .any(|pattern| matches_any(pattern, names, origin))
        }),
    }
}

/// Returns whether the agent that answers has the context board among its tools by name. A list that
/// allows every tool does not mean it: notes for later sessions are the work of an agent for that.
fn names_board(state: &State) -> bool {
    let tools = match &state.subagent {
        Some(own) => own.profile.tools.as_ref(),
        None => state.agent_tools.as_ref(),
    };
    tools.is_some_and(|tools| tools.iter().any(|tool| tool == CONTEXT_BOARD))
}

/// Returns whether everything that the messages of the current run set for it allows this tool, and what
/// narrowed the runs above.
fn scopes_allow(state: &State, names: &[&str], origin: ToolOrigin) -> bool {
    let allow = |tools: Option<&[String]>| {
        allows_any(tools, &[], names, |tools, off, name| {
            definitions::allows(tools, off, name, origin)
        })
    };
    let mut above = state.limits_from_above().into_iter();
    state.scopes().iter().all(|scope| {
        let of_agent = scope.agent.as_ref().and_then(|it| it.tools.as_deref());
        allow(scope.tools.as_deref()) && allow(of_agent)
    }) && above.all(|limits| limits.lists.iter().all(|list| allow(Some(list))))
}

/// Returns whether one of the names is allowed and none of them is not.
fn allows_any(
    tools: Option<&[String]>,
    off: &[String],
    names: &[&str],
    allows: impl Fn(Option<&[String]>, &[String], &str) -> bool,
) -> bool {
    names.iter().any(|name| allows(tools, &[], name))
        && names
            .iter()
            .all(|name| off.is_empty() || allows(None, off, name))
}

fn matches_any(pattern: &str, names: &[&str], origin: ToolOrigin) -> bool {
    names.iter().any(|name| matches(pattern, name, origin))
}

/// Matches a tool against a pattern: a name, or `builtin:`, `custom:` or `mcp:` followed by a name or `*`.
pub fn matches(pattern: &str, tool: &str, origin: ToolOrigin) -> bool {
    let names = |name: &str| name == "*" || name == tool;
    match pattern.split_once(':') {
        Some(("builtin", name)) => origin == ToolOrigin::BuiltIn && names(name),
        Some(("custom", name)) => origin == ToolOrigin::Client && names(name),
        Some(("mcp", name)) => origin == ToolOrigin::Mcp && names(name),
        Some(_) => false,
        None => pattern == tool,
    }
}
