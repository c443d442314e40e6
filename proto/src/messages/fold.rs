//! Folding an event into the messages.

mod work;

use serde_json::Value;

use super::{
    Changed, Message, MessageRole, Messages, Part, PartContent, StepPhase, ToolPart, WorkStatus,
};
use work::tool_complete;

/// The members of an event that matter here.
struct Fields<'a> {
    kind: &'a str,
    agent: Option<&'a str>,
    id: &'a str,
    at: &'a str,
    data: &'a Value,
    ephemeral: bool,
}

impl<'a> Fields<'a> {
    fn text(&self, member: &str) -> Option<&'a str> {
        self.data.get(member)?.as_str()
    }

    fn owned(&self, member: &str) -> Option<String> {
        self.text(member).map(str::to_owned)
    }
}

/// The longest output of a running call; of more than that the end is kept.
const LONGEST_PARTIAL: usize = 64 * 1024;

/// Shortens a text to at most so many bytes of its end.
fn keep_end(text: &mut String, most: usize) {
    let mut cut = text.len().saturating_sub(most);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    text.drain(..cut);
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

impl Messages {
    /// Folds an event, as it is on the wire.
    pub fn apply(&mut self, event: &Value) -> Changed {
        let of = member(event, "agentId");
        let kind = member(event, "type").unwrap_or_default();
        // The events of sub-agents are theirs; their starts and ends are ours.
        let is_ours = of == self.agent.as_deref() || kind.starts_with("subagent.");
        if !is_ours {
            return Changed::Nothing;
        }
        self.fold(&Fields {
            kind,
            agent: of,
            id: member(event, "id").unwrap_or_default(),
            at: member(event, "timestamp").unwrap_or_default(),
            data: event.get("data").unwrap_or(&Value::Null),
            ephemeral: event.get("ephemeral") == Some(&Value::Bool(true)),
        })
    }

    fn fold(&mut self, event: &Fields<'_>) -> Changed {
        match event.kind {
            "user.message" => self.user_message(event),
            "system.notification" => {
                let text = event.owned("content").unwrap_or_default();
                self.notice(event, "text", PartContent::Text { text })
            }
            "session.error" if !event.ephemeral => {
                let content = PartContent::Error {
                    message: event.owned("message").unwrap_or_default(),
                    error_type: event.owned("errorType"),
                };
                self.notice(event, "error", content)
            }
            "session.compaction_start" => {
                self.compacting = Some(event.id.to_owned());
                let content = PartContent::Compaction {
                    status: WorkStatus::Running,
                    summary: None,
                };
                self.notice(event, "compaction", content)
            }
            "session.compaction_complete" => self.compacted(event),
            "session.context_cleared" => {
                let messages = event.data.get("messagesCleared").and_then(Value::as_u64);
                let messages = messages.unwrap_or(0);
                self.notice(event, "cleared", PartContent::Cleared { messages })
            }
            "assistant.turn_start" => self.turn_start(event),
            "assistant.message_delta" => {
                let text = event.text("deltaContent").unwrap_or_default();
                self.stream("text", text)
            }
            "assistant.reasoning_delta" => {
                let text = event.text("deltaContent").unwrap_or_default();
                self.stream("reasoning", text)
            }
            "assistant.turn_retry" => self.retry(event),
            "assistant.message" => self.assistant_message(event),
            "assistant.turn_end" => self.turn_end(event),
            "abort" => self.in_open(|message| {
                message.aborted = true;
                message.parts.retain(|part| !part.transient);
            }),
            "tool.execution_start" => self.tool_start(event),
            "tool.execution_partial_result" => self.in_tool(event, |tool, event| {
                let more = event.text("partialOutput").unwrap_or_default();
                let partial = tool.partial.get_or_insert_default();
                partial.push_str(more);
                keep_end(partial, LONGEST_PARTIAL);
            }),
            "tool.execution_complete" => {
                self.ended_elsewhere(event);
                self.in_tool(event, tool_complete)
            }
            "subagent.started" => self.subtask_started(event),
            "subagent.completed" | "subagent.failed" => self.subtask_ended(event),
            "session.snapshot_rewind" => self.rewound(event),
            _ => Changed::Nothing,
        }
    }

    fn push(&mut self, message: Message) -> Changed {
        if self.is_closed {
            self.has_more = true;
            return Changed::Nothing;
        }
        let id = message.id.clone();
        self.all.push_back(message);
        Changed::Message(id)
    }

    fn notice(&mut self, event: &Fields<'_>, name: &str, content: PartContent) -> Changed {
        let mut message = message(event, MessageRole::Notice);
        let is_done = !matches!(
            content,
            PartContent::Compaction {
                status: WorkStatus::Running,
                ..
            }
        );
        message.completed_at = is_done.then(|| event.at.to_owned());
        message.add(name, content);
        self.push(message)
    }

    fn user_message(&mut self, event: &Fields<'_>) -> Changed {
        let mut message = message(event, MessageRole::User);
        message.message_id = event.owned("messageId");
        message.completed_at = Some(event.at.to_owned());
        let text = event.owned("content").unwrap_or_default();
        message.add("text", PartContent::Text { text });
        let files = event.data.get("attachments").and_then(Value::as_array);
        for (number, file) in files.into_iter().flatten().enumerate() {
            let path = member(file, "path").or_else(|| member(file, "filePath"));
            let name = member(file, "displayName")
                .or(path)
                .or_else(|| member(file, "title"))
                .or_else(|| member(file, "type"));
            message.add(
                &format!("file:{number}"),
                PartContent::File {
                    name: name.unwrap_or("attachment").to_owned(),
                    path: path.map(str::to_owned),
                    mime_type: member(file, "mimeType").map(str::to_owned),
                },
            );
        }
        self.push(message)
    }

    fn turn_start(&mut self, event: &Fields<'_>) -> Changed {
        let mut message = message(event, MessageRole::Assistant);
        message.model = event.owned("model");
        let phase = StepPhase::Start;
        message.add("start", PartContent::Step { phase });
        self.open = Some(message.id.clone());
        self.push(message)
    }

    /// Changes the message of the running turn.
    fn in_open(&mut self, change: impl FnOnce(&mut Message)) -> Changed {
        let Some(open) = &self.open else {
            return Changed::Nothing;
        };
        let mut newest = self.all.iter_mut().rev();
        match newest.find(|message| message.id == *open) {
            Some(message) => {
                change(message);
                Changed::Message(message.id.clone())
            }
            None => Changed::Nothing,
        }
    }

    /// Adds streamed text, until the whole of it comes.
    fn stream(&mut self, name: &str, more: &str) -> Changed {
        self.in_open(|message| {
            let id = message.part_id(name);
            let mut parts = message.parts.iter_mut();
            if let Some(part) = parts.find(|part| part.id == id) {
                if part.transient
                    && let PartContent::Text { text } | PartContent::Reasoning { text } =
                        &mut part.content
                {
                    text.push_str(more);
                }
                return;
            }
            let text = more.to_owned();
            let content = match name {
                "text" => PartContent::Text { text },
                _ => PartContent::Reasoning { text },
            };
            message.parts.push(Part {
                id,
                transient: true,
                content,
            });
        })
    }

    fn retry(&mut self, event: &Fields<'_>) -> Changed {
        let reason = event.owned("reason");
        self.in_open(|message| {
            // What was streamed before is streamed again.
            message.parts.retain(|part| {
                !part.transient || matches!(part.content, PartContent::Retry { .. })
            });
            let number = message.parts.iter().filter(|part| part.transient).count();
            let id = message.part_id(&format!("retry:{number}"));
            message.parts.push(Part {
                id,
                transient: true,
                content: PartContent::Retry { reason },
            });
        })
    }

    fn assistant_message(&mut self, event: &Fields<'_>) -> Changed {
        if self.open.is_none() {
            // A log of an earlier version may have no start of the turn.
            let message = message(event, MessageRole::Assistant);
            self.open = Some(message.id.clone());
            self.push(message);
        }
        let changed = self.in_open(|message| {
            message.message_id = event.owned("messageId");
            if let Some(model) = event.owned("model") {
                message.model = Some(model);
            }
            message.parts.retain(|part| {
                !part.transient || matches!(part.content, PartContent::Retry { .. })
            });
            if let Some(text) = event.owned("reasoningText") {
                message.add("reasoning", PartContent::Reasoning { text });
            }
            if let Some(text) = event.owned("content").filter(|text| !text.is_empty()) {
                message.add("text", PartContent::Text { text });
            }
            let calls = event.data.get("toolRequests").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                let id = member(call, "toolCallId").unwrap_or_default();
                message.add(
                    &format!("tool:{id}"),
                    PartContent::Tool(ToolPart {
                        call_id: id.to_owned(),
                        tool: member(call, "name").unwrap_or_default().to_owned(),
                        arguments: call.get("arguments").cloned().unwrap_or_default(),
                        status: WorkStatus::Pending,
                        started_at: None,
                        ended_at: None,
                        output: None,
                        detail: None,
                        partial: None,
                    }),
                );
            }
        });
        if changed == Changed::Nothing {
            self.calls_are_elsewhere(event);
        }
        changed
    }

    fn turn_end(&mut self, event: &Fields<'_>) -> Changed {
        let changed = self.in_open(|message| {
            message.parts.retain(|part| !part.transient);
            message.completed_at = Some(event.at.to_owned());
            let phase = StepPhase::Finish;
            message.add("finish", PartContent::Step { phase });
        });
        self.open = None;
        changed
    }

    fn compacted(&mut self, event: &Fields<'_>) -> Changed {
        let ok = event.data.get("success") != Some(&Value::Bool(false));
        let done = PartContent::Compaction {
            status: if ok {
                WorkStatus::Completed
            } else {
                WorkStatus::Failed
            },
            summary: event.owned("summaryContent"),
        };
        let begun = self.compacting.take();
        let mut newest = self.all.iter_mut().rev();
        let Some(message) = newest.find(|message| begun.as_ref() == Some(&message.id)) else {
            return if begun.is_some() {
                Changed::Nothing
            } else {
                self.notice(event, "compaction", done)
            };
        };
        message.completed_at = Some(event.at.to_owned());
        if let Some(part) = message.parts.first_mut() {
            part.content = done;
        }
        Changed::Message(message.id.clone())
    }

    fn rewound(&mut self, event: &Fields<'_>) -> Changed {
        let to = event.text("upToEventId").unwrap_or_default();
        let found = self.all.iter().position(|message| message.id == to);
        let restored = event.data.get("eventsRestored").and_then(Value::as_u64);
        let (Some(at), None | Some(0)) = (found, restored) else {
            return Changed::ListAgain;
        };
        self.all.truncate(at);
        self.open = None;
        self.compacting = None;
        Changed::TakenBack(to.to_owned())
    }
}

fn message(event: &Fields<'_>, role: MessageRole) -> Message {
    Message {
        id: event.id.to_owned(),
        role,
        message_id: None,
        created_at: event.at.to_owned(),
        completed_at: None,
        model: None,
        aborted: false,
        parts: Vec::new(),
    }
}

impl Message {
    fn part_id(&self, name: &str) -> String {
        format!("{}:{name}", self.id)
    }

    /// Adds a part at the end, or replaces the one of this name.
    fn add(&mut self, name: &str, content: PartContent) {
        let id = self.part_id(name);
        let part = Part {
            transient: false,
            content,
            id,
        };
        match self.parts.iter_mut().find(|known| known.id == part.id) {
            Some(known) => *known = part,
            None => self.parts.push(part),
        }
    }
}
