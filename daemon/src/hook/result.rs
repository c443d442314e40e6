//! Hooks that read and may change the result of a tool call.

use loopd_proto::event::hook::HookEnd;
use serde_json::{Map, Value};

use super::answer::cut;
use super::context::HookContext;
use super::input::HookInput;
use super::output::HookOutput;
use crate::discovery::hooks::HookKind;
use loopd_kernel::command::{CallOutcome, CallStatusReport};
use loopd_kernel::model::ToolCall;
use loopd_kernel::texts;

/// What the model reads instead of a result that a hook suppressed.
const SUPPRESSED: &str = "A hook keeps the output of this call back.";

/// What the model reads instead of a result that a hook wanted to change, if its answer cannot be used.
/// What a hook wants to take out must not get through.
const UNUSABLE: &str = "A hook wanted to change the output of this call, but its answer could not be \
                        used. The output is kept back.";

/// A result after the hooks have seen it.
pub struct ReviewEnd {
    pub outcome: CallOutcome,
    /// What the model is told after the results of the turn.
    pub context: Vec<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// Returns the kind of hook that reads this result; `None` if the call did not run.
pub fn review_kind(outcome: &CallOutcome) -> Option<HookKind> {
    match &outcome.status {
        CallStatusReport::Success => Some(HookKind::PostToolUse),
        CallStatusReport::Failure { code } if code == "failure" => {
            Some(HookKind::PostToolUseFailure)
        }
        // Calls that were denied, rejected or interrupted did not fail.
        CallStatusReport::Failure { .. } => None,
    }
}

impl HookContext {
    /// Shows the result of a call to the hooks.
    pub async fn review(&self, call: &ToolCall, outcome: CallOutcome) -> ReviewEnd {
        let mut end = ReviewEnd {
            outcome,
            context: Vec::new(),
            ended: Vec::new(),
        };
        if review_kind(&end.outcome) == Some(HookKind::PostToolUse) {
            self.review_success(call, &mut end).await;
        }
        // A hook may have turned a success into a failure.
        if review_kind(&end.outcome) == Some(HookKind::PostToolUseFailure) {
            self.review_failure(call, &mut end).await;
        }
        end
    }

    async fn review_success(&self, call: &ToolCall, end: &mut ReviewEnd) {
        let result = &end.outcome.result;
        let input =
            HookInput::post_tool_use(call, &result.content, result.detailed_content.as_deref());
        let mut added = Vec::new();
        for outcome in self.dispatch(&input).await {
            let changes = match &outcome.result {
                Ok(output) => {
                    let modified = modified_result(output);
                    let modified = modified.and_then(|it| Ok((it, output.block()?)));
                    match modified {
                        Ok((modified, block)) => Ok((
                            modified.cloned(),
                            block
                                .into_iter()
                                .chain(output.context())
                                .collect::<Vec<_>>(),
                            output.is_set("suppressOutput"),
                        )),
                        Err(wrong) => Err(wrong),
                    }
                }
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let has_effect = match changes {
                Ok((modified, texts, suppressed)) => {
                    let has_effect = modified.is_some() || !texts.is_empty() || suppressed;
                    if let Some(modified) = modified {
                        replace(&mut end.outcome, &Value::Object(modified));
                    } else if suppressed {
                        SUPPRESSED.clone_into(&mut end.outcome.result.content);
                        end.outcome.result.binary_results_for_llm = None;
                    }
                    added.extend(texts);
                    has_effect
                }
                Err(cause) => {
                    self.warn_of(input.kind, &outcome.source, &cause);
                    let wants_change = |output: &HookOutput| {
                        output.member("modifiedResult").is_some() || output.is_set("suppressOutput")
                    };
                    let keeps_back = outcome.result.as_ref().is_ok_and(wants_change);
                    if keeps_back {
                        UNUSABLE.clone_into(&mut end.outcome.result.content);
                        end.outcome.result.binary_results_for_llm = None;
                        end.outcome.result.detailed_content = None;
                    }
                    keeps_back
                }
            };
            end.ended.extend(self.close(outcome, has_effect));
        }
        if !added.is_empty() {
            let content = &mut end.outcome.result.content;
            content.push_str("\n\n");
            content.push_str(&cut(&added.join("\n\n")));
        }
    }

    async fn review_failure(&self, call: &ToolCall, end: &mut ReviewEnd) {
        let input = HookInput::post_tool_use_failure(call, &end.outcome.result.content);
        let mut added = Vec::new();
        for outcome in self.dispatch(&input).await {
            let told = match &outcome.result {
                Ok(output) => output.context().or_else(|| output.refused.clone()),
                Err(failure) => {
                    self.warn_of(input.kind, &outcome.source, failure.cause());
                    None
                }
            };
            let told = told.filter(|told| !told.is_empty());
            let changed = told.is_some();
            added.extend(told);
            end.ended.extend(self.close(outcome, changed));
        }
        if !added.is_empty() {
            let guidance = cut(&added.join("\n\n"));
            end.context
                .push(texts::failure_guidance(&call.name, &guidance));
        }
    }
}

/// Returns the result that a hook wants. It has to say something that is understood.
fn modified_result(output: &HookOutput) -> Result<Option<&Map<String, Value>>, String> {
    let Some(modified) = output.object_of("modifiedResult")? else {
        return Ok(None);
    };
    let member = |name: &str| {
        let value = modified.get(name).filter(|value| !value.is_null());
        let text = value.map(|value| match value {
            Value::String(text) => Ok(text.as_str()),
            other => Err(format!(
                "`{name}` of its `modifiedResult` is not a text but {other}"
            )),
        });
        text.transpose()
    };
    let text = member("textResultForLlm")?;
    member("sessionLog")?;
    let kind = member("resultType")?;
    if text.is_none() && kind.is_none() {
        return Err("its `modifiedResult` has no `textResultForLlm`".to_owned());
    }
    Ok(Some(modified))
}

/// Replaces the result of a call by that of a hook.
fn replace(outcome: &mut CallOutcome, modified: &Value) {
    let text = modified.get("textResultForLlm").and_then(Value::as_str);
    if let Some(text) = text {
        text.clone_into(&mut outcome.result.content);
        outcome.result.binary_results_for_llm = None;
        outcome.result.detailed_content = modified
            .get("sessionLog")
            .and_then(Value::as_str)
            .map(str::to_owned);
    }
    if modified.get("resultType").and_then(Value::as_str) == Some("failure") {
        outcome.status = CallStatusReport::Failure {
            code: "failure".to_owned(),
        };
    }
}
