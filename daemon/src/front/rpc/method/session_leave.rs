//! Ends the use of a session: destroy, suspend, shut down, delete.

use loopd_proto::params::metadata::{Ending, ShutdownParams};
use loopd_proto::params::session::{Deleted, Of, Success};

use super::family::Families;
use super::stored_delete;
use crate::client::Lifecycle;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionError;
use crate::session::clients::attach::DetachReason;
use loopd_kernel::command::Command;

pub(super) async fn destroy(context: Context, params: Of) -> Result<Success, RpcError> {
    let id = params.session_id;
    if !context.connection.detach(&id) {
        return match context.app.sessions.get(&id) {
            Some(_) => Err(SessionError::NotFound(id).into()),
            // Clients destroy a session once for each time they opened it. This one has ended.
            None => Ok(Success { success: false }),
        };
    }
    // It is no error if another client closed the session meanwhile.
    if let Some(session) = context.app.sessions.get(&id) {
        let left = session.detach(context.connection.id(), DetachReason::Destroy);
        match left.await {
            Ok(()) | Err(SessionError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Success::YES)
}

pub(super) async fn suspend(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    session.command(Command::Suspend(Vec::new())).await?;
    let processes = &context.app.services.processes;
    processes.end_session(&params.session_id).await;
    Ok(())
}

pub(super) async fn shutdown(context: Context, params: ShutdownParams) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let error = match params.kind {
        Ending::Routine => None,
        Ending::Error => Some(
            params
                .reason
                .unwrap_or_else(|| "no reason given".to_owned()),
        ),
    };
    session.close(error).await?;
    context.connection.detach(&params.session_id);
    Ok(())
}

pub(super) async fn delete(context: Context, params: Of) -> Result<Deleted, RpcError> {
    let id = params.session_id;
    if let Some(session) = context.app.sessions.get(&id) {
        session.stop().await;
    }
    context.connection.detach(&id);
    let services = &context.app.services;
    for agent in Families::load(services).await?.below(&id) {
        stored_delete::remove(&context, &agent).await?;
    }
    if stored_delete::remove(&context, &id).await?.is_none() {
        return Ok(Deleted {
            success: false,
            error: Some(format!("Session not found: {id}")),
        });
    }
    context.connection.launch().announce(&Lifecycle {
        kind: "session.deleted",
        session_id: &id,
        metadata: None,
    });
    Ok(Deleted {
        success: true,
        error: None,
    })
}
