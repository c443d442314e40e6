//! Events as logs hold them.

use loopd_proto::event::Durable;
use serde_json::{Value, json};

/// An event as a log holds it.
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
pub(crate) fn event(kind: &str, data: Value) -> Durable {
    serde_json::from_value(json!({ "type": kind, "data": data })).unwrap()
}

pub(crate) fn queued(id: &str) -> Durable {
    queued_at("last", id)
}

pub(crate) fn steering(id: &str) -> Durable {
    queued_at("steering", id)
}

fn queued_at(place: &str, id: &str) -> Durable {
    event(
        "loopd.queued",
        json!({ "place": place, "item": { "kind": "message", "id": id, "prompt": "hello", "delivery": "queued" } }),
    )
}

/// A message of this client waits.
pub(crate) fn queued_by(client: &str, id: &str) -> Durable {
    queued_at_by("last", client, id)
}

/// A steering message of this client waits.
pub(crate) fn steering_by(client: &str, id: &str) -> Durable {
    queued_at_by("steering", client, id)
}

fn queued_at_by(place: &str, client: &str, id: &str) -> Durable {
    event(
        "loopd.queued",
        json!({ "place": place, "item": { "kind": "message", "id": id, "prompt": "hello", "delivery": "queued",
            "sender": { "id": client } } }),
    )
}

/// A slash command waits. Its request is `r-` followed by its id.
pub(crate) fn queued_command(id: &str) -> Durable {
    event(
        "loopd.queued",
        json!({ "place": "last", "item": { "kind": "command", "id": id, "command": "/deploy",
            "request": format!("r-{id}") } }),
    )
}

/// A slash command waits that a client runs.
pub(crate) fn queued_for_client(id: &str) -> Durable {
    event(
        "loopd.queued",
        json!({ "place": "last", "item": { "kind": "command", "id": id, "command": "/deploy now",
            "request": format!("r-{id}"), "registered": true } }),
    )
}

pub(crate) fn taken(ids: &[&str]) -> Durable {
    event("loopd.taken", json!({ "ids": ids }))
}

pub(crate) fn turn_started(number: u32) -> Durable {
    event(
        "assistant.turn_start",
        json!({ "turnId": number.to_string(), "interactionId": "i" }),
    )
}

pub(crate) fn loop_ended(outcome: &str) -> Durable {
    event("loopd.loop_ended", json!({ "outcome": outcome }))
}

/// A call has its result.
pub(crate) fn completed(call: &str) -> Durable {
    event(
        "tool.execution_complete",
        json!({ "toolCallId": call, "success": true, "result": { "content": "ok" } }),
    )
}

/// A person rejected a call.
pub(crate) fn rejected(call: &str) -> Durable {
    event(
        "tool.execution_complete",
        json!({ "toolCallId": call, "success": false, "error": { "message": "no", "code": "rejected" } }),
    )
}

/// A person has to allow a call.
pub(crate) fn permission_asked(call: &str, mut request: Value) -> Durable {
    if let Some(request) = request.as_object_mut() {
        request.insert("toolCallId".to_owned(), json!(call));
    }
    event(
        "permission.requested",
        json!({ "requestId": format!("r-{call}"), "permissionRequest": request }),
    )
}

/// A person is asked about a part of a slash command.
pub(crate) fn part_asked(id: &str, request: &Value) -> Durable {
    event(
        "permission.requested",
        json!({ "requestId": id, "permissionRequest": request }),
    )
}

/// A message that sets a model, an agent and tools for its run waits.
pub(crate) fn scoped(id: &str, scope: &Value) -> Durable {
    event(
        "loopd.queued",
        json!({ "item": { "kind": "message", "id": id, "prompt": "hello", "delivery": "idle", "scope": scope },
            "place": "last" }),
    )
}

pub(crate) fn client_asked(call: &str) -> Durable {
    event(
        "external_tool.requested",
        json!({ "requestId": format!("r-{call}"), "sessionId": "s", "toolCallId": call, "toolName": "edit" }),
    )
}

