//! Folding what happens in a turn: messages, what the model says, and what its calls come to.

use loopd_proto::attachment::Attachment;
use loopd_proto::event::session::CodeChanges;
use loopd_proto::event::tool::{ToolComplete, ToolStart};
use loopd_proto::event::turn::{AssistantMessage, UserMessage};
use loopd_proto::id::{RequestId, ToolCallId};

use crate::history::Entry;
use crate::model::{AssistantTurn, Part, Reasoning, ToolCall};
use crate::research;
use crate::state::{Phase, Stage, State};
use crate::texts;
use crate::tool_call::{CallEvent, CallState};

/// Returns the parts of a message as the model reads them: the text, then attached bytes.
pub(super) fn parts(message: &UserMessage) -> Vec<Part> {
    let text = message
        .transformed_content
        .as_ref()
        .unwrap_or(&message.content);
    let mut parts = vec![Part::Text(text.clone())];
    for attachment in message.attachments.iter().flatten() {
        let Attachment::Blob {
            data,
            mime_type,
            display_name,
        } = attachment
        else {
            continue;
        };
        if mime_type.starts_with("image/") {
            if let Some(name) = display_name {
                parts.push(Part::Text(name.clone()));
            }
            parts.push(Part::Image {
                media_type: mime_type.clone(),
                base64: data.clone(),
            });
        } else if mime_type == "application/pdf" {
            parts.push(Part::Document {
                title: display_name.clone(),
                media_type: mime_type.clone(),
                base64: data.clone(),
            });
        }
    }
    parts
}

pub(super) fn said(state: &mut State, message: &AssistantMessage) {
    // The warning that follows says if it is not complete.
    state.answer_cut = None;
    state.changed_shells.after_message();
    let reasoning = match (&message.reasoning_text, &message.reasoning_opaque) {
        (None, None) => None,
        (text, opaque) => Some(Reasoning {
            text: text.clone(),
            opaque: opaque.clone(),
        }),
    };
    let calls: Vec<ToolCall> = message
        .tool_requests
        .iter()
        .map(|request| ToolCall {
            id: request.tool_call_id.clone(),
            name: request.name.clone(),
            arguments: request.arguments.clone(),
        })
        .collect();
    if let Phase::Turn(turn) = &mut state.phase {
        turn.stage = Stage::Tools(calls.iter().cloned().map(CallState::requested).collect());
    }
    state.remember(Entry::Assistant(AssistantTurn {
        text: message.content.clone(),
        reasoning,
        calls,
    }));
}

pub(super) fn finished(state: &mut State, complete: &ToolComplete) {
    if state.user_calls.remove(&complete.tool_call_id) {
        return;
    }
    let code = complete.error.as_ref().and_then(|it| it.code.as_deref());
    let rejected = code == Some(texts::REJECTED_CODE);
    let mut shells = std::mem::take(&mut state.changed_shells);
    let cwd = state.cwd.clone();
    if let Some(call) = turn_call(state, &complete.tool_call_id) {
        let failed = !complete.success;
        call.advance(CallEvent::Recorded { rejected, failed });
        shells.after(&call.call, complete, &cwd);
        let wrote = !failed && research::writes(&call.call);
        if failed {
            let tool = call.call.name.clone();
            state.autopilot.failed(&tool);
        }
        if wrote && let Some(report) = state.research_report() {
            state.written_report = Some(report.to_owned());
        }
    }
    state.changed_shells = shells;
    state.totals.tool_calls += 1;
    count_changes(&mut state.totals.code_changes, complete);
    if !state.history.last_has_call(&complete.tool_call_id) {
        // The conversation was cleared meanwhile, or the log never had the call.
        return;
    }
    let text = complete
        .result
        .as_ref()
        .map(|result| &result.content)
        .or(complete.error.as_ref().map(|error| &error.message))
        .cloned()
        .unwrap_or_default();
    state.remember(Entry::Result {
        call: complete.tool_call_id.clone(),
        text,
        interrupted: code == Some(texts::INTERRUPTED_CODE),
        pruned: false,
    });
    let binaries = complete
        .result
        .iter()
        .filter_map(|result| result.binary_results_for_llm.as_ref());
    for binary in binaries.flatten().filter(|binary| binary.kind == "image") {
        state.remember(Entry::Image {
            label: binary.description.clone(),
            part: Part::Image {
                media_type: binary.mime_type.clone(),
                base64: binary.data.clone(),
            },
        });
    }
}

/// Takes over the arguments that run. They may differ from the model's, and the history continues
/// with them.
pub(super) fn intended(state: &mut State, start: &ToolStart) {
    let (Some(arguments), Some(call)) = (
        &start.arguments,
        turn_call(state, &start.tool_call_id).map(|it| &mut it.call),
    ) else {
        return;
    };
    if call.arguments == *arguments {
        return;
    }
    call.arguments.clone_from(arguments);
    state.history.change_last_assistant(|said| {
        let mut calls = said.calls.iter_mut();
        let said = calls.find(|said| said.id == start.tool_call_id);
        said.is_some_and(|said| {
            said.arguments.clone_from(arguments);
            true
        })
    });
}

/// Moves the call on that waited for its guards with this question.
pub(super) fn guard_answered(state: &mut State, request: &RequestId) {
    let waits = |call: &&CallState| call.stage.is_guarding() && call.waits_for(request);
    let call = state.calls().find(waits);
    let call = call.map(|call| call.call.id.clone());
    if let Some(call) = call
        && let Some(call) = turn_call(state, &call)
    {
        call.advance(CallEvent::GuardAnswered);
    }
}

/// Returns a call of the running turn.
pub(super) fn turn_call<'a>(state: &'a mut State, id: &ToolCallId) -> Option<&'a mut CallState> {
    let Phase::Turn(turn) = &mut state.phase else {
        return None;
    };
    let Stage::Tools(calls) = &mut turn.stage else {
        return None;
    };
    calls.iter_mut().find(|call| call.call.id == *id)
}

/// Adds up the changed lines that file tools report.
pub(super) fn count_changes(changes: &mut CodeChanges, complete: &ToolComplete) {
    let Some(telemetry) = &complete.tool_telemetry else {
        return;
    };
    let metric = |name: &str| {
        telemetry
            .get("metrics")
            .and_then(|metrics| metrics.get(name))
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0)
    };
    changes.lines_added += metric("linesAdded");
    changes.lines_removed += metric("linesRemoved");
    let path = telemetry
        .get("properties")
        .and_then(|properties| properties.get("filePath"))
        .and_then(serde_json::Value::as_str);
    if let Some(path) = path
        && !changes.files_modified.iter().any(|known| known == path)
    {
        changes.files_modified.push(path.to_owned());
    }
}
