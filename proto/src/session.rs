//! Sessions on the wire: how they are created and resumed, and what a client offers them.

mod autopilot;
mod joiner;
mod limits;
pub mod members;
mod opening;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::id::SessionId;
use crate::params::tool::SubagentSettings;
use crate::permission::ManagedSettings;
pub use crate::provider::{CapabilitiesOverride, ModelConfig, ProviderConfig};

pub use autopilot::AutopilotOptions;
pub use joiner::JoinerOptions;
pub(crate) use limits::refuse_unknown;
pub use limits::{LIMIT_ERROR, LimitKind, SessionLimits};
pub use members::WithoutEffect;
pub use opening::{SessionCreateParams, SessionResumeParams, WorkingDirectoryTrust};

/// The mode of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Interactive,
    Plan,
    Autopilot,
}

/// The options of a session. They outlive the connection and are stored without secrets.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionOptions {
    pub client_name: Option<String>,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    /// How models summarise their reasoning, where a provider has summaries: `none`, `auto`, `concise` or
    /// `detailed`.
    pub reasoning_summary: Option<String>,
    /// The size of the context window that the client asks for.
    pub context_tier: Option<String>,
    pub streaming: Option<bool>,
    #[serde(deserialize_with = "object")]
    pub system_message: Option<SystemMessageConfig>,
    pub available_tools: Option<Vec<String>>,
    pub excluded_tools: Option<Vec<String>>,
    /// Which filter wins for a tool named by both: `available` or `excluded`.
    pub tool_filter_precedence: Option<String>,
    pub default_agent: Option<DefaultAgent>,
    pub working_directory: Option<String>,
    pub additional_directories: Option<Vec<String>>,
    pub provider: Option<ProviderConfig>,
    pub providers: Option<Vec<ProviderConfig>>,
    pub models: Option<Vec<ModelConfig>>,
    /// The client's corrections to the capabilities of its model.
    pub model_capabilities: Option<CapabilitiesOverride>,
    /// Whether models are asked to cite the documents they are given.
    pub enable_citations: Option<bool>,
    pub custom_agents: Option<Vec<CustomAgent>>,
    /// The built-in agents that the session does not have.
    pub excluded_builtin_agents: Option<Vec<String>>,
    /// Whether the model does not get the tool that asks the user.
    pub ask_user_disabled: Option<bool>,
    pub agent: Option<String>,
    /// Whether configuration on disk (agents, skills, instructions, MCP servers) is used in addition to
    /// what the client names; off by default.
    pub enable_config_discovery: Option<bool>,
    /// Whether hooks in files are used; as `enable_config_discovery` when absent. The hooks of whoever
    /// owns the machine are always used.
    pub enable_file_hooks: Option<bool>,
    /// Directories whose instructions the model gets in addition to those of the project.
    pub instruction_directories: Option<Vec<String>>,
    /// Leaves out the instructions of the project and of the user.
    pub skip_custom_instructions: Option<bool>,
    /// The files of instructions that the session does not use, by their paths.
    pub disabled_instruction_sources: Option<Vec<String>>,
    /// Instructions that the client gives as text.
    pub organization_custom_instructions: Option<String>,
    /// Whether instructions for certain files, and those of folders below, follow when such a file is
    /// used; on by default.
    pub enable_on_demand_instruction_discovery: Option<bool>,
    /// Directories whose skills the session has in addition to those that it discovers.
    pub skill_directories: Option<Vec<String>>,
    /// The skills that the session does not use.
    pub disabled_skills: Option<Vec<String>>,
    /// Whether the session has skills at all; as `enable_config_discovery` when absent, except for
    /// those that a client names or provides.
    pub enable_skills: Option<bool>,
    /// Directories whose agents the session may start in addition to those that it discovers.
    pub agent_directories: Option<Vec<String>>,
    /// Directories whose hooks the session has, whether it discovers any or not. Who names one vouches
    /// for the hooks that are in it at that moment.
    pub hook_directories: Option<Vec<String>>,
    /// Whether the session reads and writes what other sessions are shown; yes when absent.
    pub enable_session_store: Option<bool>,
    /// Whether the session and its agents have memories that outlast it.
    #[serde(deserialize_with = "object")]
    pub memory: Option<MemoryOptions>,
    /// Where logins at MCP servers are kept.
    #[serde(rename = "mcpOAuthTokenStorage")]
    pub mcp_token_storage: Option<McpTokenStorage>,
    pub session_limits: Option<SessionLimits>,
    /// Our own member: the models that answer, one after the other, when the provider of the model
    /// before cannot; those of `config.toml` when absent.
    pub fallback_models: Option<Vec<String>>,
    pub large_output: Option<Value>,
    pub infinite_sessions: Option<Value>,
    /// How sub-agents run.
    pub subagents: Option<SubagentSettings>,
    /// Directories of plugins whose agents the session may start.
    pub plugin_directories: Option<Vec<String>>,
    /// Whether clients get the text deltas of sub-agents; on by default.
    pub include_sub_agent_streaming_events: Option<bool>,
    /// Whether earlier versions of files are kept for rewinds. A session has it from its first turn or
    /// not at all.
    pub enable_file_change_tracking: Option<bool>,
    /// How far the agent goes on by itself in autopilot mode.
    #[serde(deserialize_with = "object")]
    pub autopilot: Option<AutopilotOptions>,
    /// MCP servers by name. They are never stored: their keys are in variables, headers, arguments and
    /// addresses.
    #[serde(deserialize_with = "object")]
    pub mcp_servers: Option<Map<String, Value>>,
    /// The names of servers, from wherever, that the session does not use.
    pub disabled_mcp_servers: Option<Vec<String>>,
    pub env_value_mode: Option<EnvValueMode>,
}

