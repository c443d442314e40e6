//! The MCP servers of a session: listed, started, stopped, switched on and off.

use std::sync::Arc;

use loopd_mcp::{Server, ServerTool, ToolKind};
use loopd_proto::event::mcp::{LoadedServer, McpStatus};
use loopd_proto::id::SessionId;
use loopd_proto::params::mcp::{
    EnvValueModeParams, EnvValueModeSet, HostState, ListedServer, ListedTool, MovedToBackground,
    NeedsAuth, Removed, Running, ServerFailure, ServerList, ServerLogLines, ServerParams,
    ServerTested, ServerTools, StartParams,
};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::session::Of;
use loopd_proto::session::SessionOptions;

use crate::discovery::mcp::{McpEntry, check_name};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::mcp::{LookupMode, McpCell};
use crate::session::SessionHandle;
use loopd_kernel::command::{Command, McpSwitch};

/// A session and its servers.
pub(super) struct SessionServers {
    pub(super) session: SessionHandle,
    pub(super) cell: McpCell,
}

impl SessionServers {
    /// Looks which servers the session has; starts those that were not started yet if `mode` says so.
    pub(super) async fn look(
        context: &Context,
        id: &SessionId,
        mode: LookupMode,
    ) -> Result<Self, RpcError> {
        let session = context.session(id)?;
        let seen = session.view(|view| (view.mcp.clone(), (view.mcp_lookup)()));
        let (cell, lookup) = seen.await?;
        if let Some(lookup) = lookup {
            let port = lookup.port.clone();
            let (notices, changed) = lookup.run(mode).await;
            if changed {
                port.servers_changed();
            }
            for notice in notices {
                let warning = Command::file_warning("mcp_file", notice);
                session.command(warning).await?;
            }
        }
        Ok(Self { session, cell })
    }

    /// Returns a server that the session uses.
    pub(super) fn server(&self, name: &str) -> Result<Arc<Server>, RpcError> {
        let server = self.cell.server(name);
        server.ok_or_else(|| RpcError::Failed(format!("MCP server {name} is not configured")))
    }

    /// Returns what masks the secrets of the session in what servers write.
    async fn mask(&self) -> Result<impl Fn(&mut String) + use<>, RpcError> {
        let redaction = self.session.view(|view| (view.redaction)()).await?;
        Ok(move |text: &mut String| redaction.clean_in_place(text))
    }

    /// Refuses a session without any servers.
    fn check_any(&self, why: &str) -> Result<(), RpcError> {
        if self.cell.is_empty() {
            return Err(RpcError::Failed(why.to_owned()));
        }
        Ok(())
    }

    /// Refuses a server that the session does not know.
    fn check_known(&self, name: &str) -> Result<(), RpcError> {
        if self.cell.known().iter().any(|known| known.name == name) {
            return Ok(());
        }
        Err(RpcError::Failed(format!(
            "MCP server {name} is not configured"
        )))
    }
}

pub(super) async fn list(context: Context, params: Of) -> Result<ServerList, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Start).await?;
    let mut host = HostState {
        mcp3p_enabled: context.app.services.config.mcp.enabled,
        ..HostState::default()
    };
    let mask = of.mask().await?;
    let mut report = of.cell.report();
    for server in &mut report {
        server.error.iter_mut().for_each(&mask);
    }
    let now = u64::try_from(context.app.services.clock.now().0).unwrap_or(0);
    for server in &report {
        let handle = of.cell.server(&server.name);
        sort(server, handle.as_deref(), now, &mut host);
    }
    let servers = report.into_iter().map(|server| {
        let handle = of.cell.server(&server.name);
        let mut problems = handle.as_ref().map(|it| it.report().problems);
        problems.iter_mut().flatten().for_each(&mask);
        ListedServer {
            noise: handle.map(|it| it.log.noise()).filter(|count| *count > 0),
            problems: problems.filter(|problems| !problems.is_empty()),
            name: server.name,
            status: server.status,
            source: server.source,
            source_plugin: server.plugin_name,
            display_name: server.display_name,
            error: server.error,
            server_metadata: server.server_metadata,
            transport: server.transport,
        }
    });
    Ok(ServerList {
        servers: servers.collect(),
        host,
    })
}

/// Sorts a server into the lists of the host.
fn sort(server: &LoadedServer, handle: Option<&Server>, now: u64, host: &mut HostState) {
    let name = server.name.clone();
    match server.status {
        McpStatus::Connected => host.clients.push(name),
        McpStatus::Pending => host.pending_connections.push(name),
        McpStatus::Disabled => host.disabled_servers.push(name),
        McpStatus::NeedsAuth => {
            let asked = NeedsAuth { timestamp: now };
            host.needs_auth_servers.insert(name, asked);
        }
        McpStatus::Failed => {
            let since = handle.and_then(|it| it.report().since_ms);
            let failure = ServerFailure {
                message: server.error.clone().unwrap_or_default(),
                timestamp: since.unwrap_or(now),
            };
            host.failed_servers.insert(name, failure);
        }
        McpStatus::Stopped | McpStatus::NotConfigured => {}
    }
}

pub(super) async fn list_tools(
    context: Context,
    params: ServerParams,
) -> Result<ServerTools, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let name = &params.server_name;
    let server = of.cell.server(name).filter(|server| server.is_connected());
    let not_connected = || RpcError::Failed(format!("MCP server {name} is not connected"));
    let server = server.ok_or_else(not_connected)?;
    let tools = server.list_tools().await;
    let tools = tools.map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(ServerTools {
        tools: tools.iter().map(listed).collect(),
    })
}

fn listed(tool: &ServerTool) -> ListedTool {
    ListedTool {
        name: tool.name.clone(),
        description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
        ui: tool.ui.clone(),
    }
}

