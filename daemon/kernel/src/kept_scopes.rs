//! What messages set for their runs, kept for later runs that go on with the same work: those of the
//! autopilot, and those that the end of a background task starts. Without it, a restriction would end
//! when the agent goes on by itself.

use std::collections::VecDeque;

use loopd_proto::id::MessageId;
use loopd_proto::run_scope::RunScope;

use crate::skills::RunSkill;
use crate::state::Run;

/// How many runs are remembered.
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
    /// Remembers a run that ends, if anything restricted it.
    pub(crate) fn keep(&mut self, run: &Run) {
        if run.scopes.is_empty() && run.skills.is_empty() {
            return;
        }
        self.0.push_back(KeptScope {
            messages: run.messages.clone(),
            scopes: run.scopes.clone(),
            skills: run.skills.clone(),
        });
        while self.0.len() > MOST_KEPT {
            self.0.pop_front();
        }
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