/// What the values of environment variables in `mcpServers` are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvValueMode {
    /// The values themselves.
    #[default]
    Direct,
    /// The names of variables of the launch.
    Indirect,
}

/// Where logins at MCP servers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpTokenStorage {
    /// In the home, for all sessions.
    Persistent,
    /// Only clients keep them: the logins of the home are neither used nor written.
    InMemory,
}

/// Memories that outlast a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryOptions {
    /// Yes when absent.
    pub enabled: Option<bool>,
}

impl SessionOptions {
    /// Returns these options, with those that `newer` sets replaced.
    #[must_use]
    pub fn updated_by(mut self, newer: Self) -> Self {
        macro_rules! take {
            ($($field:ident),*) => {$(
                if newer.$field.is_some() { self.$field = newer.$field; }
            )*};
        }
        take!(
            client_name,
            model,
            reasoning_effort,
            reasoning_summary,
            context_tier,
            streaming,
            system_message,
            available_tools,
            excluded_tools,
            tool_filter_precedence,
            default_agent,
            working_directory,
            additional_directories,
            provider,
            providers,
            models,
            model_capabilities,
            enable_citations,
            custom_agents,
            excluded_builtin_agents,
            ask_user_disabled,
            agent,
            enable_config_discovery,
            enable_file_hooks,
            instruction_directories,
            skip_custom_instructions,
            disabled_instruction_sources,
            organization_custom_instructions,
            enable_on_demand_instruction_discovery,
            skill_directories,
            disabled_skills,
            enable_skills,
            agent_directories,
            hook_directories,
            enable_session_store,
            memory,
            mcp_token_storage,
            session_limits,
            fallback_models,
            large_output,
            infinite_sessions,
            subagents,
            plugin_directories,
            include_sub_agent_streaming_events,
            mcp_servers,
            disabled_mcp_servers,
            env_value_mode
        );
        if let Some(newer) = newer.autopilot {
            self.autopilot = Some(self.autopilot.unwrap_or_default().updated_by(newer));
        }
        self
    }

    /// Returns whether the hooks of the user's and the project's files are used.
    pub fn wants_file_hooks(&self) -> bool {
        let discovers = self.enable_config_discovery == Some(true);
        self.enable_file_hooks.unwrap_or(discovers)
    }

    /// Returns whether agents have memories that outlast the session.
    pub fn has_memory(&self) -> bool {
        self.memory.and_then(|memory| memory.enabled) != Some(false)
    }

    /// Returns whether the session has the notes that other sessions wrote, and may write some.
    pub fn shares_notes(&self) -> bool {
        self.has_memory() && self.enable_session_store != Some(false)
    }

