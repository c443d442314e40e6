//! Hooks that are asked before a conversation is compacted.

use loopd_proto::event::hook::HookEnd;
use serde_json::json;

use super::context::HookContext;
use super::input::HookInput;
use crate::discovery::hooks::HookKind;

/// What hooks said before a compaction.
#[derive(Debug, Default)]
pub struct CompactionHooks {
    /// Why the conversation is not compacted.
    pub blocked: Option<String>,
    /// What the summary should dwell on.
    pub instructions: Vec<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

impl HookContext {
    /// Asks whether the conversation may be compacted. `trigger` is `manual` or `auto`. A hook that
    /// fails is reported and keeps nobody from it.
    pub async fn before_compaction(
        &self,
        trigger: &str,
        instructions: Option<&str>,
    ) -> CompactionHooks {
        let input = HookInput::new(
            HookKind::PreCompact,
            Some(trigger),
            json!({
                "trigger": trigger,
                "customInstructions": instructions.unwrap_or_default(),
            }),
        );
        let mut said = CompactionHooks::default();
        for outcome in self.dispatch(&input).await {
            let answer = match &outcome.result {
                Ok(output) => output.block().map(|block| {
                    let stops = output.stops().then(String::new);
                    (block.or(stops), output.context())
                }),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let (block, more) = answer.unwrap_or_else(|cause| {
                self.warn_of(input.kind, &outcome.source, &cause);
                (None, None)
            });
            let changed = block.is_some() || more.is_some();
            said.instructions.extend(more);
            if let Some(reason) = block {
                let reason = match reason.trim() {
                    "" => "it gave no reason",
                    reason => reason,
                };
                said.blocked = Some(format!("A preCompact hook blocks it: {reason}"));
            }
            said.ended.extend(self.close(outcome, changed));
        }
        said
    }
}
