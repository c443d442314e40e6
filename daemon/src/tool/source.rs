//! The sources of tools: the daemon, its clients and MCP servers (`tool/mcp.rs`). Each source lists its tools and resolves a
//! name to what runs a call. `session/toolset.rs` combines the sources of a session.

use std::fmt::Write as _;
use std::sync::Arc;

use loopd_proto::permission::PermissionRequest;
use loopd_proto::session::ClientTool;
use serde_json::{Value, json};

use super::ask_user::ASK_USER;
use super::catalog::Catalog;
use super::context_board::CONTEXT_BOARD;
use super::exit_plan_mode::EXIT_PLAN_MODE;
use super::mcp::McpTool;
use super::report_intent::REPORT_INTENT;
use super::skill::SKILL;
use super::task::TASK;
use super::{AssessContext, DynTool, Need};
use crate::subagent::definitions::{self, Roster};
use loopd_exec::terminal::Backend;
use loopd_kernel::autopilot::TASK_COMPLETE;
use loopd_kernel::model::{CountedOnce, ToolSpec};
use loopd_kernel::policy::planning::ToolClaim;
use loopd_kernel::tool_call::ToolOrigin;

/// One source of tools, as it is at one moment.
pub trait ToolSource {
    fn origin(&self) -> ToolOrigin;

    /// Returns the names of its tools, in the order in which models see them.
    fn names(&self) -> Vec<&str>;

    /// Returns the description of a tool for models.
    fn spec(&self, name: &str) -> Option<Arc<ToolSpec>>;

    /// Finds the tool of this name.
    fn resolve(&self, name: &str) -> Option<ResolvedTool>;
}

/// A tool that was found by its name. It is carried along, so that the name is looked up once.
pub enum ResolvedTool {
    BuiltIn(Arc<dyn DynTool>),
    Client {
        name: String,
        description: String,
        skip_permission: bool,
        is_terminal: bool,
        claim: ToolClaim,
    },
    Mcp(Arc<McpTool>),
}

impl ResolvedTool {
    pub fn origin(&self) -> ToolOrigin {
        match self {
            Self::BuiltIn(_) => ToolOrigin::BuiltIn,
            Self::Client { .. } => ToolOrigin::Client,
            Self::Mcp(_) => ToolOrigin::Mcp,
        }
    }

    /// Returns whether a call that succeeds ends the turn.
    pub fn ends_turn(&self) -> bool {
        match self {
            Self::BuiltIn(_) | Self::Mcp(_) => false,
            Self::Client { is_terminal, .. } => *is_terminal,
        }
    }

    /// Returns what the tool says about itself.
    pub fn claim(&self) -> ToolClaim {
        match self {
            // The request of an MCP tool says whether it only reads.
            Self::BuiltIn(_) | Self::Mcp(_) => ToolClaim::Nothing,
            Self::Client { claim, .. } => *claim,
        }
    }

    /// Returns what a call of the tool needs before it may run.
    pub async fn need(&self, arguments: &Value, context: &AssessContext) -> Need {
        match self {
            Self::BuiltIn(tool) => tool.need(arguments, context).await,
            Self::Mcp(tool) => tool.need(arguments, context).await,
            // In plan mode a tool that may change something is asked about all the same.
            Self::Client {
                skip_permission: true,
                claim,
                ..
            } if !context.planning.is_on() || *claim == ToolClaim::ReadOnly => Need::Nothing,
            Self::Client {
                name, description, ..
            } => Need::Permission(PermissionRequest::CustomTool {
                tool_call_id: None,
                tool_name: name.clone(),
                tool_description: description.clone(),
                args: Some(arguments.clone()),
            }),
        }
    }
}

/// The built-in tools, including those for sub-agents.
pub struct BuiltInTools<'a> {
    pub catalog: &'a Catalog,
    /// The descriptions of all built-in tools for models.
    pub specs: &'a [Arc<ToolSpec>],
    pub backend: Backend,
    /// Whether a client takes questions of the model.
    pub can_ask: bool,
    /// Whether the session is in plan mode, and a client can be asked to end it.
    pub can_leave_plan_mode: bool,
    /// Whether the model can say that its task is complete.
    pub can_complete: bool,
    /// Whether a research goes on.
    pub researches: bool,
    /// Whether the agent that answers asks for the context board by its name.
    pub has_board: bool,
    pub roster: Arc<Roster>,
    /// The names of agents that the configuration turns off.
    pub agents_off: &'a [String],
    /// The list of skills that the model may load; `None` if there are none.
    pub skills: Option<String>,
}

