//! The agents that a client defines with `customAgents`.

use std::path::Path;

use loopd_proto::session::CustomAgent;

use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentMode, AgentOrigin, ModelPolicy, wrong_name};

/// Converts a client's agent; what a client cannot define has the default of a file.
pub(super) fn definition(agent: &CustomAgent) -> Result<AgentDefinition, Problem> {
    if let Some(what) = wrong_name(&agent.name) {
        return Err(Problem::new(Path::new("customAgents"), what));
    }
    let tools = agent.tools.clone();
    Ok(AgentDefinition {
        name: agent.name.clone(),
        display_name: agent.display_name.clone(),
        description: agent.description.clone().unwrap_or_default(),
        prompt: agent.prompt.clone(),
        tools: tools.filter(|tools| !tools.iter().any(|tool| tool == "*")),
        disallowed_tools: Vec::new(),
        model: agent
            .model
            .as_deref()
            .map_or(ModelPolicy::Inherit, ModelPolicy::from),
        effort: agent.reasoning_effort.clone(),
        permission_mode: None,
        background: false,
        isolation: None,
        max_turns: None,
        color: None,
        memory: None,
        mcp_servers: agent.mcp_servers.clone(),
        required_mcp_servers: Vec::new(),
        hooks: agent.hooks.clone(),
        skills: agent.skills.clone(),
        initial_prompt: None,
        mode: AgentMode::All,
        user_invocable: true,
        infer: agent.infer.unwrap_or(true),
        origin: AgentOrigin::Client,
        path: None,
    })
}
