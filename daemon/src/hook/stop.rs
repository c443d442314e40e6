//! Hooks that are told of an end: of the loop, of a session, of a failed model call; and of what
//! people are notified of.

use loopd_proto::event::hook::HookEnd;

use super::context::HookContext;
use super::input::HookInput;
use super::output::HookOutput;

/// The most times that a hook may have a model call repeated.
const MOST_RETRIES: u64 = 5;

/// What hooks said when the loop was about to end.
#[derive(Debug, Default)]
pub struct StopEnd {
    /// What the model has to do first.
    pub block: Option<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// What hooks want done about a failed model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorHandling {
    /// The call is made again, at most so many times.
    Retry(u64),
    /// The session deals with it as it would without hooks.
    AsUsual,
}

impl HookContext {
    /// Asks whether the loop may end. `blocks` counts how often hooks have kept this run from it.
    pub async fn may_stop(&self, answer: &str, blocks: u32) -> StopEnd {
        let input = HookInput::stop(self.agent.as_ref(), answer, blocks);
        let mut end = StopEnd::default();
        let mut reasons = Vec::new();
        for outcome in self.dispatch(&input).await {
            let block = match &outcome.result {
                Ok(output) if output.member("modifiedResponse").is_some() => Err(
                    "it wants to change the answer of the agent (`modifiedResponse`), which loopd does \
                     not let hooks do"
                        .to_owned(),
                ),
                Ok(output) if output.stops() => Ok(None),
                Ok(output) => reason(output),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let block = block.unwrap_or_else(|cause| {
                self.warn_of(input.kind, &outcome.source, &cause);
                None
            });
            let changed = block.is_some();
            reasons.extend(block);
            end.ended.extend(self.close(outcome, changed));
        }
        end.block = (!reasons.is_empty()).then(|| reasons.join("\n\n"));
        end
    }

    /// Tells the hooks that the session ends.
    pub async fn session_ends(&self, reason: &str, error: Option<&str>) {
        self.tell(&HookInput::session_end(reason, error)).await;
    }

    /// Tells the hooks what people are notified of. Returns what they tell the model.
    pub async fn notified(
        &self,
        kind: &str,
        title: &str,
        message: &str,
    ) -> (Vec<String>, Vec<HookEnd>) {
        self.tell(&HookInput::notification(kind, title, message))
            .await
    }

    async fn tell(&self, input: &HookInput) -> (Vec<String>, Vec<HookEnd>) {
        let (mut told, mut ended) = (Vec::new(), Vec::new());
        for outcome in self.dispatch(input).await {
            let context = match &outcome.result {
                Ok(output) => output.context(),
                Err(failure) => {
                    self.warn_of(input.kind, &outcome.source, failure.cause());
                    None
                }
            };
            let changed = context.is_some();
            told.extend(context);
            ended.extend(self.close(outcome, changed));
        }
        (told, ended)
    }

    /// Asks what to do about a failed model call.
    pub async fn error_occurred(
        &self,
        error: &str,
        recoverable: bool,
    ) -> (ErrorHandling, Vec<HookEnd>) {
        let input = HookInput::error_occurred(error, recoverable);
        let mut handling = ErrorHandling::AsUsual;
        let mut ended = Vec::new();
        for outcome in self.dispatch(&input).await {
            let wanted = match &outcome.result {
                Ok(output) => self.handling(output),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let wanted = wanted.unwrap_or_else(|cause| {
                self.warn_of(input.kind, &outcome.source, &cause);
                ErrorHandling::AsUsual
            });
            let changed = wanted != ErrorHandling::AsUsual;
            if changed {
                handling = wanted;
            }
            ended.extend(self.close(outcome, changed));
        }
        (handling, ended)
    }

    fn handling(&self, output: &HookOutput) -> Result<ErrorHandling, String> {
        if let Some(told) = output.text_of("userNotification")? {
            self.warn("hook_notification", told.to_owned());
        }
        match output.text_of("errorHandling")? {
            None | Some("abort" | "skip") => Ok(ErrorHandling::AsUsual),
            Some("retry") => {
                let wanted = output
                    .member("retryCount")
                    .and_then(serde_json::Value::as_u64);
                Ok(ErrorHandling::Retry(wanted.unwrap_or(1).min(MOST_RETRIES)))
            }
            Some(other) => Err(format!(
                "its `errorHandling` is `{other}`; it can be `retry`, `skip` or `abort`"
            )),
        }
    }
}

pub(super) fn reason(output: &HookOutput) -> Result<Option<String>, String> {
    match output.block()? {
        Some(reason) if reason.trim().is_empty() => Err(
            "it blocks without a `reason`, which would be the next input of the model".to_owned(),
        ),
        block => Ok(block),
    }
}