    /// Returns the options without keys, tokens and headers, for storage.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        if let Some(provider) = &mut self.provider {
            provider.strip_secrets();
        }
        for provider in self.providers.iter_mut().flatten() {
            provider.strip_secrets();
        }
        // Servers have keys in many places: variables, headers, arguments, addresses.
        for agent in self.custom_agents.iter_mut().flatten() {
            agent.mcp_servers = None;
        }
        self.mcp_servers = None;
        self
    }
}

/// How the client wants the system message built.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemMessageConfig {
    /// `append` (default), `replace` or `customize`.
    pub mode: Option<String>,
    pub content: Option<String>,
    pub sections: Option<BTreeMap<String, SectionOverride>>,
}

/// A change to one section of the system message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SectionOverride {
    pub action: SectionAction,
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SectionAction {
    Replace,
    Remove,
    Append,
    Prepend,
    Preserve,
    /// The client rewrites the section when asked with `systemMessage.transform`.
    Transform,
}

/// Limits on the agent that answers when no custom agent is selected.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultAgent {
    pub excluded_tools: Option<Vec<String>>,
}

/// An agent that the client defines.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomAgent {
    pub name: String,
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub tools: Option<Vec<String>>,
    pub prompt: String,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    /// Whether it is listed to the model; yes when absent.
    pub infer: Option<bool>,
    pub skills: Option<Vec<String>>,
    pub mcp_servers: Option<Value>,
    /// Its hooks, in the form that the file of an agent has.
    pub hooks: Option<Value>,
}

/// What one connection offers to a session; the offer ends with the connection.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientOffer {
    pub tools: Option<Vec<ClientTool>>,
    pub commands: Option<Vec<ClientCommand>>,
    pub request_permission: bool,
    pub request_user_input: bool,
    pub request_exit_plan_mode: bool,
    pub request_auto_mode_switch: bool,
    pub request_elicitation: bool,
    /// Whether the client shows the user interfaces that tools of MCP servers bring.
    pub request_mcp_apps: bool,
    pub hooks: bool,
    /// The client has skills, whose texts it sends when they are used.
    pub has_skill_provider: bool,
    /// Our own member: the client only observes. The session keeps its launch and does not resume
    /// work because of this client.
    #[serde(rename = "loopdObserver", skip_serializing_if = "std::ops::Not::not")]
    pub observer: bool,
}

/// A tool that runs in the client.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    #[serde(deserialize_with = "not_empty")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub parameters: Option<Value>,
    #[serde(default)]
    pub overrides_built_in_tool: bool,
    #[serde(default)]
    pub skip_permission: bool,
    /// A call that succeeds ends the turn: the model does not read the result.
    #[serde(default)]
    pub is_terminal: bool,
    /// Our own member: the tool changes nothing, so that it needs no permission in plan mode.
    #[serde(default)]
    pub read_only: bool,
    /// What the app notes about its tool. With `"loopd.readOnly": true` in it the tool is read-only:
    /// the official SDKs send no members that they do not know.
    #[serde(default)]
    pub metadata: Option<Value>,
}

impl ClientTool {
    /// Whether the tool says that it changes nothing.
    pub fn only_reads(&self) -> bool {
        let noted = |metadata: &Value| metadata.get("loopd.readOnly") == Some(&Value::Bool(true));
        self.read_only || self.metadata.as_ref().is_some_and(noted)
    }
}

/// A slash command that runs in the client.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ClientCommand {
    #[serde(deserialize_with = "not_empty")]
    pub name: String,
    #[serde(default)]
    pub description: String,
}

/// Reads an object. A list would be read as the members in their order, and an empty one as nothing.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let given = Option::<serde_json::Map<String, Value>>::deserialize(deserializer)?;
    let read = |members| T::deserialize(Value::Object(members)).map_err(serde::de::Error::custom);
    given.map(read).transpose()
}

fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Err(serde::de::Error::custom("must not be empty"));
    }
    Ok(text)
}

/// The policy that an app sets for its users when it opens a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyParams {
    #[serde(deserialize_with = "object")]
    pub managed_settings: Option<ManagedSettings>,
}

/// The reply to a client that opened a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    pub session_id: SessionId,
    pub workspace_path: Option<String>,
    pub capabilities: Capabilities,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    pub ui: UiCapabilities,
    pub extensions: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UiCapabilities {
    pub elicitation: bool,
    pub mcp_apps: bool,
}
