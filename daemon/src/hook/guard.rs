//! Guards: hooks that decide about a tool call before it starts, and hooks that answer a permission
//! question first.

use loopd_proto::event::hook::HookEnd;
use loopd_proto::visible::visible;
use serde_json::{Map, Value};

use super::answer::{self, cut};
use super::context::{HookContext, HookOutcome};
use super::handler_name::{HandlerId, HandlerName};
use super::input::HookInput;
use super::output::{HookFailure, HookOutput};
use crate::discovery::hooks::HookKind;
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::hook::{HookDenial, HookVerdict};

/// Why a person is asked about what is typed on a line that is not known.
const UNKNOWN_LINE: &str = "Hooks guard commands here, and the line that this becomes is not known: keys edit or recall \
     it, or another call types into the same shell. {ctrl-c} alone drops the line; one whole line that ends in \
     {enter} can be checked.";

/// What all guards together said about a call.
#[derive(Debug, Default)]
pub struct GuardEnd {
    pub verdict: HookVerdict,
    /// The arguments that run, if a hook changed them.
    pub arguments: Option<Value>,
    /// Who changed them.
    changed_by: Option<HandlerId>,
    /// What the model is told after the results.
    pub context: Vec<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// Clients have to decide that are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardIsAbsent {
    pub missing: ClientGuards,
}

/// What one guard said.
#[derive(Debug, Default)]
pub(super) struct GuardAnswer {
    pub(super) verdict: HookVerdict,
    arguments: Option<Value>,
    context: Option<String>,
}

impl HookContext {
    /// Asks the guards about a call. If one changes the arguments, the others are asked about the
    /// changed ones, so that no call runs that a guard has not seen as it runs.
    pub async fn guard(&self, input: &HookInput) -> Result<GuardEnd, GuardIsAbsent> {
        let mut end = self.guard_once(None, input).await?;
        end.verdict = end.verdict.meet(self.about_unknown_line(input));
        let denied = matches!(end.verdict, HookVerdict::Deny(_));
        let Some(arguments) = end.arguments.clone().filter(|_| !denied) else {
            return Ok(end);
        };
        if Some(&arguments) == input.arguments() {
            end.arguments = None;
            return Ok(end);
        }
        let changed = input.with_arguments(&arguments);
        end.verdict = end.verdict.meet(self.about_unknown_line(&changed));
        let again = self.guard_once(end.changed_by, &changed).await?;
        end.verdict = end.verdict.meet(again.verdict);
        end.context.extend(again.context);
        end.ended.extend(again.ended);
        if again.arguments.is_some_and(|other| other != arguments) {
            end.verdict = end.verdict.meet(HookVerdict::Deny(HookDenial {
                reason: denied_text(input.kind, "hooks do not agree on the arguments of the call"),
                told: denied_text(
                    input.kind,
                    "a hook changed the arguments, and hooks changed the changed ones again; let only \
                     one hook change them",
                ),
                stops: false,
            }));
        }
        Ok(end)
    }

    /// Has a person asked about what is typed into a shell if the guards of files cannot be told the line
    /// that it becomes.
    fn about_unknown_line(&self, input: &HookInput) -> HookVerdict {
        if input.types_unknown_line() && self.has_files_for(input) {
            return HookVerdict::Ask(Some(UNKNOWN_LINE.to_owned()));
        }
        HookVerdict::None
    }

    /// Asks all guards but one once. What one of them denies is denied, whoever is missing; anything else has to
    /// wait for those.
    async fn guard_once(
        &self,
        except: Option<HandlerId>,
        input: &HookInput,
    ) -> Result<GuardEnd, GuardIsAbsent> {
        let outcomes = self.dispatch_except(except, input).await;
        let mut missing = ClientGuards::default();
        if !self.cancel.is_cancelled() {
            for absent in outcomes.iter().filter_map(HookOutcome::absent) {
                missing = missing.and(absent);
            }
        }
        let mut answers = Vec::new();
        for outcome in outcomes {
            if !missing.is_empty() && outcome.absent().is_some() {
                self.close(outcome, false);
                continue;
            }
            let read = match &outcome.result {
                Ok(output) => read_guard(input.kind, output)
                    .and_then(|answer| self.with_known_arguments(answer, input))
                    .map_err(HookFailure::Failed),
                Err(failure) => Err(failure.clone()),
            };
            let answer = match read {
                Ok(answer) => {
                    self.tell_odd(input.kind, &outcome);
                    answer.if_it_may_allow(&outcome.source)
                }
                Err(failure) => self.failed(input.kind, &outcome.source, failure.cause()),
            };
            let answer = named(answer, input.kind, &outcome.source);
            answers.push((outcome, answer));
        }
        let denies = |answer: &GuardAnswer| matches!(answer.verdict, HookVerdict::Deny(_));
        if !missing.is_empty() && !answers.iter().any(|(_, answer)| denies(answer)) {
            for (outcome, _) in answers {
                self.close(outcome, false);
            }
            return Err(GuardIsAbsent { missing });
        }
        Ok(self.meet(answers))
    }

