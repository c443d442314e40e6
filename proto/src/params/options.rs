//! `session.options.update`: the options that can be changed while a session is live.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::id::SessionId;
use crate::json::group;
use crate::session::{
    AutopilotOptions, CapabilitiesOverride, EnvValueMode, SessionLimits, SessionOptions,
    refuse_unknown,
};

/// A change of options. Only the options that it names change.
#[derive(Debug, Clone)]
pub struct OptionsParams {
    pub session_id: SessionId,
    pub patch: OptionsPatch,
    /// All members as they were sent, so that none is ignored.
    pub members: Map<String, Value>,
}

/// The options that are honoured, each by its name in `session.create`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OptionsPatch {
    pub options: SessionOptions,
    /// Whether the limits are removed.
    pub no_limits: bool,
    pub model_capabilities: Option<CapabilitiesOverride>,
}

impl OptionsPatch {
    /// Returns the options after the change.
    #[must_use]
    pub fn applied_to(&self, options: SessionOptions) -> SessionOptions {
        let mut options = options.updated_by(self.options.clone());
        if self.no_limits {
            options.session_limits = None;
        }
        if self.model_capabilities.is_some() {
            options
                .model_capabilities
                .clone_from(&self.model_capabilities);
        }
        options
    }
}

impl<'de> Deserialize<'de> for OptionsParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct UpdateFields {
            session_id: SessionId,
            #[serde(default)]
            enable_streaming: Option<bool>,
            #[serde(default)]
            model_capabilities_overrides: Option<CapabilitiesOverride>,
        }
        /// The members with the same name and meaning as in `session.create`.
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Same {
            client_name: Option<String>,
            model: Option<String>,
            reasoning_effort: Option<String>,
            reasoning_summary: Option<String>,
            context_tier: Option<String>,
            working_directory: Option<String>,
            available_tools: Option<Vec<String>>,
            excluded_tools: Option<Vec<String>>,
            tool_filter_precedence: Option<String>,
            excluded_builtin_agents: Option<Vec<String>>,
            ask_user_disabled: Option<bool>,
            skip_custom_instructions: Option<bool>,
            disabled_instruction_sources: Option<Vec<String>>,
            organization_custom_instructions: Option<String>,
            enable_on_demand_instruction_discovery: Option<bool>,
            enable_file_hooks: Option<bool>,
            session_limits: Option<SessionLimits>,
            autopilot: Option<AutopilotOptions>,
            fallback_models: Option<Vec<String>>,
            skill_directories: Option<Vec<String>>,
            disabled_skills: Option<Vec<String>>,
            enable_skills: Option<bool>,
            agent_directories: Option<Vec<String>>,
            disabled_mcp_servers: Option<Vec<String>>,
            env_value_mode: Option<EnvValueMode>,
        }
        let object = Box::<RawValue>::deserialize(deserializer)?;
        refuse_unknown(&object)?;
        let own: UpdateFields = group(&object)?;
        let same: Same = group(&object)?;
        let mut members: Map<String, Value> = group(&object)?;
        members.remove("sessionId");
        Ok(Self {
            session_id: own.session_id,
            patch: OptionsPatch {
                options: SessionOptions {
                    client_name: same.client_name,
                    model: same.model,
                    reasoning_effort: same.reasoning_effort,
                    reasoning_summary: same.reasoning_summary,
                    context_tier: same.context_tier,
                    streaming: own.enable_streaming,
                    working_directory: same.working_directory,
                    available_tools: same.available_tools,
                    excluded_tools: same.excluded_tools,
                    tool_filter_precedence: same.tool_filter_precedence,
                    excluded_builtin_agents: same.excluded_builtin_agents,
                    ask_user_disabled: same.ask_user_disabled,
                    skip_custom_instructions: same.skip_custom_instructions,
                    disabled_instruction_sources: same.disabled_instruction_sources,
                    organization_custom_instructions: same.organization_custom_instructions,
                    enable_on_demand_instruction_discovery: same
                        .enable_on_demand_instruction_discovery,
                    enable_file_hooks: same.enable_file_hooks,
                    session_limits: same.session_limits,
                    autopilot: same.autopilot,
                    fallback_models: same.fallback_models,
                    skill_directories: same.skill_directories,
                    disabled_skills: same.disabled_skills,
                    enable_skills: same.enable_skills,
                    agent_directories: same.agent_directories,
                    disabled_mcp_servers: same.disabled_mcp_servers,
                    env_value_mode: same.env_value_mode,
                    ..SessionOptions::default()
                },
                no_limits: members.get("sessionLimits") == Some(&Value::Null),
                model_capabilities: own.model_capabilities_overrides,
            },
            members,
        })
    }
}
