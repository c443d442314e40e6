//! Methods about stored sessions that do not open them.

use loopd_proto::event::session::WorkContext;
use loopd_proto::id::SessionId;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::session::{
    Deleted, Found, LastId, ListFilter, ListParams, Listed, Metadata, Of,
};
use loopd_proto::time::Timestamp;
use loopd_store::SessionRecord;

use super::family::opened;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

pub(super) async fn list(context: Context, params: ListParams) -> Result<Listed, RpcError> {
    let records = opened(&context.app.services).await?;
    let filter = params.filter.unwrap_or_default();
    Ok(Listed {
        sessions: records
            .into_iter()
            .filter(|record| matches(record, &filter))
            .map(describe)
            .collect(),
    })
}

pub(super) fn matches(record: &SessionRecord, filter: &ListFilter) -> bool {
    let same = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
    same(&filter.cwd, &record.cwd)
        && same(&filter.git_root, &record.git_root)
        && same(&filter.repository, &record.repository)
        && same(&filter.branch, &record.branch)
}

pub(super) fn describe(record: SessionRecord) -> Metadata {
    Metadata {
        session_id: record.id,
        start_time: Timestamp(record.created_ms),
        modified_time: Timestamp(record.modified_ms),
        summary: record.summary,
        name: record.name,
        client_name: record.client_name,
        is_remote: false,
        is_detached: false,
        context: record.cwd.map(|cwd| WorkContext {
            cwd,
            git_root: record.git_root,
            repository: record.repository,
            branch: record.branch,
            ..WorkContext::default()
        }),
    }
}

pub(super) async fn metadata(context: Context, params: Of) -> Result<Found, RpcError> {
    let record = context
        .app
        .services
        .store
        .record(&params.session_id)
        .await?;
    Ok(Found {
        session: record.map(describe),
    })
}

pub(super) async fn last_id(context: Context, _: NoParams) -> Result<LastId, RpcError> {
    let records = opened(&context.app.services).await?;
    Ok(LastId {
        session_id: records.into_iter().next().map(|record| record.id),
    })
}

/// Answers that no session is in the foreground: a daemon has no screen.
pub(super) async fn foreground(_: Context, _: NoParams) -> Result<LastId, RpcError> {
    Ok(LastId { session_id: None })
}

pub(super) async fn set_foreground(_: Context, params: Of) -> Result<Deleted, RpcError> {
    let id: SessionId = params.session_id;
    Ok(Deleted {
        success: false,
        error: Some(format!(
            "Not running in TUI+server mode: this daemon shows no session, so {id} cannot be put in front"
        )),
    })
}