    /// Refuses changed arguments that would change nothing.
    fn with_known_arguments(
        &self,
        answer: GuardAnswer,
        input: &HookInput,
    ) -> Result<GuardAnswer, String> {
        let changed = answer.arguments.as_ref();
        match changed.and_then(|changed| input.not_read(changed, self)) {
            Some(cause) => Err(cause),
            None => Ok(answer),
        }
    }

    /// Combines what guards said.
    fn meet(&self, answers: Vec<(HookOutcome, GuardAnswer)>) -> GuardEnd {
        let mut end = GuardEnd::default();
        let mut changed_by = None;
        for (outcome, answer) in answers {
            let changed = answer.arguments.is_some()
                || answer.context.is_some()
                || matches!(answer.verdict, HookVerdict::Deny(_) | HookVerdict::Ask(_));
            end.verdict = end.verdict.meet(answer.verdict);
            // The first hook that changes the arguments counts: those of whoever owns the machine
            // come first.
            match (&end.arguments, &changed_by) {
                (Some(first), Some(by)) => {
                    let differs = |other: &Value| other != first;
                    if answer.arguments.as_ref().is_some_and(differs) {
                        self.warn_of_two_changes(by, &outcome.source);
                    }
                }
                _ if answer.arguments.is_some() => {
                    end.arguments = answer.arguments;
                    end.changed_by = outcome.handler;
                    changed_by = Some(outcome.source.clone());
                }
                _ => {}
            }
            end.context.extend(answer.context);
            end.ended.extend(self.close(outcome, changed));
        }
        end
    }

    fn warn_of_two_changes(&self, first: &HandlerName, second: &HandlerName) {
        let message = format!(
            "Two hooks change the arguments of a call differently: what {} wrote counts, what {} wrote \
             does not. Let only one hook change them.",
            first.shown(),
            second.shown()
        );
        self.warn("hook_message", message);
    }

    /// A guard that fails denies, unless its file says otherwise.
    fn failed(&self, kind: HookKind, source: &HandlerName, cause: &str) -> GuardAnswer {
        if source.goes_on() {
            self.warn_of(kind, source, cause);
            return GuardAnswer::default();
        }
        if let HandlerName::OwnChanged { .. } = source {
            // The person whose guard it was decides in its place.
            let why = format!("{cause}. {}.", source.way_out());
            return GuardAnswer {
                verdict: HookVerdict::Ask(Some(why)),
                ..GuardAnswer::default()
            };
        }
        GuardAnswer {
            verdict: HookVerdict::Deny(HookDenial {
                reason: denied_text(kind, &format!("the hook failed, because {cause}")),
                told: denied_text(
                    kind,
                    &format!(
                        "{} failed, because {cause}. {}.",
                        source.shown(),
                        source.way_out()
                    ),
                ),
                stops: false,
            }),
            ..GuardAnswer::default()
        }
    }
}

fn denied_text(kind: HookKind, why: &str) -> String {
    format!("Denied by {kind} hook: {why}")
}

impl GuardAnswer {
    /// Leaves out an allow of a hook that nobody has accepted: an agent may have written it.
    fn if_it_may_allow(mut self, source: &HandlerName) -> Self {
        if matches!(source, HandlerName::OwnNew { .. }) && self.verdict == HookVerdict::Allow {
            self.verdict = HookVerdict::None;
        }
        self
    }
}

