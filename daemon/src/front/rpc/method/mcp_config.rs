//! The MCP servers of the user's own file.

use loopd_proto::params::mcp::{
    ConfigEntryParams, ConfigList, ConfigNameParams, ConfigNamesParams,
};
use loopd_proto::params::server::NoParams;

use super::discover::look;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::mcp::user_file::{self, FileError, Switch};

impl From<FileError> for RpcError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Invalid(_) => Self::InvalidParams(error.to_string()),
            FileError::Exists(_) | FileError::Missing(..) | FileError::File { .. } => {
                Self::Failed(error.to_string())
            }
        }
    }
}

pub(super) async fn list(context: Context, _params: NoParams) -> Result<ConfigList, RpcError> {
    let home = context.app.services.home.clone();
    let servers = look(move || user_file::list(&home)).await??;
    Ok(ConfigList { servers })
}

pub(super) async fn add(context: Context, params: ConfigEntryParams) -> Result<(), RpcError> {
    let home = context.app.services.home.clone();
    Ok(look(move || user_file::add(&home, &params.name, params.config)).await??)
}

pub(super) async fn update(context: Context, params: ConfigEntryParams) -> Result<(), RpcError> {
    let home = context.app.services.home.clone();
    Ok(look(move || user_file::update(&home, &params.name, params.config)).await??)
}

pub(super) async fn remove(context: Context, params: ConfigNameParams) -> Result<(), RpcError> {
    let home = context.app.services.home.clone();
    Ok(look(move || user_file::remove(&home, &params.name)).await??)
}

pub(super) async fn enable(context: Context, params: ConfigNamesParams) -> Result<(), RpcError> {
    switch(context, params, Switch::On).await
}

pub(super) async fn disable(context: Context, params: ConfigNamesParams) -> Result<(), RpcError> {
    switch(context, params, Switch::Off).await
}

async fn switch(context: Context, params: ConfigNamesParams, on: Switch) -> Result<(), RpcError> {
    let home = context.app.services.home.clone();
    Ok(look(move || user_file::switch(&home, &params.names, on)).await??)
}

/// The files are read whenever they are needed, so that there is nothing to forget.
pub(super) async fn reload(_context: Context, _params: NoParams) -> Result<(), RpcError> {
    Ok(())
}
