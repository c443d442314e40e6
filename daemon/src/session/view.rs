//! The parts of a session that others may read but not change.

use std::collections::BTreeSet;
use std::sync::Arc;

use loopd_proto::id::RequestId;
use loopd_proto::session::{ClientCommand, SessionOptions};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::SessionError;
use super::actor::Actor;
use super::subagents::tree::Tree;
use super::todos::SqlCell;
use crate::client::ClientId;
use crate::launch::Launch;
use crate::mcp::{McpCell, McpLookup};
use crate::publish::Audience;
use crate::publish::recent::Recent;
use crate::redaction::Redaction;
use crate::skill::{SkillCell, SkillLookup, SkillView};
use crate::subagent::Subagents;
use crate::subagent::definitions::Roster;
use crate::tool::capture::{Captures, Workspace};
use crate::tool::mcp::McpTasks;
use crate::turn::instructions::InstructionLookup;
use crate::turn::route::Route;
use loopd_exec::shells::{CommandContext, Shells};
use loopd_kernel::model::ToolSpec;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::state::State;
use loopd_model::secret::Secret;

/// A read-only view of a session.
pub struct View<'a> {
    pub state: &'a State,
    /// Whether what happened waits to be stored; the session goes on when that is done.
    pub unstored: bool,
    pub recent: &'a Recent,
    /// Counts up with each event that is published.
    pub ticks: &'a watch::Sender<u64>,
    /// Whether any client is attached.
    pub in_use: bool,
    pub launch: Option<&'a Arc<Launch>>,
    /// The configuration with its secrets.
    pub options: &'a SessionOptions,
    pub api_token: Option<&'a Secret>,
    pub tools: &'a dyn Fn() -> Vec<Arc<ToolSpec>>,
    /// Which of these are of MCP servers.
    pub mcp_tools: &'a dyn Fn() -> BTreeSet<String>,
    pub commands: &'a dyn Fn() -> Vec<ClientCommand>,
    pub elicitation: bool,
    /// The slash command of the queue that runs in a client, and that client.
    pub queued_command_of: Option<(RequestId, ClientId)>,
    /// How model calls of the session find their provider.
    pub route: &'a dyn Fn() -> Route,
    /// The shell commands of the session.
    pub shells: &'a Shells,
    /// The sub-agents of the session.
    pub agents: &'a Subagents,
    pub(super) sql: &'a SqlCell,
    /// What all sub-agents below this session share, once there are any.
    pub tree: Option<&'a Arc<Tree>>,
    /// The sub-agents that may be started.
    pub roster: &'a dyn Fn() -> Arc<Roster>,
    /// The skills of the moment, where they are looked up, and where those that were found are.
    pub skills: &'a dyn Fn() -> SkillView,
    pub skill_lookup: &'a dyn Fn() -> Option<SkillLookup>,
    pub skill_cell: &'a SkillCell,
    /// Returns what finds the instructions of the session.
    pub instruction_lookup: &'a dyn Fn() -> InstructionLookup,
    pub command_context: &'a dyn Fn() -> CommandContext,
    /// Where earlier versions of files are kept, and where the session works.
    pub captures: &'a dyn Fn() -> (Captures, Workspace),
    /// The clients that receive the events.
    pub audience: &'a Audience,
    /// Whether the session only looks and plans.
    pub planning: Planning,
    /// The secrets that what the session says must not show.
    pub redaction: &'a dyn Fn() -> Redaction,
    /// The MCP servers of the session.
    pub mcp: &'a McpCell,
    /// The tasks on MCP servers that the session has.
    pub mcp_tasks: &'a McpTasks,
    /// Returns what finds the MCP servers; `None` if there are none.
    pub mcp_lookup: &'a dyn Fn() -> Option<McpLookup>,
    /// What a client said about itself to the user interfaces of tools.
    pub app_context: &'a Map<String, Value>,
    /// Whether a client shows the user interfaces of tools.
    pub mcp_apps: bool,
}

/// Reads a session, or learns why its log cannot be read.
pub(super) type Look = Box<dyn FnOnce(Result<&View<'_>, SessionError>) + Send>;

impl Actor {
    pub(super) fn show(&self, look: Look) {
        if let Some(error) = self.storage.unread() {
            look(Err(error));
            return;
        }
        let tools = || self.toolset().specs();
        let mcp_tools = || self.toolset().mcp_names();
        let command_context = || self.command_context();
        let route = || self.route();
        let roster = || self.subagents.roster();
        let skills = || self.skills_view();
        let skill_lookup = || self.skill_lookup();
        let instruction_lookup = || self.instruction_lookup();
        // Who asks for the secrets is about to run something whose output may go to a file.
        let redaction = || {
            let redaction = self.redaction();
            self.file_masks.set(redaction.clone());
            redaction
        };
        let captures = || (self.captures(), self.workspace());
        let mcp_lookup = || self.mcp_lookup();
        let commands = || self.clients.commands().cloned().collect();
        look(Ok(&View {
            state: &self.state,
            unstored: self.storage.is_blocked(),
            recent: &self.recent,
            ticks: &self.ticks,
            in_use: !self.clients.attachments().is_empty(),
            launch: self.clients.launch(),
            options: &self.options,
            api_token: self.clients.api_token(),
            tools: &tools,
            mcp_tools: &mcp_tools,
            commands: &commands,
            elicitation: self.clients.can_elicit(),
            queued_command_of: self.clients.queued_command_of(),
            route: &route,
            shells: &self.shells,
            agents: self.subagents.runs(),
            sql: &self.sql,
            tree: self.subagents.tree(),
            roster: &roster,
            skills: &skills,
            skill_lookup: &skill_lookup,
            skill_cell: &self.skills.cell,
            instruction_lookup: &instruction_lookup,
            command_context: &command_context,
            captures: &captures,
            audience: self.clients.audience(),
            planning: self.planning(),
            redaction: &redaction,
            mcp: &self.mcp.cell,
            mcp_tasks: &self.mcp.tasks,
            mcp_lookup: &mcp_lookup,
            app_context: &self.mcp.app_context,
            mcp_apps: self.clients.offers().any(|offer| offer.request_mcp_apps),
        }));
    }
}
