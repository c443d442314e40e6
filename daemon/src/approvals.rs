//! ChildStatus approvals that outlive a session, kept per location in the store's facts.

use std::path::Path;

use loopd_proto::permission::{Approval, PermissionRule};

use loopd_store::{Store, StoreError};

/// The location of approvals that hold wherever a session works.
pub const EVERYWHERE: &str = "*";

const SCOPE: &str = "approval";
const TRUST: &str = "trusted-folder";

/// What a location is: the root of a repository, or just a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocationKey {
    pub key: String,
    pub kind: &'static str,
}

/// Finds the location that approvals for a directory belong to.
pub fn locate(directory: &Path) -> LocationKey {
    let repository = directory
        .ancestors()
        .find(|folder| folder.join(".git").exists());
    let (folder, kind) = match repository {
        Some(root) => (root, "repo"),
        None => (directory, "dir"),
    };
    LocationKey {
        key: folder.to_string_lossy().into_owned(),
        kind,
    }
}

/// Adds an approval to a location.
pub async fn remember(
    store: &dyn Store,
    location: &str,
    approval: &Approval,
) -> Result<(), StoreError> {
    let mut approvals = stored(store, location).await?;
    if !approvals.contains(approval) {
        approvals.push(approval.clone());
    }
    let value = serde_json::to_value(&approvals).unwrap_or_default();
    store.put_fact(SCOPE, location, Some(value)).await
}

/// The rules that hold for a session that works in a directory: its location's, and everywhere's.
pub async fn standing(
    store: &dyn Store,
    directory: &Path,
) -> Result<Vec<PermissionRule>, StoreError> {
    let facts = store.facts(SCOPE).await?;
    if facts.is_empty() {
        return Ok(Vec::new());
    }
    let here = locate(directory).key;
    let approvals: Vec<Approval> = facts
        .into_iter()
        .filter(|(key, _)| *key == here || key == EVERYWHERE)
        .filter_map(|(_, value)| serde_json::from_value::<Vec<Approval>>(value).ok())
        .flatten()
        .collect();
    Ok(approvals.iter().flat_map(Approval::rules).collect())
}

async fn stored(store: &dyn Store, location: &str) -> Result<Vec<Approval>, StoreError> {
    let facts = store.facts(SCOPE).await?;
    let found = facts.into_iter().find(|(key, _)| key == location);
    Ok(found
        .and_then(|(_, value)| serde_json::from_value(value).ok())
        .unwrap_or_default())
}

pub async fn trust_folder(store: &dyn Store, folder: &str) -> Result<(), StoreError> {
    store
        .put_fact(TRUST, folder, Some(serde_json::Value::Bool(true)))
        .await
}

pub async fn is_trusted(store: &dyn Store, folder: &str) -> Result<bool, StoreError> {
    let facts = store.facts(TRUST).await?;
    Ok(facts
        .iter()
        .any(|(key, _)| Path::new(folder).starts_with(key)))
}