pub(crate) fn question(call: &str) -> Durable {
    event(
        "loopd.asked",
        json!({ "kind": "userinput", "requestId": format!("r-{call}"), "question": "Which?", "toolCallId": call }),
    )
}

/// A form is open.
pub(crate) fn elicitation(request: &str) -> Durable {
    event(
        "loopd.asked",
        json!({ "kind": "elicitation", "requestId": request, "message": "Fill in" }),
    )
}

pub(crate) fn permissions(permissions: Value) -> Durable {
    event("loopd.permissions", json!({ "permissions": permissions }))
}

/// The session may use this many credits.
pub(crate) fn limited_to(credits: f64) -> Durable {
    event(
        "loopd.configured",
        json!({ "options": { "model": "gpt", "sessionLimits": { "maxAiCredits": credits } },
            "workingDirectory": "/work" }),
    )
}

/// A model call used this many credits.
pub(crate) fn used(credits: u64) -> Durable {
    event(
        "loopd.usage",
        json!({ "model": "gpt", "durationMs": 10, "nanoCredits": credits * 1_000_000_000,
            "tokens": { "inputTokens": 1, "outputTokens": 1, "cacheReadTokens": 0, "cacheWriteTokens": 0,
                "reasoningTokens": 0 } }),
    )
}

/// The session is a sub-agent with this many turns for a message.
pub(crate) fn is_subagent(max_turns: Option<u32>) -> Durable {
    event("loopd.enlisted", identity(max_turns))
}

/// The identity of the sub-agent.
pub(crate) fn identity(max_turns: Option<u32>) -> Value {
    json!({ "parent": "top", "task": "me", "depth": 1,
        "profile": { "agentType": "explore", "displayName": "Me", "maxTurns": max_turns } })
}

/// A command of a person runs.
pub(crate) fn user_command(call: &str) -> Durable {
    event(
        "tool.execution_start",
        json!({ "toolCallId": call, "toolName": "bash" }),
    )
}

/// A task runs in the background. Its work comes from [`shell`], [`detached`], [`agent`],
/// [`waited_for`] or [`external`].
pub(crate) fn task(id: &str, work: Value) -> Durable {
    event(
        "loopd.task_started",
        json!({ "id": id, "toolCallId": format!("call-{id}"), "description": "work", "work": work,
            "startedAt": "1970-01-01T00:00:00.000Z" }),
    )
}

pub(crate) fn task_ended(id: &str) -> Durable {
    event(
        "loopd.task_ended",
        json!({ "id": id, "outcome": "completed", "endedAt": "1970-01-01T00:00:01.000Z" }),
    )
}

pub(crate) fn task_answered(id: &str) -> Durable {
    event(
        "loopd.task_answered",
        json!({ "id": id, "response": "done", "usage": {}, "answeredAt": "1970-01-01T00:00:01.000Z" }),
    )
}

pub(crate) fn delivered(id: &str) -> Durable {
    event("loopd.tasks_heard", json!({ "ids": [id] }))
}

pub(crate) fn shell(id: &str) -> Value {
    json!({ "kind": "shell", "shellId": id, "command": "make", "attachment": "attached" })
}

pub(crate) fn detached(id: &str) -> Value {
    json!({ "kind": "shell", "shellId": id, "command": "make", "attachment": "detached", "logPath": "/log" })
}

pub(crate) fn agent(name: &str) -> Value {
    agent_run(name, "background")
}

/// A sub-agent whose answer the loop waits for.
pub(crate) fn waited_for(name: &str) -> Value {
    agent_run(name, "sync")
}

fn agent_run(name: &str, execution: &str) -> Value {
    json!({ "kind": "agent", "agentType": "explore", "name": name, "prompt": "look", "sessionId": name,
        "execution": execution, "model": "gpt" })
}

pub(crate) fn external() -> Value {
    json!({ "kind": "external", "agentType": "client-task", "prompt": "wait" })
}
