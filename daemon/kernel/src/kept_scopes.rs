//! What messages set for their runs, kept for later runs that go on with the same work: those of the
//! autopilot, and those that the end of a background task starts. Without it, a restriction would end
//! when the agent goes on by itself.

use std::collections::{HashSet, VecDeque};

use loopd_proto::id::MessageId;
use loopd_proto::run_scope::RunScope;

use crate::skills::RunSkill;
use crate::state::Run;
use crate::tasks::Tasks;

/// How many runs are remembered that no task belongs to.
const MOST_KEPT: usize = 64;

/// What the most recent runs were restricted by, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptScopes(VecDeque<KeptScope>);

#[derive(Debug, Clone, PartialEq)]
struct KeptScope {
    messages: Vec<MessageId>,
    scopes: Vec<RunScope>,
    skills: Vec<RunSkill>,
}

impl KeptScopes {
    /// Remembers a run that ends, if anything restricted it. What a task of the session may still go on
    /// with is never forgotten, because then the task would go on without its restrictions.
    pub(crate) fn keep(&mut self, run: &Run, tasks: &Tasks) {
        if run.scopes.is_empty() && run.skills.is_empty() {
            return;
        }
        self.0.push_back(KeptScope {
            messages: run.messages.clone(),
            scopes: run.scopes.clone(),
            skills: run.skills.clone(),
        });
        if self.0.len() <= MOST_KEPT {
            return;
        }
        let origins = tasks.iter().filter_map(|task| task.origin.as_ref());
        let origins: HashSet<&MessageId> = origins.collect();
        let mut excess = self.0.len() - MOST_KEPT;
        self.0.retain(|kept| {
            let is_needed = kept.messages.iter().any(|id| origins.contains(id));
            if is_needed || excess == 0 {
                return true;
            }
            excess -= 1;
            false
        });
    }

    /// Restricts a run that goes on with the work on a message as the run before was.
    pub(crate) fn restore(&self, message: &MessageId, run: &mut Run) {
        let mut newest_first = self.0.iter().rev();
        let Some(kept) = newest_first.find(|kept| kept.messages.contains(message)) else {
            return;
        };
        for scope in &kept.scopes {
            if !run.scopes.contains(scope) {
                run.scopes.push(scope.clone());
            }
        }
        for skill in &kept.skills {
            if !run.skills.contains(skill) {
                run.skills.push(skill.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
