//! Decisions and states as lines of text: the kinds of events with the members that matter.

use serde::Serialize;
use serde_json::{Value, json};

use super::given::Given;
use crate::command::{AbortOutcome, Answer, Decision, Effect, RememberScope, Step};
use crate::hook::HookVerdict;
use crate::state::{Phase, Stage, State, TurnKey};
use crate::tasks::TaskStatus;
use crate::texts;
use crate::tool_call::CallStage;

/// The members that matter, by kind. `path` shows the value, `path=label` shows it with a label.
/// For kinds that are not listed, every member is shown.
const MEMBERS: &[(&str, &str)] = &[
    (
        "session.start",
        "sessionId selectedModel=model reasoningEffort=effort context.cwd=cwd",
    ),
    (
        "session.resume",
        "eventCount=events selectedModel=model context.cwd=cwd sessionWasActive=active continuePendingWork=continue",
    ),
    (
        "session.shutdown",
        "shutdownType errorReason=error totalPremiumRequests=requests totalApiDurationMs=ms modelMetrics.gpt.requests.count=calls",
    ),
    (
        "session.error",
        "errorType errorCode=code originatingMessageId=of message",
    ),
    ("session.idle", "aborted=aborted mode"),
    (
        "user.message",
        "messageId transformedContent=text turnId=turn delivery",
    ),
    (
        "session.autopilot_stopped",
        "reason requestId=request message",
    ),
    ("session.task_complete", "outcome summary success reason"),
    ("loopd.nudged", "requestId"),
    ("system.message", "content"),
    (
        "system.notification",
        "kind.type kind.agentId kind.shellId kind.status",
    ),
    ("assistant.turn_start", "interactionId turnId"),
    (
        "assistant.message",
        "content toolRequests originatingMessageId=of turnId=turn",
    ),
    (
        "assistant.usage",
        "numToolCalls=calls finishReason interactionType",
    ),
    ("model.call_failure", "source errorType errorCode=code"),
    ("tool.execution_start", "toolCallId toolName turnId=turn"),
    (
        "tool.execution_complete",
        "toolCallId result.content error.code error.message isUserRequested=by_user turnId=turn",
    ),
    ("external_tool.requested", "requestId toolCallId toolName"),
    (
        "permission.requested",
        "requestId permissionRequest.kind permissionRequest.toolCallId permissionRequest.managedApprovalRequired=managed promptRequest.kind=prompt",
    ),
    (
        "permission.completed",
        "requestId toolCallId result.kind result.approval=approval result.feedback=feedback result.reason=reason",
    ),
    (
        "subagent.started",
        "toolCallId agentName parentId=parent executionMode",
    ),
    (
        "subagent.completed",
        "toolCallId agentName durationMs=ms cancelled=cancelled",
    ),
    (
        "subagent.failed",
        "toolCallId agentName durationMs=ms error",
    ),
    (
        "abort",
        "reason=reason abortedBy.id=by removedMessageIds=removed",
    ),
    ("loopd.queued", "item.id item.command item.delivery place"),
    (
        "skill.invoked",
        "name path allowedTools=tools trigger model",
    ),
    (
        "session.context_cleared",
        "messagesCleared initialMessage=seed",
    ),
    ("session.compaction_start", "trigger currentTokens=tokens"),
    (
        "session.compaction_complete",
        "success trigger error customInstructions=asked messagesRemoved=removed",
    ),
    ("loopd.compacting", "id through trigger"),
    ("loopd.compacted", "through"),
    ("loopd.usage", "nanoCredits=credits purpose=for"),
    ("loopd.task_started", "id work.kind"),
    ("loopd.task_answered", "id response"),
    ("loopd.task_continued", "id message"),
    ("loopd.task_ended", "id outcome exitCode=exit reason"),
    ("loopd.enlisted", "parent task"),
];

/// Texts that tables name instead of repeating.
const TEXTS: &[(&str, &str)] = &[
    ("INTERRUPTED", texts::INTERRUPTED),
    ("CONTINUE", texts::compaction::CONTINUE),
    ("OUTCOME_UNKNOWN", texts::OUTCOME_UNKNOWN),
    ("SHELL_LOST", texts::SHELL_LOST),
    // Sub-agents have the same text.
    ("CLOSED", texts::SHELL_CLOSED),
    ("AGENT_LOST", texts::AGENT_LOST),
    ("FORKED", texts::FORKED),
    ("LAST_TURN", texts::LAST_TURN),
    ("REJECTED_BY_USER", texts::REJECTED_BY_USER),
    ("COULD_NOT_ASK", texts::COULD_NOT_ASK),
    ("GO_ON", texts::GO_ON),
    ("NO_TASK_TO_COMPLETE", texts::NO_TASK_TO_COMPLETE),
    ("OTHER_CALL_FAILED", texts::OTHER_CALL_FAILED),
];

