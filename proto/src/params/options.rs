//! `session.options.update`: the options that can be changed while a session is live.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::hook::VouchedFolder;
use crate::id::SessionId;
use crate::json::group;
use crate::session::members::Request;
use crate::session::{
    AutopilotOptions, CapabilitiesOverride, EnvValueMode, SessionLimits, SessionOptions,
    WithoutEffect, members, refuse_unknown,
};

/// A change of options. Only the options that it names change.
#[derive(Debug, Clone)]
pub struct OptionsParams {
    pub session_id: SessionId,
    pub patch: OptionsPatch,
    /// The members that have no effect.
    pub without_effect: Vec<WithoutEffect>,
}

/// The options that are honoured, each by its name in `session.create`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OptionsPatch {
    pub options: SessionOptions,
    /// Whether the limits are removed.
    pub no_limits: bool,
    pub model_capabilities: Option<CapabilitiesOverride>,
    /// What is in the folders of hooks that the change names.
    pub vouched_hooks: Option<Vec<VouchedFolder>>,
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

/// The members with a name or a meaning of their own.
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
    session_limits: Option<SessionLimits>,
    autopilot: Option<AutopilotOptions>,
    fallback_models: Option<Vec<String>>,
    skill_directories: Option<Vec<String>>,
    disabled_skills: Option<Vec<String>>,
    enable_skills: Option<bool>,
    agent_directories: Option<Vec<String>>,
    hook_directories: Option<Vec<String>>,
    instruction_directories: Option<Vec<String>>,
    disabled_mcp_servers: Option<Vec<String>>,
    env_value_mode: Option<EnvValueMode>,
}

/// The limits as they were sent: null removes them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limits {
    #[serde(deserialize_with = "crate::json::present")]
    session_limits: Option<Value>,
}

/// Returns the names of the members that are read.
#[cfg(test)]
pub(crate) fn read_members() -> &'static [&'static str] {
    use crate::session::members::members_of;
    let all = [members_of::<UpdateFields>(), members_of::<Same>()].concat();
    Vec::leak(all)
}

impl<'de> Deserialize<'de> for OptionsParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Box::<RawValue>::deserialize(deserializer)?;
        refuse_unknown(&object)?;
        let without_effect = members::checked(Request::Update, &object)?;
        let own: UpdateFields = group(&object)?;
        let same: Same = group(&object)?;
        let limits: Limits = group(&object)?;
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
                    session_limits: same.session_limits,
                    autopilot: same.autopilot,
                    fallback_models: same.fallback_models,
                    skill_directories: same.skill_directories,
                    disabled_skills: same.disabled_skills,
                    enable_skills: same.enable_skills,
                    agent_directories: same.agent_directories,
                    hook_directories: same.hook_directories,
                    instruction_directories: same.instruction_directories,
                    disabled_mcp_servers: same.disabled_mcp_servers,
                    env_value_mode: same.env_value_mode,
                    ..SessionOptions::default()
                },
                no_limits: limits.session_limits == Some(Value::Null),
                model_capabilities: own.model_capabilities_overrides,
                vouched_hooks: None,
            },
            without_effect,
        })
    }
}
