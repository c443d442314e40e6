//! Hooks that read and may change the result of a tool call.

use std::time::Duration;

use loopd_proto::event::hook::HookEnd;
use loopd_proto::visible::visible;
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::cut;
use super::context::HookContext;
use super::handler_name::HandlerName;
use super::input::HookInput;
use super::output::HookOutput;
use super::vocabulary::{OddMember, REDACTING};
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

/// What the model reads instead of a result that the hooks have not let through when the turn was stopped.
const NOT_REVIEWED: &str = "The output of this call is kept back, because the turn was stopped before \
                            the hooks that see it had answered.";

/// How long hooks may take to see what a call had printed when its turn was stopped. The grace time
/// that an abort gives to such a call (`REVIEW_GRACE`) is longer.
const CUT_REVIEW: Duration = Duration::from_millis(1_500);

/// What the model reads beside a result that a hook blocks without a reason.
const OBJECTS: &str = "A hook objects to this result and gives no reason.";

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
        // What a call had printed when its turn was stopped is output as any other.
        CallStatusReport::Failure { .. } if was_cut(outcome) => Some(HookKind::PostToolUse),
        // Calls that were denied or rejected did not fail.
        CallStatusReport::Failure { .. } => None,
    }
}

/// Whether a call was stopped with its turn and leaves what it had printed until then.
fn was_cut(outcome: &CallOutcome) -> bool {
    let is_cut = matches!(
        &outcome.status,
        CallStatusReport::Failure { code } if code == texts::INTERRUPTED_CODE
    );
    is_cut && !outcome.result.content.trim().is_empty()
}

impl HookContext {
    /// Shows the result of a call to the hooks.
    pub async fn review(&self, call: &ToolCall, outcome: CallOutcome) -> ReviewEnd {
        let mut end = ReviewEnd {
            outcome,
            context: Vec::new(),
            ended: Vec::new(),
        };
        if was_cut(&end.outcome) {
            self.review_cut(call, &mut end).await;
        } else if review_kind(&end.outcome) == Some(HookKind::PostToolUse) {
            self.review_success(call, &mut end).await;
        }
        // A hook may have turned a success into a failure.
        if review_kind(&end.outcome) == Some(HookKind::PostToolUseFailure) {
            self.review_failure(call, &mut end).await;
        }
        end
    }

    /// Shows the hooks what a call had printed when its turn was stopped. The hooks do not end with that
    /// turn, but they have little time.
    async fn review_cut(&self, call: &ToolCall, end: &mut ReviewEnd) {
        let context = Self {
            cancel: CancellationToken::new(),
            ..self.clone()
        };
        let reviewed = timeout(CUT_REVIEW, context.review_success(call, end)).await;
        if reviewed.is_err() {
            keep_back(&mut end.outcome, NOT_REVIEWED);
        }
    }