pub(super) fn decision(decision: &Decision) -> Vec<String> {
    let mut lines = match &decision.answer {
        Answer::Done => Vec::new(),
        Answer::Message(id) => vec![format!("answer {}", short(id.as_str()))],
        Answer::Accepted(true) => vec!["answer yes".to_owned()],
        Answer::Accepted(false) => vec!["answer no".to_owned()],
        Answer::Aborted(outcome) => vec![aborted(outcome)],
        Answer::Withdrawn {
            removed,
            interrupted,
        } => vec![format!(
            "answer removed={removed} interrupted={interrupted}"
        )],
        Answer::GuardsLifted(guards) => {
            let shown = |guards: &crate::guards::ClientGuards| {
                let shown = (!guards.is_empty()).then(|| guards.shown());
                shown.unwrap_or_else(|| "nobody".to_owned())
            };
            let (lifted, stay) = (shown(&guards.lifted), shown(&guards.stay));
            vec![format!("answer lifted {lifted}, stays {stay}")]
        }
        Answer::Cleared(entries) => vec![format!("answer cleared {entries}")],
        Answer::Permissions { changed, mode } => {
            let changed = if *changed { "changed" } else { "unchanged" };
            vec![format!("answer {changed} {mode:?}")]
        }
    };
    lines.extend(decision.steps.iter().map(|step| match step {
        Step::Store(event) => format!("store {}", shown_event(event)),
        Step::Tell(event) => format!("tell {}", shown_event(event)),
        Step::Do(effect) => format!("do {}", shown_effect(effect)),
    }));
    lines
}

fn aborted(outcome: &AbortOutcome) -> String {
    let mut line = if outcome.interrupted {
        "answer yes".to_owned()
    } else {
        "answer no".to_owned()
    };
    let removed: Vec<&str> = outcome
        .removed
        .iter()
        .map(loopd_proto::id::MessageId::as_str)
        .collect();
    if !removed.is_empty() {
        line.extend([" removed=[", &removed.join(" "), "]"]);
    }
    if let Some((message, by)) = &outcome.spared {
        let by = by.as_ref().map_or("nobody", |by| by.id.as_str());
        line.extend([" spared ", message.as_str(), " of ", by]);
    }
    line
}

/// The phase, and what waits or runs beside it.
pub(super) fn state(state: &State) -> String {
    let queue = state.queue.iter().map(|item| item.id().to_string());
    let steering = state.steering.iter().map(|message| message.id.to_string());
    // The other questions are shown with the calls that ask them.
    let forms = state.questions.forms();
    let forms = forms.map(|form| form.request_id.to_string());
    let open_parts = state.questions.parts();
    let open_parts = open_parts.map(|(request, _)| request.to_string());
    let tasks = state.tasks.iter().map(|task| {
        let status = match &task.status {
            TaskStatus::Running => "running",
            TaskStatus::Idle { .. } => "idle",
            TaskStatus::Ended(_) => "ended",
        };
        let news = if task.is_undelivered() { "!" } else { "" };
        format!("{}:{status}{news}", task.id)
    });
    let parts = [
        Some(format!("now {}", phase(&state.phase))),
        beside("queue", queue.collect()),
        beside("steering", steering.collect()),
        beside("forms", forms.collect()),
        beside("parts", open_parts.collect()),
        beside("tasks", tasks.collect()),
        state.closed.then(|| "closed".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Idle => "idle".to_owned(),
        Phase::Commanding(pending) => format!("running {}", pending.command),
        Phase::Rewinding(rewinding) => format!("rewinding {}", rewinding.started.rewind),
        Phase::Preparing(preparing) => {
            let ids = preparing.messages.iter().map(|message| message.id.as_str());
            let joins = preparing.joins.as_ref();
            let joins = joins.map(|key| format!(" into {}", turn(key)));
            format!("preparing {}{}", list(ids), joins.unwrap_or_default())
        }
        Phase::Turn(running) => {
            let doing = match &running.stage {
                Stage::Calling => "model called".to_owned(),
                Stage::Waiting { until } => format!("waits until {}", until.0),
                Stage::MakingRoom => "makes room".to_owned(),
                Stage::Tools(calls) => {
                    let calls = calls.iter();
                    list(calls.map(|it| format!("{}:{}", it.call.id, stage(&it.stage))))
                }
            };
            let aborting = if running.aborting { " aborting" } else { "" };
            format!("turn {} {doing}{aborting}", turn(&running.key))
        }
    }
}

/// A list of ids or, for a long one, their number. An empty list shows nothing.
fn beside(label: &str, ids: Vec<String>) -> Option<String> {
    match ids.len() {
        0 => None,
        1..10 => Some(format!("{label}={}", list(ids))),
        many => Some(format!("{label}={many}")),
    }
}

fn stage(stage: &CallStage) -> &'static str {
    match stage {
        CallStage::Requested => "requested",
        CallStage::Guarding { .. } => "guarding",
        CallStage::Intended => "started",
        CallStage::Asking { .. } => "asking",
        CallStage::Decided => "decided",
        CallStage::External { .. } => "at a client",
        CallStage::UserInput { .. } => "asking the user",
        CallStage::Recorded { .. } => "done",
    }
}

