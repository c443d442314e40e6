//! The skills that the user put out of use in all sessions, in the store.
//!
//! One fact has the list that a client set. A change of one skill is a fact of its own, so that two
//! changes at the same time do not overwrite each other.

use std::collections::BTreeSet;

use loopd_store::{Store, StoreError};
use serde_json::Value;

use crate::discovery::skills::is_same_skill;

const SCOPE: &str = "skills";
const LIST: &str = "disabled";
/// What the keys of facts about one skill begin with.
const ONE: &str = "disabled:";

/// Returns the names of the skills that are out of use.
pub async fn disabled(store: &dyn Store) -> Result<BTreeSet<String>, StoreError> {
    let facts = store.facts(SCOPE).await?;
    let list = facts.iter().find(|(key, _)| key == LIST);
    // The daemon stores a list of names here. Anything else counts as an empty list.
    let list = list.and_then(|(_, value)| serde_json::from_value(value.clone()).ok());
    let mut names: BTreeSet<String> = list.unwrap_or_default();
    for (key, value) in &facts {
        let Some(name) = key.strip_prefix(ONE) else {
            continue;
        };
        names.retain(|known| !is_same_skill(known, name));
        if *value == Value::Bool(true) {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// Puts exactly these skills out of use.
pub async fn set_disabled(store: &dyn Store, names: Vec<String>) -> Result<(), StoreError> {
    for (key, _) in store.facts(SCOPE).await? {
        if key.starts_with(ONE) {
            store.put_fact(SCOPE, &key, None).await?;
        }
    }
    let list = Value::Array(names.into_iter().map(Value::String).collect());
    store.put_fact(SCOPE, LIST, Some(list)).await
}

/// Puts one skill out of use, or back into use.
pub async fn set_one_disabled(
    store: &dyn Store,
    name: &str,
    disabled: bool,
) -> Result<(), StoreError> {
    let key = format!("{ONE}{}", name.trim().to_lowercase());
    store
        .put_fact(SCOPE, &key, Some(Value::Bool(disabled)))
        .await
}
