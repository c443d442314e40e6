//! Building a decision, step by step.

use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::ToolCallId;

use super::{Answer, Decision, Effect, Step};

impl Decision {
    pub fn store(&mut self, event: Durable) -> &mut Self {
        self.steps.push(Step::Store(event));
        self
    }

    pub fn tell(&mut self, event: Ephemeral) -> &mut Self {
        self.steps.push(Step::Tell(event));
        self
    }

    pub fn run(&mut self, effect: Effect) -> &mut Self {
        self.steps.push(Step::Do(effect));
        self
    }

    /// Returns whether the intent to run a call is stored.
    pub(crate) fn starts(&self, call: &ToolCallId) -> bool {
        self.steps.iter().any(|step| {
            matches!(step, Step::Store(Durable::ToolStart(start)) if start.tool_call_id == *call)
        })
    }

    /// Returns whether the result of a call is stored.
    pub(crate) fn completes(&self, call: &ToolCallId) -> bool {
        self.steps.iter().any(|step| {
            matches!(step, Step::Store(Durable::ToolComplete(end)) if end.tool_call_id == *call)
        })
    }

    pub fn answering(answer: Answer) -> Self {
        Self {
            steps: Vec::new(),
            answer,
        }
    }
}
