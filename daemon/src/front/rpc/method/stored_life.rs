//! What a client may do to sessions by their id alone: flush them, end them, and ask whether they
//! are in use.

use loopd_proto::id::SessionId;
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::params::stored::{IdsParams, InUse};

use super::stored_delete::check_count;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionError;

/// Flushes a session. Events are committed before they are published, so this only waits for the
/// commands that are in the mailbox.
pub(super) async fn save(context: Context, params: Of) -> Result<NoResult, RpcError> {
    if let Some(session) = context.app.sessions.get(&params.session_id) {
        match session.view(|_| ()).await {
            Ok(()) => return Ok(NoResult {}),
            // The session ended meanwhile, so everything is in its log.
            Err(SessionError::NotFound(_) | SessionError::Faulted(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    known(&context, &params.session_id).await?;
    Ok(NoResult {})
}

pub(super) async fn close(context: Context, params: Of) -> Result<NoResult, RpcError> {
    match context.app.sessions.get(&params.session_id) {
        Some(session) => session.close(None).await?,
        None => known(&context, &params.session_id).await?,
    }
    Ok(NoResult {})
}

/// Releases nothing: the lock of the daemon covers its whole home, and a session has none.
pub(super) async fn release_lock(context: Context, params: Of) -> Result<NoResult, RpcError> {
    known(&context, &params.session_id).await?;
    Ok(NoResult {})
}

pub(super) async fn check_in_use(context: Context, params: IdsParams) -> Result<InUse, RpcError> {
    check_count(&params.session_ids)?;
    let mut in_use = Vec::new();
    for id in params.session_ids {
        if is_in_use(&context, &id).await {
            in_use.push(id);
        }
    }
    Ok(InUse { in_use })
}

async fn is_in_use(context: &Context, id: &SessionId) -> bool {
    match context.app.sessions.get(id) {
        // A session that ends during this request is not in use.
        Some(session) => session.view(|view| view.in_use).await.unwrap_or(false),
        None => false,
    }
}

/// Refuses a session that is neither live nor stored.
async fn known(context: &Context, id: &SessionId) -> Result<(), RpcError> {
    if context.app.sessions.get(id).is_none()
        && context.app.services.store.record(id).await?.is_none()
    {
        return Err(SessionError::NotFound(id.clone()).into());
    }
    Ok(())
}
