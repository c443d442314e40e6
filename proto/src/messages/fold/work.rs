//! Folding what calls of tools and sub-agents do.

use serde_json::Value;

use super::{Fields, member, message};
use crate::messages::{
    Changed, MessageRole, Messages, PartContent, SubtaskPart, ToolPart, WorkStatus,
};

impl Messages {
    /// Remembers the calls of a message that is not here, so that what they start is not taken for
    /// something new.
    pub(super) fn calls_are_elsewhere(&mut self, event: &Fields<'_>) {
        let calls = event.data.get("toolRequests").and_then(Value::as_array);
        let ids = calls.into_iter().flatten();
        let ids = ids.filter_map(|call| member(call, "toolCallId"));
        self.calls_elsewhere.extend(ids.map(str::to_owned));
    }

    pub(super) fn ended_elsewhere(&mut self, event: &Fields<'_>) {
        let call = event.text("toolCallId").unwrap_or_default();
        self.calls_elsewhere.remove(call);
    }

    /// Returns whether an event is about a call of a message that is not here.
    pub(super) fn is_elsewhere(&self, event: &Fields<'_>) -> bool {
        let call = event.text("toolCallId").unwrap_or_default();
        self.calls_elsewhere.contains(call)
    }

    pub(super) fn tool_start(&mut self, event: &Fields<'_>) -> Changed {
        let start = |tool: &mut ToolPart, event: &Fields<'_>| {
            tool.status = WorkStatus::Running;
            tool.started_at = Some(event.at.to_owned());
            // A hook may have changed them.
            if let Some(arguments) = event.data.get("arguments") {
                tool.arguments = arguments.clone();
            }
        };
        let changed = self.in_tool(event, start);
        if changed != Changed::Nothing || self.is_elsewhere(event) {
            return changed;
        }
        // A call that no message of the model asked for is a command of a person.
        let call = event.owned("toolCallId").unwrap_or_default();
        let mut message = message(event, MessageRole::User);
        message.add(
            &format!("tool:{call}"),
            PartContent::Tool(ToolPart {
                call_id: call,
                tool: event.owned("toolName").unwrap_or_default(),
                arguments: event.data.get("arguments").cloned().unwrap_or_default(),
                status: WorkStatus::Running,
                started_at: Some(event.at.to_owned()),
                ended_at: None,
                output: None,
                detail: None,
                partial: None,
            }),
        );
        self.push(message)
    }

    /// Changes the part of a tool call that has no result yet.
    pub(super) fn in_tool(
        &mut self,
        event: &Fields<'_>,
        change: impl FnOnce(&mut ToolPart, &Fields<'_>),
    ) -> Changed {
        let Some(call) = event.text("toolCallId") else {
            return Changed::Nothing;
        };
        for message in self.all.iter_mut().rev() {
            for part in &mut message.parts {
                if let PartContent::Tool(tool) = &mut part.content
                    && tool.call_id == call
                    && tool.ended_at.is_none()
                {
                    change(tool, event);
                    if message.role == MessageRole::User && tool.ended_at.is_some() {
                        message.completed_at = Some(event.at.to_owned());
                    }
                    return Changed::Message(message.id.clone());
                }
            }
        }
        Changed::Nothing
    }

    pub(super) fn subtask_started(&mut self, event: &Fields<'_>) -> Changed {
        // A sub-agent may have sub-agents of its own.
        if event.text("parentId") != self.agent.as_deref() {
            return Changed::Nothing;
        }
        let call = event.owned("toolCallId").unwrap_or_default();
        let content = PartContent::Subtask(SubtaskPart {
            agent: event.owned("agentName").unwrap_or_default(),
            description: event.owned("agentDescription"),
            status: WorkStatus::Running,
            session_id: event.owned("sessionId"),
            started_at: Some(event.at.to_owned()),
            ended_at: None,
            error: None,
            agent_id: event.agent.map(str::to_owned),
            call_id: call.clone(),
        });
        for message in self.all.iter_mut().rev() {
            let mut parts = message.parts.iter();
            let asked = parts.any(
                |part| matches!(&part.content, PartContent::Tool(tool) if tool.call_id == call),
            );
            if asked {
                message.add(&format!("subtask:{}", event.id), content);
                return Changed::Message(message.id.clone());
            }
        }
        if self.is_elsewhere(event) {
            return Changed::Nothing;
        }
        let mut message = message(event, MessageRole::Notice);
        message.completed_at = Some(event.at.to_owned());
        message.add(&format!("subtask:{}", event.id), content);
        self.push(message)
    }

    pub(super) fn subtask_ended(&mut self, event: &Fields<'_>) -> Changed {
        let call = event.text("toolCallId").unwrap_or_default();
        let status = match event.text("status") {
            _ if event.kind == "subagent.failed" => WorkStatus::Failed,
            Some("cancelled") => WorkStatus::Cancelled,
            _ if event.data.get("cancelled") == Some(&Value::Bool(true)) => WorkStatus::Cancelled,
            _ => WorkStatus::Completed,
        };
        for message in self.all.iter_mut().rev() {
            for part in message.parts.iter_mut().rev() {
                if let PartContent::Subtask(subtask) = &mut part.content
                    && subtask.call_id == call
                    && subtask.agent_id.as_deref() == event.agent
                    && subtask.ended_at.is_none()
                {
                    subtask.status = status;
                    subtask.ended_at = Some(event.at.to_owned());
                    subtask.error = event.owned("error");
                    return Changed::Message(message.id.clone());
                }
            }
        }
        Changed::Nothing
    }
}

pub(super) fn tool_complete(tool: &mut ToolPart, event: &Fields<'_>) {
    let ok = event.data.get("success") == Some(&Value::Bool(true));
    let result = event.data.get("result");
    let error = event.data.get("error");
    let said = result.and_then(|result| member(result, "content"));
    let said = said.or_else(|| error.and_then(|error| member(error, "message")));
    tool.status = if ok {
        WorkStatus::Completed
    } else {
        WorkStatus::Failed
    };
    tool.ended_at = Some(event.at.to_owned());
    tool.output = said.map(str::to_owned);
    tool.detail = result
        .and_then(|result| member(result, "detailedContent"))
        .map(str::to_owned);
    tool.partial = None;
}
