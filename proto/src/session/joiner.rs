//! What a client brings to a session that other clients use at that moment. Settings belong to all of
//! them, so a client that joins changes none. It may bring what the session lacks: secrets, and a
//! model with its provider if nobody has chosen one.

use crate::provider::ProviderConfig;

use super::SessionOptions;

/// The options of a client that joins others.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinerOptions {
    /// What the session lacks, and nothing else.
    pub taken: SessionOptions,
    /// The names of the options that the client wanted to be otherwise.
    pub kept: Vec<&'static str>,
}

impl SessionOptions {
    /// Returns what is taken of these options when a client joins others. `known` are the options of
    /// the session, with the secrets that it has.
    pub fn for_joiner(self, known: &Self) -> JoinerOptions {
        let mut taken = Self::default();
        if known.provider.is_none() && known.providers.is_none() && known.model.is_none() {
            taken = self.choice_of_model();
        }
        if let (Some(theirs), Some(ours)) = (&self.provider, &known.provider) {
            taken.provider = completed(ours, theirs);
        }
        if let (Some(theirs), Some(ours)) = (&self.providers, &known.providers) {
            let mut all = ours.clone();
            for own in &mut all {
                let same = theirs.iter().find(|their| their.name() == own.name());
                if let Some(complete) = same.and_then(|their| completed(own, their)) {
                    *own = complete;
                }
            }
            taken.providers = (all != *ours).then_some(all);
        }
        if known.mcp_servers.is_none() {
            taken.mcp_servers.clone_from(&self.mcp_servers);
        }
        let kept = self.differing(&known.clone().updated_by(taken.clone()));
        JoinerOptions { taken, kept }
    }

    /// Returns the options that say which model answers, and how.
    fn choice_of_model(&self) -> Self {
        Self {
            model: self.model.clone(),
            reasoning_effort: self.reasoning_effort.clone(),
            provider: self.provider.clone(),
            providers: self.providers.clone(),
            models: self.models.clone(),
            model_capabilities: self.model_capabilities.clone(),
            enable_citations: self.enable_citations,
            ..Self::default()
        }
    }

    /// Names the options that are set here and differ from `known`, secrets aside. The name of the
    /// client is its own, and the working directory is compared by whoever resolves it.
    fn differing(self, known: &Self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.mcp_servers.is_some() && self.mcp_servers != known.mcp_servers {
            names.push("mcpServers");
        }
        let (theirs, ours) = (self.stripped(), known.clone().stripped());
        macro_rules! compare {
            ($($field:ident $name:literal),* $(,)?) => {$(
                if theirs.$field.is_some() && theirs.$field != ours.$field {
                    names.push($name);
                }
            )*};
        }
        compare!(
            model "model",
            reasoning_effort "reasoningEffort",
            streaming "streaming",
            system_message "systemMessage",
            available_tools "availableTools",
            excluded_tools "excludedTools",
            tool_filter_precedence "toolFilterPrecedence",
            default_agent "defaultAgent",
            additional_directories "additionalDirectories",
            provider "provider",
            providers "providers",
            models "models",
            model_capabilities "modelCapabilities",
            enable_citations "enableCitations",
            custom_agents "customAgents",
            excluded_builtin_agents "excludedBuiltinAgents",
            ask_user_disabled "askUserDisabled",
            agent "agent",
            enable_config_discovery "enableConfigDiscovery",
            enable_file_hooks "enableFileHooks",
            instruction_directories "instructionDirectories",
            skip_custom_instructions "skipCustomInstructions",
            disabled_instruction_sources "disabledInstructionSources",
            organization_custom_instructions "organizationCustomInstructions",
            enable_on_demand_instruction_discovery "enableOnDemandInstructionDiscovery",
            skill_directories "skillDirectories",
            disabled_skills "disabledSkills",
            enable_skills "enableSkills",
            agent_directories "agentDirectories",
            hook_directories "hookDirectories",
            enable_session_store "enableSessionStore",
            memory "memory",
            mcp_token_storage "mcpOAuthTokenStorage",
            session_limits "sessionLimits",
            fallback_models "fallbackModels",
            large_output "largeOutput",
            infinite_sessions "infiniteSessions",
            subagents "subagents",
            plugin_directories "pluginDirectories",
            include_sub_agent_streaming_events "includeSubAgentStreamingEvents",
            autopilot "autopilot",
            disabled_mcp_servers "disabledMcpServers",
            env_value_mode "envValueMode",
        );
        names
    }

