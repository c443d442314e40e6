//! What the user's own files bring, as people were told it. Own files need no trust, but whatever a tool
//! wrote into them must not count without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use loopd_store::{Store, StoreError};

use super::{ACCEPT, GatedHooks};
use crate::discovery::Problem;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::HookOrigin;

const SCOPE: &str = "seen-own-content";

/// Something that a file of the user's own brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnContent {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub what: String,
    pub hash: ContentHash,
    /// Whether what it allows counts.
    pub may_allow: bool,
}

impl OwnContent {
    /// Returns the hooks of the user's own files that run.
    pub fn of_hooks(hooks: &GatedHooks) -> impl Iterator<Item = Self> {
        let running = hooks.running();
        let own = running.filter(|hook| hook.source.origin == HookOrigin::User);
        own.map(|hook| Self {
            file: hook.file.clone(),
            line: Some(hook.line),
            what: format!("this {} hook", hook.kind_name()),
            hash: hook.hash.clone(),
            may_allow: !hook.is_new,
        })
    }

    fn notice(&self) -> String {
        let counts = if self.may_allow {
            "it counts".to_owned()
        } else {
            format!("it counts, but cannot allow anything until you say that it is yours: {ACCEPT}")
        };
        let what = format!(
            "{} is new or has changed since loopd last used this file; {counts}. If you did not write it, \
             take it out.",
            self.what
        );
        let problem = Problem {
            line: self.line,
            ..Problem::new(&self.file, what)
        };
        problem.to_string()
    }
}

/// Returns a notice for each of these that nobody was told of yet, and records that people are told. If
/// the record cannot be used, people are told again.
pub async fn tell_unseen(store: &dyn Store, content: &[OwnContent]) -> Vec<String> {
    match unseen(store, content).await {
        Ok(notices) => notices,
        Err(error) => {
            tracing::warn!(%error, "it is not known which hooks people were told of");
            content.iter().map(OwnContent::notice).collect()
        }
    }
}

async fn unseen(store: &dyn Store, content: &[OwnContent]) -> Result<Vec<String>, StoreError> {
    let mut files: BTreeMap<String, Vec<&OwnContent>> = BTreeMap::new();
    for own in content {
        let file = own.file.to_string_lossy().into_owned();
        files.entry(file).or_default().push(own);
    }
    let seen: BTreeMap<_, _> = store.facts(SCOPE).await?.into_iter().collect();
    let mut notices = Vec::new();
    for (file, content) in files {
        let known: BTreeSet<ContentHash> = seen
            .get(&file)
            .and_then(|value| serde_json::from_value(value.clone()).ok())
            .unwrap_or_default();
        let new = content.iter().filter(|own| !known.contains(&own.hash));
        let new: Vec<String> = new.map(|own| own.notice()).collect();
        if new.is_empty() {
            continue;
        }
        notices.extend(new);
        let hashes: BTreeSet<&ContentHash> = content.iter().map(|own| &own.hash).collect();
        let value = serde_json::to_value(hashes).unwrap_or_default();
        store.put_fact(SCOPE, &file, Some(value)).await?;
    }
    Ok(notices)
}