fn shown_effect(effect: &Effect) -> String {
    match effect {
        Effect::Prepare { messages } => {
            let ids = messages.iter().map(|message| message.id.as_str());
            format!("prepare {}", list(ids))
        }
        Effect::CallModel(key) => format!("call model {}", turn(key)),
        Effect::Assess {
            turn: key,
            call,
            hooks,
        } => {
            let hooks = match hooks {
                HookVerdict::None => "",
                HookVerdict::Allow => " hooks allow",
                HookVerdict::Ask(_) => " hooks ask",
                HookVerdict::Deny(_) => " hooks deny",
            };
            format!("assess {} {} {}{hooks}", turn(key), call.id, call.name)
        }
        Effect::Guard { turn: key, call } => format!("guard {} {}", turn(key), call.id),
        Effect::AskHooks(asked) => format!("ask hooks {} {}", turn(&asked.turn), asked.call),
        Effect::AskStop(key) => format!("ask stop {}", turn(key)),
        Effect::Run {
            turn: key,
            call,
            origin: _,
            grant,
        } => {
            let grant = grant.request().map(as_json);
            let kind = grant.as_ref().map(|grant| value(member(grant, "kind")));
            let grant = kind.map(|kind| format!(" granted {kind}"));
            format!("run {} {}{}", turn(key), call.id, grant.unwrap_or_default())
        }
        Effect::OpenShellAhead => "open shell ahead".to_owned(),
        Effect::RejoinAgent { task, waits } => {
            let call = waits.as_ref().map(|(_, call)| format!(" for {call}"));
            format!("rejoin {task}{}", call.unwrap_or_default())
        }
        Effect::AwaitProvider { turn: key, until } => {
            format!("await provider {} until {}", turn(key), until.0)
        }
        Effect::MakeTitle { name, message } => format!("make title {name:?} of {message:?}"),
        Effect::Summarise(id) => format!("summarise {}", short(id.as_str())),
        Effect::CancelSummary => "cancel summary".to_owned(),
        Effect::KeepOutputs { turn: key, results } => {
            format!(
                "keep outputs {} at {}",
                turn(key),
                list(results.iter().map(|at| at.0.to_string()))
            )
        }
        Effect::CancelTurn => "cancel turn".to_owned(),
        Effect::StartGrace(key) => format!("start grace {}", turn(key)),
        Effect::AskClients(asked) => format!("ask clients {}", short(asked.request_id().as_str())),
        Effect::Withdraw(request) => format!("withdraw {request}"),
        Effect::Resolve {
            request,
            action,
            content,
        } => format!(
            "resolve {request} {}{}",
            value(&as_json(action)),
            content
                .as_ref()
                .map_or_else(String::new, |it| format!(" {it}"))
        ),
        Effect::PartDecided { request, decided } => {
            let decided = match decided {
                Ok(_) => "granted".to_owned(),
                Err(why) => value(&json!(why)),
            };
            format!("part {request} {decided}")
        }
        Effect::Remember(approval, scope) => {
            let scope = match scope {
                RememberScope::Location(key) => format!("at {key}"),
                RememberScope::Always => "always".to_owned(),
            };
            format!("remember {scope} {}", as_json(approval))
        }
        Effect::GrantAbove(grant) => {
            let domain = grant.domain.as_deref().unwrap_or("-");
            format!("grant above {} {domain}", as_json(&grant.approval))
        }
        Effect::RestoreFiles(rewinding) => format!("restore files {}", rewinding.started.rewind),
        Effect::CancelAgents => "cancel agents".to_owned(),
        Effect::StartWorker(order) => format!("start worker {}", order.todo),
        Effect::ContinueWorker { todo, task, .. } => format!("continue worker {todo} {task}"),
        Effect::CancelWorkers(tasks) => {
            format!(
                "cancel workers {}",
                list(tasks.iter().map(loopd_proto::id::TaskId::as_str))
            )
        }
        Effect::RunCommand(command) => format!("run {}", command.command),
    }
}

