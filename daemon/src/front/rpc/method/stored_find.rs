//! Finds stored sessions and describes them.

use loopd_proto::params::session::{LastId, Listed, Metadata};
use loopd_proto::params::stored::{
    ContextParams, Described, ListStoredParams, PrefixParams, Source, TaskParams,
};

use super::family::opened;
use super::session_stored::{describe, matches};
use super::stored_delete::check_count;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// The shortest prefix of an id. A shorter one is more likely a mistake than a choice.
const SHORTEST_PREFIX: usize = 7;

pub(super) async fn list(context: Context, params: ListStoredParams) -> Result<Listed, RpcError> {
    if params.source == Some(Source::Remote) {
        return Ok(Listed {
            sessions: Vec::new(),
        });
    }
    let records = opened(&context.app.services).await?;
    let filter = params.filter.unwrap_or_default();
    let full = params.metadata_limit.unwrap_or(usize::MAX);
    let fitting = records
        .into_iter()
        .filter(|record| matches(record, &filter));
    Ok(Listed {
        sessions: fitting
            .enumerate()
            .map(|(index, record)| {
                let whole = describe(record);
                if index < full { whole } else { basics(whole) }
            })
            .collect(),
    })
}

/// Removes what a client gets only if it asks for the description of a session.
fn basics(whole: Metadata) -> Metadata {
    Metadata {
        summary: None,
        name: None,
        client_name: None,
        context: None,
        ..whole
    }
}

pub(super) async fn by_prefix(context: Context, params: PrefixParams) -> Result<LastId, RpcError> {
    if params.prefix.chars().count() < SHORTEST_PREFIX {
        return Err(RpcError::InvalidParams(format!(
            "prefix: give at least the first {SHORTEST_PREFIX} characters of the session's id"
        )));
    }
    let store = &context.app.services.store;
    let mut found = store.find_by_prefix(&params.prefix).await?.into_iter();
    Ok(LastId {
        session_id: match (found.next(), found.next()) {
            (Some(only), None) => Some(only),
            (None | Some(_), _) => None,
        },
    })
}

/// Finds nothing: sessions of this daemon never belong to tasks of another service.
pub(super) async fn by_task(_: Context, params: TaskParams) -> Result<LastId, RpcError> {
    if params.task_id.is_empty() {
        return Err(RpcError::InvalidParams(
            "taskId: must not be empty".to_owned(),
        ));
    }
    Ok(LastId { session_id: None })
}

pub(super) async fn last_for_context(
    context: Context,
    params: ContextParams,
) -> Result<LastId, RpcError> {
    let place = params.context.unwrap_or_default();
    let records = opened(&context.app.services).await?;
    let mut fitting = records.into_iter().filter(|record| matches(record, &place));
    Ok(LastId {
        session_id: fitting.next().map(|record| record.id),
    })
}

/// Fills in the fields that the caller left out. Given fields stay, and so do unknown sessions.
pub(super) async fn enrich(context: Context, params: Described) -> Result<Described, RpcError> {
    check_count(&params.sessions)?;
    let mut sessions = Vec::with_capacity(params.sessions.len());
    for given in params.sessions {
        if given.is_remote {
            return Err(RpcError::InvalidParams(format!(
                "sessions: {} is a remote session; only local ones are known here",
                given.session_id
            )));
        }
        let record = context.app.services.store.record(&given.session_id).await?;
        sessions.push(match record.map(describe) {
            None => given,
            Some(known) => Metadata {
                summary: given.summary.or(known.summary),
                name: given.name.or(known.name),
                client_name: given.client_name.or(known.client_name),
                context: given.context.or(known.context),
                ..given
            },
        });
    }
    Ok(Described { sessions })
}
