//! Hooks around a prompt: the start of a session or sub-agent, what a person sends, and what the
//! model gets of it.

use loopd_proto::event::hook::HookEnd;

use super::answer::cut;
use super::context::HookContext;
use super::input::HookInput;
use super::output::HookOutput;
use crate::discovery::hooks::HookKind;

/// What hooks made of a prompt.
#[derive(Debug, Default)]
pub struct PromptEnd {
    /// The text that replaces the prompt.
    pub changed: Option<String>,
    /// What the model is told before the prompt.
    pub context: Vec<String>,
    /// Why the prompt is not sent.
    pub blocked: Option<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

impl PromptEnd {
    /// Adds what the model is told and what was changed at another point.
    pub fn add(&mut self, other: Self) {
        self.context.extend(other.context);
        self.ended.extend(other.ended);
    }
}

impl HookContext {
    /// Tells the hooks that the session begins, or that a sub-agent does.
    pub async fn session_starts(&self, source: &str, prompt: &str) -> PromptEnd {
        let input = match &self.agent {
            Some(agent) => HookInput::subagent_start(agent, prompt),
            None => HookInput::session_start(source, prompt),
        };
        self.around_prompt(&input, None).await
    }

    /// Shows the hooks what a person sends.
    pub async fn prompt_submitted(&self, prompt: &str) -> PromptEnd {
        let input = HookInput::prompt_submitted(prompt);
        self.around_prompt(&input, Some("modifiedPrompt")).await
    }

    /// Shows the hooks what the model is about to get of a prompt.
    pub async fn prompt_transformed(&self, prompt: &str, transformed: &str) -> PromptEnd {
        let input = HookInput::prompt_transformed(prompt, transformed);
        self.around_prompt(&input, Some("modifiedTransformedPrompt"))
            .await
    }

    async fn around_prompt(&self, input: &HookInput, changes: Option<&str>) -> PromptEnd {
        let mut end = PromptEnd::default();
        for outcome in self.dispatch(input).await {
            let read = match &outcome.result {
                Ok(output) => read(output, input.kind, changes),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let has_effect = match read {
                Ok(one) => {
                    let has_effect =
                        one.changed.is_some() || one.blocked.is_some() || !one.context.is_empty();
                    end.changed = end.changed.or(one.changed);
                    end.blocked = end.blocked.or(one.blocked);
                    end.context.extend(one.context);
                    has_effect
                }
                Err(cause) => {
                    self.warn_of(input.kind, &outcome.source, &cause);
                    false
                }
            };
            end.ended.extend(self.close(outcome, has_effect));
        }
        end
    }
}

pub(super) fn read(
    output: &HookOutput,
    kind: HookKind,
    changes: Option<&str>,
) -> Result<PromptEnd, String> {
    let mut end = PromptEnd::default();
    if let Some(name) = changes {
        let text = output.text_of(name)?;
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(format!("its `{name}` is empty"));
        }
        end.changed = text.map(str::to_owned);
    }
    if output.member("modifiedConfig").is_some() {
        return Err(
            "it wants to change the configuration (`modifiedConfig`), which loopd does not let hooks \
             do"
            .to_owned(),
        );
    }
    let text = output.text.as_deref().map(cut);
    end.context = output.context().into_iter().chain(text).collect();
    if kind == HookKind::UserPromptSubmitted {
        end.blocked = output.block()?;
        // What seems to say no is not let through because of its words.
        let says_no = output.odd.iter().find(|odd| odd.says_no(output));
        end.blocked = end
            .blocked
            .or(says_no.map(|odd| format!("{} and says no", odd.told())));
    }
    if kind != HookKind::UserPromptTransformed && output.stops() {
        let why = output.text_of("stopReason")?.unwrap_or_default().to_owned();
        end.blocked = end.blocked.or(Some(why));
    }
    Ok(end)
}
