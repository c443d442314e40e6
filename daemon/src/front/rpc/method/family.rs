//! Tells stored sessions that users opened from those of sub-agents, which are deleted with their
//! parent.

use std::collections::HashMap;

use loopd_proto::id::SessionId;
use loopd_store::SessionRecord;

use crate::front::rpc::error::RpcError;
use crate::services::Services;

/// Returns the sessions that users opened, the last modified first.
pub(super) async fn opened(services: &Services) -> Result<Vec<SessionRecord>, RpcError> {
    let records = services.store.list().await?;
    let opened = records.into_iter().filter(|record| record.agent.is_none());
    Ok(opened.collect())
}

/// The sessions of sub-agents, by the session that started them.
pub(super) struct Families(HashMap<SessionId, Vec<SessionId>>);

impl Families {
    pub(super) async fn load(services: &Services) -> Result<Self, RpcError> {
        let mut families: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
        for record in services.store.list().await? {
            if let (Some(_), Some(parent)) = (record.agent, record.parent) {
                families.entry(parent).or_default().push(record.id);
            }
        }
        Ok(Self(families))
    }

    /// Returns the sessions of all sub-agents below a session, at any depth.
    pub(super) fn below(&self, id: &SessionId) -> Vec<SessionId> {
        let mut found: Vec<SessionId> = self.0.get(id).cloned().unwrap_or_default();
        let mut looked_at = 0;
        while let Some(next) = found.get(looked_at).cloned() {
            looked_at += 1;
            for child in self.0.get(&next).into_iter().flatten() {
                // A damaged record must not cause an endless loop.
                if child != id && !found.contains(child) {
                    found.push(child.clone());
                }
            }
        }
        found
    }
}
