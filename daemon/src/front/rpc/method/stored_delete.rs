//! The disk space that sessions take, and deleting sessions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loopd_proto::id::SessionId;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::stored::{Freed, IdsParams, PruneParams, Pruned, Sizes};

use super::family::{Families, opened};
use crate::client::Lifecycle;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// How many sessions one request may name.
const MOST_SESSIONS: usize = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Refuses a list that names too many sessions.
pub(super) fn check_count<T>(named: &[T]) -> Result<(), RpcError> {
    if named.len() > MOST_SESSIONS {
        return Err(RpcError::InvalidParams(format!(
            "at most {MOST_SESSIONS} sessions can be named in one request"
        )));
    }
    Ok(())
}

pub(super) async fn sizes(context: Context, _: NoParams) -> Result<Sizes, RpcError> {
    let services = &context.app.services;
    let mut logs: HashMap<SessionId, u64> = services.store.sizes().await?.into_iter().collect();
    let families = Families::load(services).await?;
    let mut sizes = BTreeMap::new();
    for record in opened(services).await? {
        let mut size = 0_u64;
        let own = std::iter::once(record.id.clone());
        for id in own.chain(families.below(&record.id)) {
            let log = logs.remove(&id).unwrap_or(0);
            let folder = services.session_folder_size(&id).await;
            size = size.saturating_add(log).saturating_add(folder);
        }
        sizes.insert(record.id, size);
    }
    Ok(Sizes { sizes })
}

pub(super) async fn bulk_delete(context: Context, params: IdsParams) -> Result<Freed, RpcError> {
    check_count(&params.session_ids)?;
    let families = Families::load(&context.app.services).await?;
    let mut freed_bytes = BTreeMap::new();
    for id in params.session_ids {
        match delete(&context, &id, &families).await {
            Ok(freed) => {
                freed_bytes.insert(id, freed);
            }
            // The caller sees that this session is missing from the answer.
            Err(error) => {
                tracing::error!(session = %id, %error, "a session could not be deleted");
            }
        }
    }
    Ok(Freed { freed_bytes })
}

/// Ends a session if it is live, deletes it and the sessions of its sub-agents, and returns the
/// freed bytes: 0 for an unknown session.
async fn delete(context: &Context, id: &SessionId, families: &Families) -> Result<u64, RpcError> {
    if let Some(session) = context.app.sessions.get(id) {
        session.close(None).await?;
    }
    context.connection.detach(id);
    let mut freed = 0_u64;
    for agent in families.below(id) {
        freed = freed.saturating_add(remove(context, &agent).await?.unwrap_or(0));
    }
    let own = remove(context, id).await?;
    if own.is_some() {
        context.connection.launch().announce(&Lifecycle {
            kind: "session.deleted",
            session_id: id,
            metadata: None,
        });
    }
    Ok(freed.saturating_add(own.unwrap_or(0)))
}

/// Deletes one session that is not live; returns `None` if there is no such session. The files go
/// first: as long as they cannot be removed, the session is there and can be deleted again.
pub(super) async fn remove(context: &Context, id: &SessionId) -> Result<Option<u64>, RpcError> {
    let services = &context.app.services;
    // The id of an unknown session must not be used as the name of a folder.
    if services.store.record(id).await?.is_none() {
        return Ok(None);
    }
    let log = services.store.size_of(id).await?;
    let folder = services.session_folder_size(id).await;
    let removed = services.remove_session_folder(id).await;
    removed.map_err(|error| RpcError::Failed(error.to_string()))?;
    let deleted = services.store.delete(id).await?;
    Ok(deleted.then(|| log.saturating_add(folder)))
}

pub(super) async fn prune(context: Context, params: PruneParams) -> Result<Pruned, RpcError> {
    let services = &context.app.services;
    let age = i64::from(params.older_than_days).saturating_mul(DAY_MS);
    let newest = services.clock.now().0.saturating_sub(age);
    let never: BTreeSet<SessionId> = params.exclude_session_ids.into_iter().flatten().collect();
    let mut pruned = Pruned {
        dry_run: params.dry_run,
        ..Pruned::default()
    };
    let families = Families::load(services).await?;
    for record in opened(services).await? {
        let id = record.id;
        if record.modified_ms > newest || never.contains(&id) {
            continue;
        }
        let live = context.app.sessions.get(&id).is_some();
        if live || (record.name.is_some() && !params.include_named) {
            pruned.skipped.push(id);
        } else if params.dry_run {
            let own = std::iter::once(id.clone());
            for id in own.chain(families.below(&id)) {
                let log = services.store.size_of(&id).await?;
                let folder = services.session_folder_size(&id).await;
                pruned.freed_bytes += log.saturating_add(folder);
            }
            pruned.candidates.push(id);
        } else {
            match delete(&context, &id, &families).await {
                Ok(freed) => {
                    pruned.freed_bytes += freed;
                    pruned.deleted.push(id);
                }
                // The others are pruned all the same, and the caller sees that this one is there.
                Err(error) => {
                    tracing::error!(session = %id, %error, "a session could not be deleted");
                    pruned.skipped.push(id);
                }
            }
        }
    }
    Ok(pruned)
}