impl BuiltInTools<'_> {
    fn has(&self, tool: &dyn DynTool) -> bool {
        let can_run = self.backend == Backend::Terminal || !tool.needs_terminal();
        can_run
            && (self.can_ask || tool.name() != ASK_USER)
            && (self.can_leave_plan_mode || tool.name() != EXIT_PLAN_MODE)
            && (self.can_complete || tool.name() != TASK_COMPLETE)
            && (self.researches || tool.name() != REPORT_INTENT)
            && (self.skills.is_some() || tool.name() != SKILL)
            && (self.has_board || tool.name() != CONTEXT_BOARD)
    }

    /// Returns whether the tool of this name writes files.
    pub fn writes(&self, name: &str) -> bool {
        self.catalog.get(name).is_some_and(|tool| tool.writes())
    }

    /// Adds to the tool `task` the agents that may be started, so that a model can choose one.
    fn with_agents(&self, spec: &ToolSpec) -> ToolSpec {
        let is_off = |name: &str| {
            let mut off = self.agents_off.iter();
            off.any(|it| definitions::is_same(it, name))
        };
        let agents = self.roster.startable();
        let agents: Vec<_> = agents.filter(|agent| !is_off(&agent.name)).collect();
        let mut spec = ToolSpec {
            counted: CountedOnce::default(),
            ..spec.clone()
        };
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
            let words: Vec<&str> = agent.description.split_whitespace().collect();
            // Writing to a string cannot fail.
            write!(spec.description, "\n- {}: {}", agent.name, words.join(" ")).ok();
        }
        spec
    }
}

impl BuiltInTools<'_> {
    /// Adds to the tool `skill` the skills that may be loaded.
    fn with_skills(&self, spec: &ToolSpec) -> ToolSpec {
        let list = self.skills.as_deref().unwrap_or_default();
        let mut spec = ToolSpec {
            counted: CountedOnce::default(),
            ..spec.clone()
        };
        spec.description.push_str("\n\nThe skills:");
        spec.description.push_str(list);
        spec
    }
}

impl ToolSource for BuiltInTools<'_> {
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::BuiltIn
    }

    fn names(&self) -> Vec<&str> {
        let tools = self.catalog.tools().filter(|tool| self.has(*tool));
        tools.map(DynTool::name).collect()
    }

    fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
        let spec = self.specs.iter().find(|spec| spec.name == name)?;
        Some(match name {
            TASK => Arc::new(self.with_agents(spec)),
            SKILL => Arc::new(self.with_skills(spec)),
            _ => Arc::clone(spec),
        })
    }

    fn resolve(&self, name: &str) -> Option<ResolvedTool> {
        let tool = self.catalog.get(name)?;
        self.has(tool.as_ref())
            .then_some(ResolvedTool::BuiltIn(tool))
    }
}

/// The tools that clients offer. If two have the same name, the first one is used.
pub struct ClientTools<'a>(Vec<&'a ClientTool>);

impl<'a> ClientTools<'a> {
    pub fn new(offered: impl Iterator<Item = &'a ClientTool>) -> Self {
        Self(offered.collect())
    }

    /// Returns whether a client's tool replaces the built-in tool of this name.
    pub fn overrides(&self, name: &str) -> bool {
        let mut tools = self.0.iter();
        tools.any(|tool| tool.name == name && tool.overrides_built_in_tool)
    }

    fn get(&self, name: &str) -> Option<&ClientTool> {
        self.0.iter().find(|tool| tool.name == name).copied()
    }
}

impl ToolSource for ClientTools<'_> {
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Client
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for tool in &self.0 {
            if !names.contains(&tool.name.as_str()) {
                names.push(&tool.name);
            }
        }
        names
    }

    fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
        let tool = self.get(name)?;
        let parameters = tool.parameters.clone();
        Some(Arc::new(ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
            counted: CountedOnce::default(),
        }))
    }

    fn resolve(&self, name: &str) -> Option<ResolvedTool> {
        let tool = self.get(name)?;
        Some(ResolvedTool::Client {
            name: tool.name.clone(),
            description: tool.description.clone(),
            skip_permission: tool.skip_permission,
            is_terminal: tool.is_terminal,
            claim: if tool.only_reads() {
                ToolClaim::ReadOnly
            } else {
                ToolClaim::Nothing
            },
        })
    }
}

/// Checks the tools that a client offers; the error names the member that is wrong.
pub fn check_client_tools(tools: &[ClientTool], catalog: &Catalog) -> Result<(), String> {
    for (at, tool) in tools.iter().enumerate() {
        let mut before = tools.iter().take(at);
        let why = if before.any(|other| other.name == tool.name) {
            "is given twice"
        } else if catalog.get(&tool.name).is_some() && !tool.overrides_built_in_tool {
            "is the name of a built-in tool; set overridesBuiltInTool to replace it"
        } else {
            continue;
        };
        return Err(format!("tools[{at}].name: `{}` {why}", tool.name));
    }
    Ok(())
}
