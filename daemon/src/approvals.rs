//! Approvals that outlive a session, kept per location in the store's facts. Each approval is one
//! fact, so that adding one never rewrites another.

use std::path::Path;

use loopd_proto::permission::{Approval, PermissionRule};

use loopd_store::{Store, StoreError, StoreFuture};
use serde_json::Value;

/// The location of approvals that hold everywhere.
pub const EVERYWHERE: &str = "*";

const SCOPE: &str = "approval";
/// Separates the location from the approval in the key of a fact; JSON on one line has none.
const SEPARATOR: char = '\n';
const TRUST: &str = "trusted-folder";

/// A location: the root of a repository, or a directory outside of repositories.
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

/// Adds an approval to a location; does nothing if it is there already.
pub fn remember(store: &dyn Store, location: &str, approval: &Approval) -> StoreFuture<()> {
    let value = serde_json::to_value(approval).unwrap_or_default();
    let key = format!("{location}{SEPARATOR}{value}");
    store.put_fact(SCOPE, &key, Some(value))
}

/// Returns the approvals of a fact and their location. Earlier versions kept a list under the
/// location alone. A value that cannot be read approves nothing.
fn of_fact(key: &str, value: Value) -> (&str, Vec<Approval>) {
    if value.is_array() {
        return (key, serde_json::from_value(value).unwrap_or_default());
    }
    let location = key.rsplit_once(SEPARATOR).map_or(key, |(at, _)| at);
    let approval = serde_json::from_value(value).ok();
    (location, approval.into_iter().collect())
}

/// Returns the rules for a session in a directory: those of its location, and those for everywhere.
pub async fn standing(
    store: &dyn Store,
    directory: &Path,
) -> Result<Vec<PermissionRule>, StoreError> {
    let facts = store.facts(SCOPE).await?;
    if facts.is_empty() {
        return Ok(Vec::new());
    }
    let here = locate(directory).key;
    let mut rules = Vec::new();
    for (key, value) in facts {
        let (location, approvals) = of_fact(&key, value);
        if location == here || location == EVERYWHERE {
            for rule in approvals.iter().flat_map(Approval::rules) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
    }
    Ok(rules)
}

pub async fn trust_folder(store: &dyn Store, folder: &str) -> Result<(), StoreError> {
    store.put_fact(TRUST, folder, Some(Value::Bool(true))).await
}

pub async fn is_trusted(store: &dyn Store, folder: &str) -> Result<bool, StoreError> {
    let facts = store.facts(TRUST).await?;
    Ok(facts
        .iter()
        .any(|(key, _)| Path::new(folder).starts_with(key)))
}