    async fn review_success(&self, call: &ToolCall, end: &mut ReviewEnd) {
        let result = &end.outcome.result;
        let input =
            HookInput::post_tool_use(call, &result.content, result.detailed_content.as_deref());
        let mut added = Vec::new();
        for outcome in self.dispatch(&input).await {
            let review = match &outcome.result {
                Ok(output) => Review::read(output),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let has_effect = match review {
                Ok(review) => {
                    let has_effect = review.has_effect();
                    match review.change {
                        Change::Nothing => {}
                        Change::Modified(modified) => modified.apply(&mut end.outcome),
                        Change::KeptBack(why) => keep_back(&mut end.outcome, why),
                    }
                    if let Some(reason) = review.stops {
                        self.stop(input.kind, &outcome.source, &reason, &mut end.outcome);
                    }
                    added.extend(review.told);
                    has_effect
                }
                Err(cause) => {
                    self.warn_of(input.kind, &outcome.source, &cause);
                    let wants_change = outcome.result.as_ref().is_ok_and(wants_change);
                    if wants_change {
                        keep_back(&mut end.outcome, UNUSABLE);
                    } else if self.cancel.is_cancelled() {
                        // The hook was stopped with the turn, before it could take anything out.
                        keep_back(&mut end.outcome, NOT_REVIEWED);
                    }
                    wants_change || self.cancel.is_cancelled()
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

    /// Notes that a hook stops the agent; the first one counts.
    fn stop(&self, kind: HookKind, source: &HandlerName, reason: &str, outcome: &mut CallOutcome) {
        let told = format!("The {}: {reason}", source.with_kind(kind));
        let told = self.redaction.clean(&told).into_owned();
        outcome.stops.get_or_insert(told);
    }

    async fn review_failure(&self, call: &ToolCall, end: &mut ReviewEnd) {
        let input = HookInput::post_tool_use_failure(call, &end.outcome.result.content);
        let mut added = Vec::new();
        for outcome in self.dispatch(&input).await {
            let told = match &outcome.result {
                Ok(output) => {
                    if output.stops() {
                        let reason = stop_reason(output);
                        let hook = outcome.source.with_kind(input.kind);
                        end.outcome
                            .stops
                            .get_or_insert(format!("The {hook}: {reason}"));
                    }
                    output.context().or_else(|| output.refused.clone())
                }
                Err(failure) => {
                    self.warn_of(input.kind, &outcome.source, failure.cause());
                    None
                }
            };
            let told = told.filter(|told| !told.is_empty());
            let changed = told.is_some() || end.outcome.stops.is_some();
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

/// What one hook says about a result.
struct Review {
    change: Change,
    /// What the model reads beside the result.
    told: Vec<String>,
    /// Why the agent stops here.
    stops: Option<String>,
}

enum Change {
    Nothing,
    Modified(Modified),
    /// The model reads this instead.
    KeptBack(&'static str),
}

impl Review {
    fn has_effect(&self) -> bool {
        !matches!(self.change, Change::Nothing) || !self.told.is_empty() || self.stops.is_some()
    }

    fn read(output: &HookOutput) -> Result<Self, String> {
        let modified = Modified::read(output)?;
        let change = match modified {
            Some(modified) => Change::Modified(modified),
            None if output.is_set("suppressOutput") => Change::KeptBack(SUPPRESSED),
            None => Change::Nothing,
        };
        // What a hook may want to take out is in what it does not change, too.
        let change = match change {
            Change::Nothing | Change::Modified(_)
                if output.odd.iter().any(OddMember::seems_to_redact) =>
            {
                Change::KeptBack(UNUSABLE)
            }
            change => change,
        };
        let block = output.block()?.map(|reason| match reason.trim() {
            "" => OBJECTS.to_owned(),
            reason => reason.to_owned(),
        });
        let stops = output.stops().then(|| stop_reason(output));
        Ok(Self {
            change,
            told: block.into_iter().chain(output.context()).collect(),
            stops,
        })
    }
}

/// Says what an answer would do to a result.
pub(super) fn review_effect(output: &HookOutput) -> Result<Option<String>, String> {
    let review = Review::read(output)?;
    let mut effects = Vec::new();
    match review.change {
        Change::Nothing => {}
        Change::Modified(_) => effects.push("changes the output".to_owned()),
        Change::KeptBack(_) => effects.push("keeps the output back".to_owned()),
    }
    if !review.told.is_empty() {
        effects.push(format!("tells the model: {}", review.told.join(" ")));
    }
    effects.extend(review.stops.map(|why| format!("ends the run: {why}")));
    Ok((!effects.is_empty()).then(|| effects.join("; ")))
}

/// Returns why a hook stops the agent.
fn stop_reason(output: &HookOutput) -> String {
    let reason = output.member("stopReason").and_then(Value::as_str);
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    cut(&visible(reason.unwrap_or("it gives no reason")))
}

/// Whether a hook wants the result to be another one, whatever else is wrong with its answer.
fn wants_change(output: &HookOutput) -> bool {
    REDACTING.iter().any(|name| output.member(name).is_some())
        || output.odd.iter().any(OddMember::seems_to_redact)
}

fn keep_back(outcome: &mut CallOutcome, instead: &str) {
    instead.clone_into(&mut outcome.result.content);
    outcome.result.binary_results_for_llm = None;
    outcome.result.structured_content = None;
    outcome.result.detailed_content = None;
}

/// The result that a hook wants.
#[derive(Debug, PartialEq)]
struct Modified {
    /// What the model reads.
    text: Option<String>,
    /// What people are shown.
    log: Option<String>,
    fails: bool,
}

impl Modified {
    /// Reads what a hook wants. It has to say something that is understood, and the same everywhere.
    fn read(output: &HookOutput) -> Result<Option<Self>, String> {
        let modified = output.object_of("modifiedResult")?;
        let mut wanted = modified.map(Self::of_result).transpose()?;
        for name in ["updatedToolOutput", "updatedMCPToolOutput"] {
            for value in output.all(name) {
                let own = Self {
                    text: Some(text_of(value)),
                    log: None,
                    fails: false,
                };
                if wanted
                    .as_ref()
                    .is_some_and(|wanted| wanted.text != own.text)
                {
                    return Err("it changes the result in two ways".to_owned());
                }
                wanted.get_or_insert(own);
            }
        }
        Ok(wanted)
    }

    fn of_result(modified: &Map<String, Value>) -> Result<Self, String> {
        const MEMBERS: [&str; 7] = [
            "textResultForLlm",
            "resultType",
            "sessionLog",
            "error",
            "toolTelemetry",
            "toolReferences",
            "binaryResultsForLlm",
        ];
        let member = |name: &str| {
            let value = modified.get(name).filter(|value| !value.is_null());
            let text = value.map(|value| match value {
                Value::String(text) => Ok(text.clone()),
                other => Err(format!(
                    "`{name}` of its `modifiedResult` is not a text but {other}"
                )),
            });
            text.transpose()
        };
        let text = member("textResultForLlm")?;
        let log = member("sessionLog")?;
        let kind = member("resultType")?;
        let unknown = modified
            .iter()
            .find(|(name, value)| !value.is_null() && !MEMBERS.contains(&name.as_str()));
        match (&text, &kind, unknown) {
            (None, None, _) => {
                return Err("its `modifiedResult` has no `textResultForLlm`".to_owned());
            }
            (None, Some(_), Some((name, _))) => {
                return Err(format!(
                    "its `modifiedResult` has `{}`, which is not known, and no `textResultForLlm`",
                    visible(name)
                ));
            }
            (None, Some(_), None) | (Some(_), _, _) => {}
        }
        let fails = match kind.as_deref() {
            None | Some("success") => false,
            Some("failure" | "rejected" | "denied" | "timeout") => true,
            Some(other) => {
                return Err(format!(
                    "`resultType` of its `modifiedResult` is `{}`; it can be `success` or `failure`",
                    visible(other)
                ));
            }
        };
        Ok(Self { text, log, fails })
    }

    fn apply(self, outcome: &mut CallOutcome) {
        if let Some(text) = self.text {
            outcome.result.content = text;
            outcome.result.binary_results_for_llm = None;
            outcome.result.structured_content = None;
            outcome.result.detailed_content = self.log;
        }
        if self.fails {
            outcome.status = CallStatusReport::Failure {
                code: "failure".to_owned(),
            };
        }
    }
}

/// Returns blocks as one text, if all of them are texts.
fn texts_of(blocks: &[Value]) -> Option<String> {
    let texts = blocks.iter().map(|block| {
        let text = block.get("text").and_then(Value::as_str);
        text.or(block.as_str())
    });
    let texts: Option<Vec<&str>> = texts.collect();
    Some(texts?.join("\n"))
}

/// Returns an output of Claude's tools as text: a text, blocks of text, what a command printed, or else
/// the JSON.
fn text_of(output: &Value) -> String {
    let known = match output {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => texts_of(blocks),
        Value::Object(members) => match (members.get("content"), members.get("stdout")) {
            (Some(Value::String(text)), _) => Some(text.clone()),
            (Some(Value::Array(blocks)), _) => texts_of(blocks),
            (_, Some(Value::String(printed))) => {
                let errors = members.get("stderr").and_then(Value::as_str);
                let parts = [Some(printed.as_str()), errors].into_iter().flatten();
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                Some(parts.join("\n"))
            }
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    };
    known.unwrap_or_else(|| output.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_of_claudes_tools_is_a_text() {
        let table = [
            (json!("x"), "x"),
            (
                json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
                "a\nb",
            ),
            (json!({"content": [{"type": "text", "text": "a"}]}), "a"),
            (
                json!({"stdout": "out", "stderr": "err", "interrupted": false}),
                "out\nerr",
            ),
            (json!({"stdout": "out", "stderr": ""}), "out"),
            (
                json!([{"type": "image", "data": "x"}]),
                r#"[{"type":"image","data":"x"}]"#,
            ),
            (json!({"left": 1}), r#"{"left":1}"#),
            (json!(7), "7"),
        ];
        for (output, text) in table {
            assert_eq!(text_of(&output), text, "{output}");
        }
    }
}
