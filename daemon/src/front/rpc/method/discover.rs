//! Lists agents, instructions and MCP servers on disk; holds what all discovery methods share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{
    Agent, AgentPath, Agents, AgentsParams, Instruction, InstructionPath, Instructions,
    InstructionsParams, McpParams, McpServer, McpServers, Paths,
};
use loopd_proto::params::session::Of;

use crate::discovery::agents::AgentDefinition;
use crate::discovery::instructions::InstructionFile;
use crate::discovery::mcp::McpPlaces;
use crate::discovery::{Discovered, Host, Problem, agents, instructions, mcp};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust::project_root;

/// How many folders one request may name.
const MOST_PLACES: usize = 100;

/// Returns where the caller's user keeps agents, instructions and skills of their own.
pub(super) fn host(context: &Context) -> Host {
    let launch = context.connection.launch();
    Host::of(launch.env(), &context.app.services.home)
}

/// Returns the folders that a request names, resolved against the launch's directory.
pub(super) fn places(
    context: &Context,
    member: &str,
    given: Option<&[String]>,
) -> Result<Vec<PathBuf>, RpcError> {
    let given = given.unwrap_or_default();
    if given.len() > MOST_PLACES {
        return Err(RpcError::InvalidParams(format!(
            "{member}: at most {MOST_PLACES} folders can be named"
        )));
    }
    if given.iter().any(String::is_empty) {
        return Err(RpcError::InvalidParams(format!(
            "{member}: a path must not be empty"
        )));
    }
    let launch = context.connection.launch();
    Ok(given.iter().map(|path| launch.cwd.join(path)).collect())
}

/// Reads the disk on a blocking thread, so that connections are not held up.
pub(super) async fn look<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RpcError> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| RpcError::Failed(format!("the search on disk failed: {error}")))
}

pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns what can be used, and logs the problems: the results of these methods have no field for
/// them.
fn usable<T>(found: Discovered<T>) -> impl Iterator<Item = T> {
    for Problem { file, line, what } in &found.problems {
        tracing::warn!(file = %file.display(), line, what, "a file is not used");
    }
    found.items.into_iter()
}

/// Describes an agent for clients.
pub(super) fn describe(agent: &AgentDefinition, with_prompt: bool) -> Agent {
    let source = agent.origin.source();
    let servers = agent.mcp_servers.clone();
    Agent {
        id: agent.name.clone(),
        name: agent.name.clone(),
        display_name: agent.shown_name().to_owned(),
        description: agent.description.clone(),
        path: agent.path.as_deref().map(shown),
        source,
        // Left out for an agent that a client defined: the client knows it.
        user_invocable: source.map(|_| agent.user_invocable),
        tools: agent.tools.clone(),
        model: agent.model.name().map(str::to_owned),
        mcp_servers: servers.filter(serde_json::Value::is_object),
        skills: agent.skills.clone(),
        prompt: with_prompt.then(|| agent.prompt.clone()),
    }
}

pub(super) async fn agents(context: Context, params: AgentsParams) -> Result<Agents, RpcError> {
    let projects = places(&context, "projectPaths", params.project_paths.as_deref())?;
    let host = (!params.exclude_host_agents).then(|| host(&context));
    let found = look(move || agents::discover(&agents::folders(host.as_ref(), &projects))).await?;
    let agents = usable(found).map(|agent| describe(&agent, true));
    Ok(Agents {
        agents: agents.collect(),
    })
}

pub(super) async fn agent_paths(
    context: Context,
    params: AgentsParams,
) -> Result<Paths<AgentPath>, RpcError> {
    let projects = places(&context, "projectPaths", params.project_paths.as_deref())?;
    let host = (!params.exclude_host_agents).then(|| host(&context));
    let folders = agents::folders(host.as_ref(), &projects).into_iter();
    let paths = folders.filter_map(|folder| {
        Some(AgentPath {
            path: shown(&folder.path),
            scope: folder.origin.source()?,
            preferred_for_creation: folder.preferred_for_creation,
            project_path: folder.project.as_deref().map(shown),
        })
    });
    Ok(Paths {
        paths: paths.collect(),
    })
}

pub(super) async fn instructions(
    context: Context,
    params: InstructionsParams,
) -> Result<Instructions, RpcError> {
    let projects = places(&context, "projectPaths", params.project_paths.as_deref())?;
    let host = (!params.exclude_host_instructions).then(|| host(&context));
    let places = instructions::places(host.as_ref(), &projects);
    let found = look(move || instructions::discover(&places)).await?;
    Ok(Instructions {
        sources: usable(found).map(source).collect(),
    })
}

fn source(file: InstructionFile) -> Instruction {
    Instruction {
        id: shown(&file.path),
        source_path: file.label.clone(),
        label: file.label,
        content: file.content,
        kind: file.kind,
        location: file.location,
        apply_to: file.apply_to,
        description: file.description,
        project_path: file.project.as_deref().map(shown),
    }
}

/// Lists the instructions that the model of a session gets with its next message.
pub(super) async fn instructions_of_session(
    context: Context,
    params: Of,
) -> Result<Instructions, RpcError> {
    let session = context.session(&params.session_id)?;
    let lookup = session.view(|view| (view.instruction_lookup)()).await?;
    let files = look(move || lookup.files()).await?;
    // Only what is found without a session says which project it belongs to.
    let sources = files.into_iter().map(|file| Instruction {
        project_path: None,
        ..source(file)
    });
    Ok(Instructions {
        sources: sources.collect(),
    })
}

pub(super) async fn instruction_paths(
    context: Context,
    params: InstructionsParams,
) -> Result<Paths<InstructionPath>, RpcError> {
    let projects = places(&context, "projectPaths", params.project_paths.as_deref())?;
    let host = (!params.exclude_host_instructions).then(|| host(&context));
    let places = instructions::places(host.as_ref(), &projects).into_iter();
    let paths = places.map(|place| InstructionPath {
        path: shown(&place.path),
        location: place.location,
        kind: place.shape,
        preferred_for_creation: place.preferred_for_creation,
        project_path: place.project.as_deref().map(shown),
    });
    Ok(Paths {
        paths: paths.collect(),
    })
}

/// Returns where the MCP servers of a session in this directory are; without one, only the user's own.
pub(super) fn mcp_places(context: &Context, cwd: Option<&Path>) -> McpPlaces {
    let launch = context.connection.launch();
    let home = &context.app.services.home;
    let folder = cwd.unwrap_or(&launch.cwd);
    let root = project_root(folder);
    let mut places = McpPlaces::of(launch.env(), home, folder, &root, launch.plugins());
    if cwd.is_none() {
        places.projects.clear();
    }
    places
}

pub(super) async fn mcp(context: Context, params: McpParams) -> Result<McpServers, RpcError> {
    let given = params.working_directory.map(|path| vec![path]);
    let workspace = places(&context, "workingDirectory", given.as_deref())?;
    let places = mcp_places(&context, workspace.first().map(PathBuf::as_path));
    let found = look(move || mcp::load(&places)).await?;
    let mut names = BTreeSet::new();
    let servers = usable(found).filter(|server| names.insert(server.name.clone()));
    let servers = servers.map(|server| McpServer {
        name: server.name,
        transport: Some(server.transport),
        source: server.source,
        source_plugin: server.plugin,
        enabled: server.enabled,
    });
    Ok(McpServers {
        servers: servers.collect(),
    })
}
