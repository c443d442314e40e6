//! The working sub-agents of a session, and how new sub-agents get their ids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loopd_proto::id::TaskId;

use super::left::LeftCommand;
use super::{SubagentOrder, SubagentPlan, SubagentRun};

/// The longest readable part of an id.
const LONGEST_NAME: usize = 40;

#[derive(Default)]
pub(super) struct RunTable {
    pub(super) runs: BTreeMap<TaskId, Arc<SubagentRun>>,
    /// Ids that were given out and are not in the log yet.
    pub(super) reserved: BTreeSet<TaskId>,
    /// The commands that sub-agents left running, by their ids in the session's log.
    pub(super) left: BTreeMap<TaskId, LeftCommand>,
    pub(super) ended: bool,
}

impl RunTable {
    /// Reserves an id that no task of the session has. Returns it, and whether it differs from the
    /// wanted one because another task has that.
    pub(super) fn reserve(
        &mut self,
        plan: &SubagentPlan,
        order: &SubagentOrder,
    ) -> (TaskId, Renamed) {
        let words = [
            order.name.as_deref().unwrap_or_default(),
            order.description.as_str(),
            plan.profile.agent_type.as_str(),
        ];
        let name = words.into_iter().map(slug).find(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "agent".to_owned());
        let base = match &plan.prefix {
            Some(prefix) => format!("{prefix}.{name}"),
            None => name,
        };
        let free = |id: &TaskId| {
            !plan.taken.contains(id) && !self.reserved.contains(id) && !self.runs.contains_key(id)
        };
        let numbered = (2_u64..).map(|number| TaskId::new(format!("{base}-{number}")));
        let id = std::iter::once(TaskId::new(base.as_str()))
            .chain(numbered)
            .find(free)
            .unwrap_or_else(|| TaskId::new(base.as_str()));
        self.reserved.insert(id.clone());
        let renamed = if id.as_str() == base {
            Renamed::No
        } else {
            Renamed::Yes
        };
        (id, renamed)
    }
}

/// Whether a sub-agent has another id than the wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renamed {
    No,
    Yes,
}

/// Turns a text into part of an id: small letters, digits, underscores and hyphens.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() >= LONGEST_NAME {
            break;
        }
        if c.is_ascii_alphanumeric() || c == '_' {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}