    /// Returns the options without secrets, and without the marks that there were some.
    fn stripped(self) -> Self {
        let mut options = self.without_secrets();
        let named = options.providers.iter_mut().flatten();
        for provider in options.provider.iter_mut().chain(named) {
            provider.secret_withheld = None;
        }
        options
    }
}

/// Returns our provider with the secrets of theirs, if it is the same one and lacks them.
fn completed(ours: &ProviderConfig, theirs: &ProviderConfig) -> Option<ProviderConfig> {
    let bare = |provider: &ProviderConfig| {
        let mut bare = provider.clone();
        bare.strip_secrets();
        bare.secret_withheld = None;
        bare
    };
    let lacks = ours.secret_withheld == Some(true);
    (lacks && bare(ours) == bare(theirs)).then(|| theirs.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: serde_json::Value) -> SessionOptions {
        serde_json::from_value(json).unwrap_or_default()
    }

    #[test]
    fn who_joins_changes_no_setting_and_is_told_which() {
        let known = options(serde_json::json!({
            "model": "a", "streaming": true, "clientName": "first",
            "provider": {"baseUrl": "http://one", "apiKey": "k"},
        }));
        let wanted = options(serde_json::json!({
            "model": "a", "streaming": false, "clientName": "second", "availableTools": ["x"],
            "provider": {"baseUrl": "http://two", "apiKey": "l"},
        }));
        let joined = wanted.for_joiner(&known);
        assert_eq!(joined.taken, SessionOptions::default());
        assert_eq!(joined.kept, ["streaming", "availableTools", "provider"]);
    }

    #[test]
    fn who_joins_brings_the_model_that_nobody_has_chosen() {
        let wanted = options(serde_json::json!({
            "model": "m", "enableCitations": true, "availableTools": ["x"],
            "provider": {"baseUrl": "http://one", "apiKey": "k"},
        }));
        let joined = wanted.clone().for_joiner(&SessionOptions::default());
        assert_eq!(joined.kept, ["availableTools"]);
        assert_eq!(joined.taken.model, wanted.model);
        assert_eq!(joined.taken.provider, wanted.provider);
        assert_eq!(joined.taken.enable_citations, Some(true));
        let known = options(serde_json::json!({"model": "theirs"}));
        assert_eq!(
            wanted.for_joiner(&known).kept,
            ["model", "availableTools", "provider", "enableCitations"]
        );
    }

    #[test]
    fn who_joins_brings_the_secrets_that_are_missing() {
        let wanted = options(serde_json::json!({
            "provider": {"baseUrl": "http://one", "apiKey": "new"},
            "providers": [{"name": "p", "apiKey": "new"}, {"name": "q", "apiKey": "new"}],
        }));
        let first = options(serde_json::json!({
            "provider": {"baseUrl": "http://one", "apiKey": "old"},
            "providers": [{"name": "p", "apiKey": "old"}],
        }));
        // The first client's key is there.
        let joined = wanted.clone().for_joiner(&first);
        assert_eq!(joined.taken, SessionOptions::default());
        assert_eq!(joined.kept, ["providers"]);
        // After a restart it is not.
        let joined = wanted.clone().for_joiner(&first.without_secrets());
        assert_eq!(joined.taken.provider, wanted.provider);
        let named = joined.taken.providers.unwrap_or_default();
        let keys: Vec<_> = named
            .iter()
            .map(|provider| provider.api_key.as_deref())
            .collect();
        assert_eq!(keys, [Some("new")]);
    }
}
