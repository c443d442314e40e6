//! Resources of MCP servers, and what the user interfaces of their tools may ask for.

use loopd_proto::event::Ephemeral;
use loopd_proto::event::mcp::{AppCallError, AppToolCalled};
use loopd_proto::id::SessionId;
use loopd_proto::params::mcp::{
    AppCallParams, AppCapability, AppContext, AppContextParams, AppDiagnosis, AppServer, AppTools,
    AppToolsParams, PageParams, ResourceParams, ServerParams,
};
use loopd_proto::params::session::Of;
use serde_json::{Value, json};

use super::mcp::SessionServers;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::mcp::LookupMode;
use loopd_mcp::{CallError, ServerTool};

/// The most names of tools that a diagnosis shows.
const MOST_SAMPLES: usize = 5;

impl From<CallError> for RpcError {
    fn from(error: CallError) -> Self {
        Self::Failed(error.to_string())
    }
}

async fn ask(
    context: &Context,
    id: &SessionId,
    server: &str,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let of = SessionServers::look(context, id, LookupMode::Look).await?;
    let server = of
        .cell
        .server(server)
        .ok_or_else(|| RpcError::Failed(format!("MCP server {server} is not connected")))?;
    Ok(server.request(method, params).await?)
}

fn page(params: &PageParams) -> Value {
    match &params.cursor {
        Some(cursor) => json!({"cursor": cursor}),
        None => json!({}),
    }
}

pub(super) async fn list_resources(
    context: Context,
    params: PageParams,
) -> Result<Value, RpcError> {
    let (id, server) = (&params.session_id, &params.server_name);
    ask(&context, id, server, "resources/list", page(&params)).await
}

pub(super) async fn list_templates(
    context: Context,
    params: PageParams,
) -> Result<Value, RpcError> {
    let (id, server) = (&params.session_id, &params.server_name);
    ask(
        &context,
        id,
        server,
        "resources/templates/list",
        page(&params),
    )
    .await
}

pub(super) async fn read_resource(
    context: Context,
    params: ResourceParams,
) -> Result<Value, RpcError> {
    let (id, server) = (&params.session_id, &params.server_name);
    ask(
        &context,
        id,
        server,
        "resources/read",
        json!({"uri": params.uri}),
    )
    .await
}

/// Refuses a session whose clients show no user interfaces of tools.
async fn check_apps(context: &Context, id: &SessionId) -> Result<(), RpcError> {
    let session = context.session(id)?;
    if session.view(|view| view.mcp_apps).await? {
        return Ok(());
    }
    Err(RpcError::Failed(
        "The \"mcp-apps\" capability is not available in this session; a client asks for it with \
         requestMcpApps"
            .to_owned(),
    ))
}

pub(super) async fn read_app_resource(
    context: Context,
    params: ResourceParams,
) -> Result<Value, RpcError> {
    check_apps(&context, &params.session_id).await?;
    read_resource(context, params).await
}

/// Whether the user interface of a tool may call a tool.
fn is_for_apps(tool: &ServerTool) -> bool {
    let visibility = tool.ui.as_ref().and_then(|ui| ui.get("visibility"));
    let visibility = visibility.and_then(Value::as_array);
    visibility.is_none_or(|to| to.iter().any(|it| it == "app"))
}

pub(super) async fn list_tools(
    context: Context,
    params: AppToolsParams,
) -> Result<AppTools, RpcError> {
    check_apps(&context, &params.session_id).await?;
    check_origin(&params.server_name, &params.origin_server_name)?;
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let tools = of.server(&params.server_name)?.list_tools().await?;
    let tools = tools.into_iter().filter(is_for_apps).map(|tool| {
        json!({"name": tool.name, "description": tool.description, "inputSchema": tool.schema})
    });
    Ok(AppTools {
        tools: tools.collect(),
    })
}

/// The user interface of a server reaches that server only.
fn check_origin(server: &str, origin: &str) -> Result<(), RpcError> {
    if server == origin {
        return Ok(());
    }
    Err(RpcError::Failed(format!(
        "a user interface of the MCP server {origin} may not use the server {server} (mcp-apps)"
    )))
}

pub(super) async fn call_tool(context: Context, params: AppCallParams) -> Result<Value, RpcError> {
    check_apps(&context, &params.session_id).await?;
    check_origin(&params.server_name, &params.origin_server_name)?;
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let server = of.server(&params.server_name)?;
    let tools = server.tools();
    let tool = tools.iter().flat_map(|tools| tools.iter());
    let tool = tool.clone().find(|tool| tool.name == params.tool_name);
    if !tool.is_some_and(is_for_apps) {
        return Err(RpcError::Failed(format!(
            "the MCP server {} has no tool {} for user interfaces",
            params.server_name, params.tool_name
        )));
    }
    let arguments = params.arguments.clone().unwrap_or_default();
    let call = json!({"name": params.tool_name, "arguments": arguments});
    let clock = &context.app.services.clock;
    let started = clock.instant();
    let called = server.request("tools/call", call).await;
    let duration = clock.instant().duration_since(started).as_millis();
    let failed = |result: &Value| result.get("isError").and_then(Value::as_bool) == Some(true);
    let told = Ephemeral::McpAppCalled(AppToolCalled {
        server_name: params.server_name,
        tool_name: params.tool_name,
        arguments: params.arguments,
        success: called.as_ref().is_ok_and(|result| !failed(result)),
        duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
        result: called.as_ref().ok().cloned(),
        error: called.as_ref().err().map(|error| AppCallError {
            message: error.to_string(),
        }),
    });
    of.session.tell(told).await?;
    Ok(called?)
}

pub(super) async fn set_context(
    context: Context,
    params: AppContextParams,
) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    Ok(session.set_app_context(params.context).await?)
}

pub(super) async fn get_context(context: Context, params: Of) -> Result<AppContext, RpcError> {
    let session = context.session(&params.session_id)?;
    let context = session.view(|view| view.app_context.clone()).await?;
    Ok(AppContext { context })
}

pub(super) async fn diagnose(
    context: Context,
    params: ServerParams,
) -> Result<AppDiagnosis, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    let has_apps = of.session.view(|view| view.mcp_apps).await?;
    let server = of.cell.server(&params.server_name);
    let tools = server
        .as_ref()
        .and_then(|server| server.tools())
        .unwrap_or_default();
    let with_ui: Vec<&ServerTool> = tools.iter().filter(|tool| tool.ui.is_some()).collect();
    let samples = with_ui
        .iter()
        .take(MOST_SAMPLES)
        .map(|tool| tool.name.clone());
    Ok(AppDiagnosis {
        capability: AppCapability {
            session_has_mcp_apps: has_apps,
            feature_flag_enabled: true,
            advertised: false,
        },
        server: AppServer {
            connected: server.is_some_and(|server| server.is_connected()),
            tool_count: tools.len(),
            tools_with_ui_meta: with_ui.len(),
            sample_tool_names: samples.collect(),
        },
    })
}