/// Starts a server if needed and waits until it is connected or has failed, both of which have a bound.
pub(super) async fn test(context: Context, params: ServerParams) -> Result<ServerTested, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let name = &params.server_name;
    of.check_known(name)?;
    let clock = &context.app.services.clock;
    let began = clock.now().0;
    let (server, mut error) = if let Some(server) = of.cell.server(name) {
        let connected = server.connected().await;
        (Some(server), connected.err().map(|error| error.to_string()))
    } else {
        // The report says why it is not used.
        let mut report = of.cell.report().into_iter();
        let told = report.find(|server| server.name == *name);
        let why = told.and_then(|server| server.error);
        (
            None,
            Some(why.unwrap_or_else(|| "it is disabled".to_owned())),
        )
    };
    let tools = server.as_ref().and_then(|server| server.tools());
    let tools = tools.filter(|_| error.is_none());
    let tools = tools.iter().flat_map(|tools| tools.iter());
    let own = tools.filter(|tool| tool.kind == ToolKind::Call);
    let problems = server.as_ref().map(|server| server.report().problems);
    let log = server.as_ref().map(|server| server.log.lines().0);
    let (mut problems, mut log) = (problems.unwrap_or_default(), log.unwrap_or_default());
    let mask = of.mask().await?;
    let said = problems.iter_mut().chain(&mut log).chain(&mut error);
    said.for_each(mask);
    Ok(ServerTested {
        error,
        tools: own.map(listed).collect(),
        problems,
        log,
        duration_ms: u64::try_from(clock.now().0.saturating_sub(began)).unwrap_or(0),
    })
}

pub(super) async fn enable(context: Context, params: ServerParams) -> Result<(), RpcError> {
    switch(&context, params, McpSwitch::On).await
}

pub(super) async fn disable(context: Context, params: ServerParams) -> Result<(), RpcError> {
    switch(&context, params, McpSwitch::Off).await
}

async fn switch(
    context: &Context,
    params: ServerParams,
    switch: McpSwitch,
) -> Result<(), RpcError> {
    let of = SessionServers::look(context, &params.session_id, LookupMode::Look).await?;
    of.check_any("No MCP host initialized")?;
    of.check_known(&params.server_name)?;
    let name = params.server_name;
    let command = Command::SwitchMcpServer(name, switch);
    of.session.command(command).await?;
    SessionServers::look(context, &params.session_id, LookupMode::Start).await?;
    Ok(())
}

pub(super) async fn reload(context: Context, params: Of) -> Result<(), RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Start).await?;
    of.check_any("MCP config reload not available: the session has no MCP servers")?;
    for server in of
        .cell
        .host()
        .map(|host| host.servers())
        .unwrap_or_default()
    {
        server.restart(None);
    }
    Ok(())
}

pub(super) async fn to_background(
    context: Context,
    params: Of,
) -> Result<MovedToBackground, RpcError> {
    let session = context.session(&params.session_id)?;
    let moved = session.view(|view| view.mcp.go_on()).await?;
    Ok(MovedToBackground {
        moved_to_background: moved,
    })
}

pub(super) async fn start(context: Context, params: StartParams) -> Result<(), RpcError> {
    let of = bring(&context, params.clone()).await?;
    let server = of.server(&params.server_name)?;
    if !server.is_connected() {
        server.restart(None);
    }
    Ok(())
}

pub(super) async fn restart(context: Context, params: StartParams) -> Result<(), RpcError> {
    let of = bring(&context, params.clone()).await?;
    of.server(&params.server_name)?.restart(None);
    Ok(())
}

/// Takes the configuration that a request brings along.
async fn bring(context: &Context, params: StartParams) -> Result<SessionServers, RpcError> {
    let (id, name) = (params.session_id, params.server_name);
    if let Some(config) = params.config {
        check_name(&name).map_err(|what| RpcError::InvalidParams(format!("serverName: {what}")))?;
        McpEntry::read(&config)
            .map_err(|what| RpcError::InvalidParams(format!("config: the server {what}")))?;
        let session = context.session(&id)?;
        session.bring_server(name, Some(config)).await?;
    }
    SessionServers::look(context, &id, LookupMode::Look).await
}

pub(super) async fn stop(context: Context, params: ServerParams) -> Result<(), RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    of.server(&params.server_name)?.stop();
    Ok(())
}

pub(super) async fn is_running(
    context: Context,
    params: ServerParams,
) -> Result<Running, RpcError> {
    let session = context.session(&params.session_id)?;
    let server = session
        .view(move |view| view.mcp.server(&params.server_name))
        .await?;
    Ok(Running {
        running: server.is_some_and(|server| server.is_connected()),
    })
}

pub(super) async fn set_env_value_mode(
    context: Context,
    params: EnvValueModeParams,
) -> Result<EnvValueModeSet, RpcError> {
    let session = context.session(&params.session_id)?;
    let patch = OptionsPatch {
        options: SessionOptions {
            env_value_mode: Some(params.mode),
            ..SessionOptions::default()
        },
        ..OptionsPatch::default()
    };
    session
        .command(Command::UpdateOptions(Box::new(patch)))
        .await?;
    Ok(EnvValueModeSet { mode: params.mode })
}

/// Other runtimes add a server by themselves; this daemon does not, so that there is none to remove.
pub(super) async fn remove_github(context: Context, params: Of) -> Result<Removed, RpcError> {
    context.session(&params.session_id)?;
    Ok(Removed { removed: false })
}

pub(super) async fn log(
    context: Context,
    params: ServerParams,
) -> Result<ServerLogLines, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let (mut lines, dropped) = of.server(&params.server_name)?.log.lines();
    lines.iter_mut().for_each(of.mask().await?);
    Ok(ServerLogLines { lines, dropped })
}
