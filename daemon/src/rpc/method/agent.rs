//! The agents a client defined, and which one answers.

use loopd_proto::params::agent::{AgentInfo, Agents, SelectParams, Selected};
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::session::CustomAgent;

use crate::kernel::command::{AgentChoice, Command};
use crate::kernel::state::State;
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;

fn describe(agent: &CustomAgent) -> AgentInfo {
    AgentInfo {
        id: agent.name.clone(),
        name: agent.name.clone(),
        display_name: agent
            .display_name
            .clone()
            .unwrap_or_else(|| agent.name.clone()),
        description: agent.description.clone().unwrap_or_default(),
        tools: agent.tools.clone(),
        model: agent.model.clone(),
    }
}

fn all(state: &State) -> Vec<AgentInfo> {
    state
        .options
        .custom_agents
        .iter()
        .flatten()
        .map(describe)
        .collect()
}

pub(super) async fn list(context: Context, params: Of) -> Result<Agents, RpcError> {
    let session = context.session(&params.session_id)?;
    let agents = session.state(all).await?;
    Ok(Agents { agents })
}

pub(super) async fn current(context: Context, params: Of) -> Result<Selected, RpcError> {
    let session = context.session(&params.session_id)?;
    let agent = session.state(|state| {
        let name = state.agent.as_ref()?;
        all(state).into_iter().find(|agent| agent.name == *name)
    });
    Ok(Selected {
        agent: agent.await?,
    })
}

pub(super) async fn select(context: Context, params: SelectParams) -> Result<Selected, RpcError> {
    let session = context.session(&params.session_id)?;
    let agents = session.state(all).await?;
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let wanted = agents.iter().find(|agent| agent.name == params.name);
    let Some(agent) = wanted.cloned() else {
        return Err(RpcError::Failed(format!(
            "there is no agent named `{}`; the agents of this session are: {}",
            params.name,
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        )));
    };
    session
        .command(Command::SelectAgent(Some(AgentChoice {
            name: agent.name.clone(),
            display_name: agent.display_name.clone(),
            tools: agent.tools.clone(),
        })))
        .await?;
    Ok(Selected { agent: Some(agent) })
}

pub(super) async fn deselect(context: Context, params: Of) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    session.command(Command::SelectAgent(None)).await?;
    Ok(NoResult {})
}