/// An event, stored or only sent, as its kind and its members.
fn shown_event(event: &impl Serialize) -> String {
    let event = as_json(event);
    let kind = member(&event, "type").as_str().unwrap_or_default();
    let data = member(&event, "data");
    let mut line = kind.to_owned();
    if let Some((_, members)) = MEMBERS.iter().find(|(known, _)| *known == kind) {
        for wanted in members.split(' ') {
            let (path, label) = wanted.split_once('=').unwrap_or((wanted, ""));
            let found = path.split('.').fold(data, member);
            line.push_str(&shown_member(label, found));
        }
    } else {
        for (label, found) in data.as_object().into_iter().flatten() {
            line.push_str(&shown_member(label, found));
        }
    }
    line
}

fn member<'a>(data: &'a Value, name: &str) -> &'a Value {
    data.get(name).unwrap_or(&Value::Null)
}

fn shown_member(label: &str, member: &Value) -> String {
    match label {
        _ if member.is_null() => String::new(),
        "" => format!(" {}", value(member)),
        label => format!(" {label}={}", value(member)),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => match TEXTS.iter().find(|(_, known)| known == text) {
            Some((name, _)) => (*name).to_owned(),
            None if text.is_empty() || text.contains(' ') => format!("{:?}", beginning(text)),
            None => short(text),
        },
        Value::Array(items) if items.iter().all(Value::is_string) => {
            list(items.iter().map(self::value))
        }
        // Calls are shown by their ids, wherever they are listed.
        Value::Array(items) if items.iter().all(|it| member(it, "toolCallId").is_string()) => {
            list(items.iter().map(|it| self::value(member(it, "toolCallId"))))
        }
        Value::Array(_) | Value::Object(_) => said(value).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A long text is shown by its beginning.
fn beginning(text: &str) -> String {
    const MOST: usize = 72;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The data without members that are absent, false or empty.
fn said(data: &Value) -> Value {
    let says = |it: &Value| !matches!(it, Value::Null | Value::Bool(false)) && *it != json!([]);
    match data {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, it)| says(it));
            members.map(|(name, it)| (name.clone(), said(it))).collect()
        }
        Value::Array(items) => items.iter().map(said).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => data.clone(),
    }
}

/// Shows new ids as numbers.
fn short(id: &str) -> String {
    let made = id.strip_prefix("00000000-0000-0000-0000-");
    let made = made.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    made.map_or_else(|| id.to_owned(), |number| format!("#{number}"))
}

fn turn(key: &TurnKey) -> String {
    format!("{}/{}", short(key.interaction.as_str()), key.number)
}

fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|it| short(it.as_ref())).collect();
    format!("[{}]", items.join(" "))
}

#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
fn as_json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap()
}

/// The log that a table starts from.
pub(super) fn given(given: &Given) -> String {
    let lines = given
        .events
        .iter()
        .map(|event| format!("    {}", shown_event(event)));
    let attended = if given.attended { "somebody" } else { "nobody" };
    let attended = format!("    ({attended} is attached)");
    lines.chain([attended]).collect::<Vec<_>>().join("\n")
}

/// Both sides. A line that only one of them has is marked.
pub(super) fn difference(expected: &[&str], shown: &[String]) -> String {
    let mut lines = Vec::new();
    let mut rest = expected;
    for line in shown {
        match rest.iter().position(|it| it == line) {
            Some(at) => {
                let (missing, after) = rest.split_at(at);
                lines.extend(missing.iter().map(|it| format!("  - {it}")));
                lines.push(format!("    {line}"));
                rest = after.get(1..).unwrap_or_default();
            }
            None => lines.push(format!("  + {line}")),
        }
    }
    lines.extend(rest.iter().map(|it| format!("  - {it}")));
    lines.join("\n")
}
