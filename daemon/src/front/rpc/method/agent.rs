//! The agents of a session, and which of them is selected.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::event::agent::Stance;
use loopd_proto::params::agent::{ListParams, SelectParams, Selected};
use loopd_proto::params::discovery::Agents;
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::session::SessionOptions;

use super::discover::{describe, host, look};
use super::model::route_of_launch;
use crate::discovery::agents::{AgentDefinition, AgentOrigin, PermissionMode};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{SessionError, SessionHandle};
use crate::subagent::definitions::{self, ProjectTrust, Roster, RosterInput, ToolOrigin, is_same};
use crate::turn::route::Route;
use loopd_kernel::command::{AgentChoice, AgentPick, AgentSources, Command, LogLevel, Refusal};

/// How many times an agent is looked up if the agents of the session change during the lookup.
pub(super) const ATTEMPTS: u32 = 5;

/// The most warnings that a reload gives.
const MOST_WARNINGS: usize = 20;

/// The agents of a session at one moment, from its log and the disk.
pub(super) struct Present {
    pub(super) roster: Roster,
    /// The name of the selected agent.
    current: Option<String>,
    /// The names of agents that the session does not start.
    disabled: Vec<String>,
    /// The sources that the roster was made from.
    sources: AgentSources,
    pub(super) route: Route,
}

pub(super) async fn present(
    context: &Context,
    session: &SessionHandle,
) -> Result<Present, RpcError> {
    let seen = session.view(|view| {
        let user = view.launch.and_then(|launch| launch.variable("HOME"));
        (
            view.state.options.clone(),
            PathBuf::from(&view.state.cwd),
            view.state.agent.clone(),
            user.map(PathBuf::from),
            view.launch
                .map(|launch| launch.plugins())
                .unwrap_or_default(),
            AgentSources::of(view.state),
            (view.route)(),
        )
    });
    let (options, cwd, current, user, plugins, sources, route) = seen.await?;
    let mut host = host(context);
    host.user = user.or(host.user);
    let trust = trust(context, &cwd).await?;
    let mut input = RosterInput::of_session(&options, &cwd, host, trust);
    input.plugins.extend(plugins);
    Ok(Present {
        roster: look(move || definitions::load(&input)).await?,
        current,
        disabled: options
            .subagents
            .and_then(|settings| settings.disabled_subagents)
            .unwrap_or_default(),
        sources,
        route,
    })
}

async fn trust(context: &Context, cwd: &Path) -> Result<ProjectTrust, RpcError> {
    let store = context.app.services.store.as_ref();
    Ok(ProjectTrust::read(store, cwd).await?)
}

fn custom(roster: &Roster) -> Agents {
    let agents = roster.custom().map(|agent| describe(agent, false));
    Agents {
        agents: agents.collect(),
    }
}

pub(super) async fn list(context: Context, params: ListParams) -> Result<Agents, RpcError> {
    let session = context.session(&params.session_id)?;
    let present = present(&context, &session).await?;
    let is_listed = |agent: &Arc<AgentDefinition>| {
        let disabled = || present.disabled.iter().any(|it| is_same(it, &agent.name));
        agent.origin != AgentOrigin::BuiltIn || (params.include_built_in_agents && !disabled())
    };
    let agents = present.roster.all().filter(|agent| is_listed(agent));
    Ok(Agents {
        agents: agents
            .map(|agent| describe(agent, params.include_prompt))
            .collect(),
    })
}

pub(super) async fn current(context: Context, params: Of) -> Result<Selected, RpcError> {
    let session = context.session(&params.session_id)?;
    let present = present(&context, &session).await?;
    // An agent whose file is gone is no longer selected.
    let agent = present.current.and_then(|name| {
        let mut agents = present.roster.all();
        agents.find(|agent| agent.name == name).cloned()
    });
    Ok(Selected {
        agent: agent.map(|agent| describe(&agent, false)),
    })
}

pub(super) async fn select(context: Context, params: SelectParams) -> Result<Selected, RpcError> {
    let session = context.session(&params.session_id)?;
    let mut attempts = 1..ATTEMPTS;
    loop {
        let present = present(&context, &session).await?;
        let agent = named(&present.roster, &params.name).map_err(RpcError::Failed)?;
        let model = model_of(agent, &present.route).await;
        let model = model.map_err(RpcError::Failed)?;
        let pick = AgentPick {
            choice: choice(&context, agent, model),
            among: present.sources,
        };
        let change = Command::SelectAgent(Some(Box::new(pick)));
        match session.command(change).await {
            Err(error) if are_others(&error) && attempts.next().is_some() => {}
            done => {
                done?;
                return Ok(Selected {
                    agent: Some(describe(agent, false)),
                });
            }
        }
    }
}

/// Returns whether an agent was refused because the agents of the session have changed.
pub(super) fn are_others(error: &SessionError) -> bool {
    matches!(error, SessionError::Refused(Refusal::AgentsChanged))
}

