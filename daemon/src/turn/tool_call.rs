//! Runs one tool call and turns its outcome into the form that the log stores.

use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::tool::{BinaryResult, ToolPartial, ToolProgress, ToolResult};
use loopd_proto::id::{EventId, SessionId};
use loopd_proto::permission::PermissionRequest;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::picture;
use crate::publish::{Audience, say};
use crate::redaction::{Pieces, Redaction};
use crate::services::Services;
use crate::tool::{DynTool, Need, Outcome, Partial, Status, ToolContext};
use loopd_kernel::autopilot::TASK_COMPLETE;
use loopd_kernel::command::{CallNeed, CallOutcome, CallStatusReport};
use loopd_kernel::model::ToolCall;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::texts;
use loopd_kernel::tool_call::Ahead;

pub struct CallInput {
    pub call: ToolCall,
    pub grant: Grant,
    pub context: ToolContext,
    pub partial: mpsc::Receiver<Partial>,
    pub session: SessionId,
    pub tip: Option<EventId>,
    pub audience: Audience,
    pub services: Arc<Services>,
    /// The secrets that partial output must not show.
    pub redaction: Redaction,
}

/// Translates what a tool needs, and what may be prepared for it, into the types of the kernel.
pub fn to_call_need(need: Need) -> (CallNeed, Ahead) {
    let need = match need {
        Need::PermissionForShell(request) => return (CallNeed::Permission(request), Ahead::Shell),
        Need::Nothing => CallNeed::Nothing,
        Need::Permission(request) => CallNeed::Permission(request),
        Need::Answer(question) => CallNeed::Answer(question),
        Need::Approval(plan) => CallNeed::Approval(plan),
        Need::Refused(outcome) => CallNeed::Refused(into_call_outcome(outcome, None)),
    };
    (need, Ahead::Nothing)
}

/// Runs a built-in tool and publishes its partial output while it runs.
pub async fn run(tool: &dyn DynTool, input: CallInput) -> CallOutcome {
    let CallInput {
        call,
        grant,
        context,
        mut partial,
        session,
        tip,
        audience,
        services,
        redaction,
    } = input;
    let path = match grant.request() {
        Some(PermissionRequest::Write { file_name, .. }) => Some(file_name.clone()),
        _ => None,
    };
    let id = call.id.clone();
    let work = async move {
        let outcome = tool.run(&grant, call.arguments, &context).await;
        // Dropping the context closes the channel of partial output, which ends the loop below.
        drop(context);
        outcome
    };
    let pass_on = async {
        let tell = |event: Ephemeral| {
            say(&services.clock, &audience, &session, tip.clone(), &event);
        };
        let show = |output: String| {
            if !output.is_empty() {
                tell(Ephemeral::ToolPartial(ToolPartial {
                    tool_call_id: id.clone(),
                    partial_output: output,
                }));
            }
        };
        let mut pieces = Pieces::new(redaction.clone());
        while let Some(partial) = partial.recv().await {
            match partial {
                Partial::Output(output) => show(pieces.next(&output)),
                Partial::Progress(text) => tell(Ephemeral::ToolProgress(ToolProgress {
                    tool_call_id: id.clone(),
                    progress_message: redaction.clean(&text).into_owned(),
                })),
            }
        }
        show(pieces.rest());
    };
    let (outcome, ()) = tokio::join!(work, pass_on);
    let mut outcome = into_call_outcome(outcome, path);
    picture::fit_results(&mut outcome.result).await;
    outcome
}

/// Turns the outcome of a tool, which changed the file at `changed`, into the form of the log.
pub fn into_call_outcome(outcome: Outcome, changed: Option<String>) -> CallOutcome {
    let telemetry = match (&changed, outcome.status) {
        (Some(path), Status::Success) => Some(change_telemetry(
            path,
            outcome.detail.as_deref().unwrap_or_default(),
        )),
        _ => outcome.facts,
    };
    let images = outcome.images.into_iter().map(|image| {
        let mut description = texts::image_at(&image.path);
        if let Some(note) = &image.note {
            description.push_str(&picture::in_brackets(note));
        }
        BinaryResult {
            kind: "image".to_owned(),
            data: image.base64,
            mime_type: image.media_type,
            description: Some(description),
        }
    });
    let binaries: Vec<BinaryResult> = images.chain(outcome.binaries).collect();
    let status = match outcome.status {
        Status::Success => CallStatusReport::Success,
        Status::Failure => CallStatusReport::Failure {
            code: "failure".to_owned(),
        },
        Status::ShellGone => CallStatusReport::Failure {
            code: texts::SHELL_GONE_CODE.to_owned(),
        },
        Status::Interrupted => CallStatusReport::Failure {
            code: texts::INTERRUPTED_CODE.to_owned(),
        },
    };
    CallOutcome {
        result: ToolResult {
            detailed_content: match outcome.status {
                Status::Success => outcome.detail,
                Status::Failure | Status::ShellGone | Status::Interrupted => None,
            },
            content: outcome.text,
            binary_results_for_llm: (!binaries.is_empty()).then_some(binaries),
            structured_content: outcome.structured,
        },
        status,
        telemetry,
        delivered: outcome.delivered,
        skill: outcome.skill,
        stops: None,
    }
}

/// Counts the added and removed lines of a diff, for the totals of the session.
fn change_telemetry(path: &str, diff: &str) -> Map<String, Value> {
    let body = |marker: char, header: &str| {
        diff.lines()
            .filter(|line| line.starts_with(marker) && !line.starts_with(header))
            .count()
    };
    let mut telemetry = Map::new();
    telemetry.insert("properties".to_owned(), json!({"filePath": path}));
    telemetry.insert(
        "metrics".to_owned(),
        json!({"linesAdded": body('+', "+++"), "linesRemoved": body('-', "---")}),
    );
    telemetry
}

/// Makes the outcome of a call to a tool that does not exist.
pub fn unknown_tool<'a>(name: &str, available: impl Iterator<Item = &'a str>) -> CallOutcome {
    if name == TASK_COMPLETE {
        return CallOutcome::failure("failure", texts::NO_TASK_TO_COMPLETE);
    }
    let list = available.collect::<Vec<_>>().join(", ");
    CallOutcome::failure(
        "failure",
        format!("Tool '{name}' does not exist. Available tools that can be called are {list}."),
    )
}