/// Adds to a denial which hook it is from.
fn named(mut answer: GuardAnswer, kind: HookKind, source: &HandlerName) -> GuardAnswer {
    if let HookVerdict::Deny(denial) = &mut answer.verdict
        && denial.told.is_empty()
    {
        denial.told = format!(
            "Denied by {kind} hook {}: {}",
            source.shown(),
            denial.reason
        );
        denial.reason = denied_text(kind, &denial.reason);
    }
    if let HookVerdict::Ask(why) = &mut answer.verdict {
        let given = why.as_deref().map(str::trim).filter(|why| !why.is_empty());
        let given = given.map_or("it gives no reason".to_owned(), |why| cut(&visible(why)));
        *why = Some(format!("The {} asks: {given}", source.with_kind(kind)));
    }
    answer
}

fn deny(reason: Option<&str>) -> HookVerdict {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    HookVerdict::Deny(HookDenial {
        // The model and people read it; neither must be flooded or deceived.
        reason: cut(&visible(reason.unwrap_or("No reason provided"))),
        told: String::new(),
        stops: false,
    })
}

pub(super) fn read_guard(kind: HookKind, output: &HookOutput) -> Result<GuardAnswer, String> {
    if let Some(specific) = output.members.get("hookSpecificOutput")
        && !specific.is_null()
        && !specific.is_object()
    {
        return Err(format!(
            "its member `hookSpecificOutput` is not an object but {specific}"
        ));
    }
    says_something(kind, output)?;
    let mut answer = match kind {
        HookKind::PermissionRequest => read_permission(output)?,
        _ => read_tool_use(output)?,
    };
    if output.stops() {
        let stop = deny(output.text_of("stopReason")?);
        answer.verdict = answer.verdict.meet(stop);
    }
    if let HookVerdict::Deny(denial) = &mut answer.verdict {
        let mut decisions = output.all("decision");
        let interrupts = decisions.any(|it| it.get("interrupt") == Some(&Value::Bool(true)));
        denial.stops = output.stops() || output.is_set("interrupt") || interrupts;
    }
    if let Some(reason) = &output.refused {
        let written = output.text_of("permissionDecisionReason")?;
        let written = written.or(output.text_of("message")?);
        let refused = deny(
            Some(reason)
                .filter(|it| !it.is_empty())
                .map(String::as_str)
                .or(written),
        );
        answer.verdict = match answer.verdict {
            // The exit code says the same as the answer.
            HookVerdict::Deny(_) if written.is_some() => answer.verdict,
            verdict => verdict.meet(refused),
        };
    }
    Ok(answer)
}

/// The members that answers of guards may have.
const KNOWN: &[&str] = &[
    "permissionDecision",
    "permissionDecisionReason",
    "decision",
    "reason",
    "modifiedArgs",
    "updatedInput",
    "updatedPermissions",
    "additionalContext",
    "hookSpecificOutput",
    "hookEventName",
    "continue",
    "stopReason",
    "interrupt",
    "suppressOutput",
    "systemMessage",
    "message",
];

/// Words that whoever writes a decision may use in the place of the known members.
const LIKE_DECISIONS: &[&str] = &[
    "permissiondecision",
    "decision",
    "permission",
    "behavior",
    "behaviour",
    "block",
    "blocked",
    "deny",
    "denied",
    "allow",
    "allowed",
    "approve",
    "approved",
    "verdict",
    "ok",
    "continue",
];

/// Refuses an answer that says nothing a guard can say, or seems to decide in other words: a guard that
/// means no must not be taken for one that has no objection.
fn says_something(kind: HookKind, output: &HookOutput) -> Result<(), String> {
    let is_known = |name: &str| {
        KNOWN.contains(&name) || (kind == HookKind::PermissionRequest && name == "behavior")
    };
    let names = || output.levels().flat_map(|level| level.keys());
    for name in names().filter(|name| !is_known(name)) {
        let plain: String = name
            .chars()
            .filter(|letter| letter.is_alphanumeric())
            .collect();
        if LIKE_DECISIONS.contains(&plain.to_lowercase().as_str()) {
            return Err(unknown_member(name));
        }
    }
    if let Some(name) = names()
        .next()
        .filter(|_| !names().any(|name| is_known(name)))
    {
        return Err(unknown_member(name));
    }
    if let Some(odd) = output.odd.iter().find(|odd| odd.seems_to_decide()) {
        return Err(odd.told());
    }
    if let Some(other) = output.all("continue").find(|it| !it.is_boolean()) {
        return Err(format!(
            "its member `continue` is not true or false but {other}"
        ));
    }
    let decides = ["permissionDecision", "decision", "behavior"];
    let decides = decides.iter().any(|name| output.member(name).is_some());
    let gives_reason = output.member("permissionDecisionReason").is_some();
    if gives_reason && !decides && output.refused.is_none() {
        return Err("it gives a `permissionDecisionReason` and no `permissionDecision`".to_owned());
    }
    Ok(())
}