/// Returns the agent that the options of a session name, as `session.agent.select` finds it. Its own
/// model does not count if the client names one.
pub(super) async fn wanted(
    context: &Context,
    options: &SessionOptions,
    named_model: Option<&str>,
    cwd: &Path,
) -> Result<Option<AgentChoice>, RpcError> {
    let Some(name) = &options.agent else {
        return Ok(None);
    };
    let trust = trust(context, cwd).await?;
    let mut input = RosterInput::of_session(options, cwd, host(context), trust);
    input.plugins.extend(context.connection.launch().plugins());
    let roster = look(move || definitions::load(&input)).await?;
    let agent = named(&roster, name)
        .map_err(|unknown| RpcError::InvalidParams(format!("agent: {unknown}")))?;
    let model = if named_model.is_some() {
        None
    } else {
        let route = Route {
            options: options.clone(),
            ..route_of_launch(context)
        };
        let model = model_of(agent, &route).await;
        model.map_err(|why| RpcError::InvalidParams(format!("agent: {why}")))?
    };
    Ok(Some(choice(context, agent, model)))
}

/// Returns the model that an agent's author named. The error says that nothing can serve it.
pub(super) async fn model_of(
    agent: &AgentDefinition,
    route: &Route,
) -> Result<Option<String>, String> {
    let Some(name) = agent.model.name() else {
        return Ok(None);
    };
    // A provider that cannot list its models may serve the name as it is.
    let listed = route.models().await.unwrap_or_default();
    let model = definitions::model::id_of(name, &listed);
    match route.find_target(&model).await {
        Ok(_) => Ok(Some(model)),
        Err(failure) => Err(format!(
            "the agent `{}` wants the model `{name}`: {}",
            agent.name, failure.message
        )),
    }
}

/// Returns the agent of this name, if users may select it. The error says why there is none, and
/// lists those they may select.
fn named<'a>(roster: &'a Roster, name: &str) -> Result<&'a AgentDefinition, String> {
    let found = roster.get(name);
    if let Some(agent) = found.filter(|agent| agent.user_invocable) {
        return Ok(agent);
    }
    let names: Vec<&str> = roster.selectable().map(|it| it.name.as_str()).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    if let Some(agent) = found {
        return Err(format!(
            "the agent `{}` works for other agents only and cannot be selected; the agents of this \
             session that can be are: {names}",
            agent.name
        ));
    }
    let broken = roster.broken(name);
    if !broken.is_empty() {
        return Err(format!(
            "the file of the agent `{name}` cannot be used: {}; the agents of this session are: {names}",
            broken.join("; ")
        ));
    }
    Err(format!(
        "there is no agent named `{name}` to select; the agents of this session are: {names}"
    ))
}

pub(super) fn choice(
    context: &Context,
    agent: &AgentDefinition,
    model: Option<String>,
) -> AgentChoice {
    AgentChoice {
        model,
        effort: agent.effort.clone(),
        name: agent.name.clone(),
        display_name: agent.shown_name().to_owned(),
        tools: tools(context, agent),
        stance: match agent.permission_mode {
            Some(PermissionMode::Plan) => Stance::Plan,
            Some(_) | None => Stance::Inherit,
        },
    }
}

/// Returns the names of an agent's tools, as we name them; `None` means all tools.
fn tools(context: &Context, agent: &AgentDefinition) -> Option<Vec<String>> {
    let unlimited = agent.tools.is_none() && agent.disallowed_tools.is_empty();
    if unlimited || agent.origin == AgentOrigin::Client {
        return agent.tools.clone();
    }
    let ours = context.app.services.catalog.names();
    let allowed = ours
        .iter()
        .filter(|name| agent.allows(name, ToolOrigin::BuiltIn));
    // A name that is not built in may be a client's tool.
    let named = agent.tools.iter().flatten();
    let others = named
        .filter(|name| !ours.contains(&name.as_str()) && agent.allows(name, ToolOrigin::Client));
    let allowed = allowed.map(|name| (*name).to_owned());
    Some(allowed.chain(others.cloned()).collect())
}

pub(super) async fn deselect(context: Context, params: Of) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    session.command(Command::SelectAgent(None)).await?;
    Ok(NoResult {})
}

/// Reports what is wrong with the files of agents. Agents are read whenever they are needed, so
/// there is nothing to reload.
pub(super) async fn reload(context: Context, params: Of) -> Result<Agents, RpcError> {
    let session = context.session(&params.session_id)?;
    let present = present(&context, &session).await?;
    for problem in present.roster.problems().iter().take(MOST_WARNINGS) {
        let warning = Command::Log {
            level: LogLevel::Warning,
            kind: "custom_agents".to_owned(),
            message: problem.to_string(),
            url: None,
            tip: None,
            stored: false,
        };
        session.command(warning).await?;
    }
    Ok(custom(&present.roster))
}
