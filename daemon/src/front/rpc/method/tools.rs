//! Lists and sets the tools of a session, and how sub-agents use them.

use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::params::tool::{
    CurrentTool, CurrentTools, ListParams, SetParams, SubagentParams, ToolInfo, ToolList,
};

use super::session_options;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::tool::source::check_client_tools;
use loopd_kernel::command::Command;

pub(super) async fn list(context: Context, _params: ListParams) -> Result<ToolList, RpcError> {
    let specs = context.app.services.tool_specs.iter();
    Ok(ToolList {
        tools: specs
            .map(|spec| ToolInfo {
                name: spec.name.clone(),
                description: spec.description.clone(),
                parameters: spec.parameters.clone(),
            })
            .collect(),
    })
}

pub(super) async fn current(context: Context, params: Of) -> Result<CurrentTools, RpcError> {
    let session = context.session(&params.session_id)?;
    let specs = session.view(|view| (view.tools)()).await?;
    let describe = |spec: &std::sync::Arc<loopd_kernel::model::ToolSpec>| CurrentTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        input_schema: spec.parameters.clone(),
    };
    Ok(CurrentTools {
        tools: Some(specs.iter().map(describe).collect()),
    })
}

/// Checks that the tools of the session can be computed. Nothing is kept: they are computed when
/// needed.
pub(super) async fn initialize(context: Context, params: Of) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    session.view(|view| (view.tools)()).await?;
    Ok(NoResult {})
}

/// Replaces the tools of the calling connection. A list with a mistake changes nothing.
pub(super) async fn set(context: Context, params: SetParams) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    session_options::check_tools(&params.tools)?;
    check_client_tools(&params.tools, &context.app.services.catalog)
        .map_err(RpcError::InvalidParams)?;
    let client = context.connection.id();
    session.set_tools(client, params.tools).await?;
    Ok(NoResult {})
}

pub(super) async fn update_subagents(
    context: Context,
    params: SubagentParams,
) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    session_options::check_subagents(params.subagents.as_ref())?;
    session
        .command(Command::SetSubagents(params.subagents))
        .await?;
    Ok(NoResult {})
}