fn unknown_member(name: &str) -> String {
    format!(
        "its answer has the member `{}`, which says nothing to loopd; a decision is \
         `permissionDecision` with `allow`, `ask` or `deny`",
        cut(&visible(name))
    )
}

fn read_tool_use(output: &HookOutput) -> Result<GuardAnswer, String> {
    let mut verdict = read_permission_decision(output)?;
    for decision in output.texts_of("decision")? {
        verdict = verdict.meet(read_decision(output, decision)?);
    }
    Ok(GuardAnswer {
        verdict,
        arguments: changed_arguments(output)?,
        context: output.context(),
    })
}

/// Returns why, as the hook says it.
fn reason(output: &HookOutput) -> Result<Option<&str>, String> {
    let reason = output.text_of("permissionDecisionReason")?;
    Ok(reason.or(output.text_of("reason")?))
}

/// Reads `permissionDecision`. If it is there twice, the stricter one counts.
fn read_permission_decision(output: &HookOutput) -> Result<HookVerdict, String> {
    let reason = reason(output)?;
    let mut verdict = HookVerdict::None;
    for decision in output.texts_of("permissionDecision")? {
        verdict = verdict.meet(match decision {
            "defer" => HookVerdict::None,
            "allow" => HookVerdict::Allow,
            "ask" => HookVerdict::Ask(reason.map(str::to_owned)),
            "deny" => deny(reason),
            other => {
                return Err(format!(
                    "its `permissionDecision` is `{other}`; it can be `allow`, `ask` or `deny`"
                ));
            }
        });
    }
    Ok(verdict)
}

/// Reads the older `decision`.
fn read_decision(output: &HookOutput, decision: &str) -> Result<HookVerdict, String> {
    match decision {
        "approve" | "allow" => Ok(HookVerdict::Allow),
        "block" | "deny" => Ok(deny(reason(output)?)),
        other => Err(format!(
            "its `decision` is `{other}`; it can be `approve` or `block`"
        )),
    }
}

/// Returns the arguments that the hook wants. It has to want the same everywhere.
fn changed_arguments(output: &HookOutput) -> Result<Option<Value>, String> {
    let mut changed: Option<&Value> = None;
    for name in ["modifiedArgs", "updatedInput"] {
        for value in output.all(name) {
            if !value.is_object() {
                return Err(format!("its member `{name}` is not an object but {value}"));
            }
            if changed.is_some_and(|other| other != value) {
                return Err("it changes the arguments in two ways".to_owned());
            }
            changed = Some(value);
        }
    }
    Ok(changed.cloned())
}

fn read_permission(output: &HookOutput) -> Result<GuardAnswer, String> {
    let mut verdict = read_permission_decision(output)?;
    let mut places: Vec<&Map<String, Value>> = output.levels().collect();
    for decision in output.all("decision") {
        match decision {
            // Claude's format has the decision as an object.
            Value::Object(members) => places.push(members),
            other => {
                let decision = answer::text("decision", other)?;
                verdict = verdict.meet(read_decision(output, decision)?);
            }
        }
    }
    for place in places {
        let member = |name: &str| place.get(name).filter(|value| !value.is_null());
        let text = |name: &str| {
            let value = member(name).map(|value| answer::text(name, value));
            value.transpose()
        };
        let message = text("message")?.or(output.text_of("reason")?);
        verdict = verdict.meet(match text("behavior")? {
            None => HookVerdict::None,
            Some("allow") => HookVerdict::Allow,
            Some("deny") => deny(message),
            Some("ask") => HookVerdict::Ask(message.map(str::to_owned)),
            Some(other) => {
                return Err(format!(
                    "its `behavior` is `{other}`; it can be `allow` or `deny`"
                ));
            }
        });
        if member("updatedInput").or(member("modifiedArgs")).is_some() {
            return Err(
                "it changes the arguments in a permission question; only a preToolUse hook may do \
                 that"
                    .to_owned(),
            );
        }
    }
    Ok(GuardAnswer {
        verdict,
        arguments: None,
        context: None,
    })
}

#[cfg(test)]
mod tests;
