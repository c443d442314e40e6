//! Which options of a session mean the same in another home.

use super::SessionOptions;

impl SessionOptions {
    /// Returns the options without those that name places, programs or addresses of one machine.
    #[must_use]
    pub fn portable(self) -> Self {
        // Every option is named, so that a new one cannot be forgotten.
        let Self {
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
            working_directory: _,
            additional_directories: _,
            provider: _,
            providers: _,
            models: _,
            model_capabilities,
            enable_citations,
            custom_agents,
            excluded_builtin_agents,
            ask_user_disabled,
            agent,
            enable_config_discovery,
            enable_file_hooks,
            instruction_directories: _,
            skip_custom_instructions,
            disabled_instruction_sources,
            organization_custom_instructions,
            enable_on_demand_instruction_discovery,
            skill_directories: _,
            disabled_skills,
            enable_skills,
            agent_directories: _,
            session_limits,
            fallback_models,
            large_output: _,
            infinite_sessions,
            subagents,
            plugin_directories: _,
            include_sub_agent_streaming_events,
            enable_file_change_tracking,
            autopilot,
            mcp_servers: _,
            disabled_mcp_servers,
            env_value_mode: _,
        } = self.without_secrets();
        Self {
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
            model_capabilities,
            enable_citations,
            custom_agents,
            excluded_builtin_agents,
            ask_user_disabled,
            agent,
            enable_config_discovery,
            enable_file_hooks,
            skip_custom_instructions,
            disabled_instruction_sources,
            organization_custom_instructions,
            enable_on_demand_instruction_discovery,
            disabled_skills,
            enable_skills,
            session_limits,
            fallback_models,
            infinite_sessions,
            subagents,
            include_sub_agent_streaming_events,
            enable_file_change_tracking,
            autopilot,
            disabled_mcp_servers,
            ..Self::default()
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_a_machine_stays_there() {
        let given = json!({
            "model": "gpt",
            "excludedTools": ["bash"],
            "sessionLimits": {"maxAiCredits": 3.0},
            "workingDirectory": "/a",
            "additionalDirectories": ["/"],
            "provider": {"type": "openai", "baseUrl": "http://elsewhere"},
            "pluginDirectories": ["/plugins"],
            "skillDirectories": ["/skills"],
            "mcpServers": {"one": {"command": "x"}},
        });
        let options: SessionOptions = serde_json::from_value(given).unwrap();
        let kept = serde_json::to_value(options.portable()).unwrap();
        let wanted = json!({
            "model": "gpt",
            "excludedTools": ["bash"],
            "sessionLimits": {"maxAiCredits": 3.0},
        });
        assert_eq!(kept, wanted);
    }
}
