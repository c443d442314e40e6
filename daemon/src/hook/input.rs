//! What a hook is told: one event in the two forms of payloads.

use loopd_proto::time::Timestamp;
use loopd_proto::visible::visible;
use serde_json::{Map, Value, json};

use super::answer::cut;
use super::context::HookContext;
use crate::discovery::hooks::{HookKind, MatchSubject, PayloadForm, TYPING_TOOL};
use crate::discovery::hooks::{claude_mcp_name, claude_payload, patch_text, typed_command};
use crate::tool::apply_patch::named_files;
use loopd_kernel::model::ToolCall;
use loopd_kernel::policy::typed::plain_text;

/// An event for hooks, with the members that its kind has beside the common ones.
#[derive(Debug, Clone)]
pub struct HookInput {
    pub kind: HookKind,
    /// What matchers are compared with.
    pub subject: Option<String>,
    members: Map<String, Value>,
    /// What may stand on the line that a call types into; `None` if that is not known.
    typed_before: Option<Vec<String>>,
}

impl HookInput {
    pub fn new(kind: HookKind, subject: Option<&str>, members: Value) -> Self {
        let members = match members {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self {
            kind,
            subject: subject.map(str::to_owned),
            members,
            typed_before: Some(vec![String::new()]),
        }
    }

    /// Adds what may stand on the line that the call types into; `None` if that is not known.
    #[must_use]
    pub fn after_typing(self, before: Option<Vec<String>>) -> Self {
        Self {
            typed_before: before,
            ..self
        }
    }

    /// Makes the event of a kind that is about a tool call.
    pub fn of_call(kind: HookKind, call: &ToolCall, more: Value) -> Self {
        let mut input = Self::new(
            kind,
            Some(&call.name),
            json!({"toolCallId": call.id, "toolName": call.name, "toolArgs": call.arguments}),
        );
        if let Value::Object(more) = more {
            input.members.extend(more);
        }
        input
    }

    /// Adds a member that only some events of the kind have.
    pub(super) fn add(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    /// Returns the arguments of the tool call that the event is about.
    pub(super) fn arguments(&self) -> Option<&Value> {
        self.members.get("toolArgs")
    }

    /// The same event with other arguments of the tool call.
    #[must_use]
    pub(super) fn with_arguments(&self, arguments: &Value) -> Self {
        let mut changed = self.clone();
        changed
            .members
            .insert("toolArgs".to_owned(), arguments.clone());
        changed
    }

    /// Whether clients are told the transcript with this event. Hooks of files always are.
    pub(super) fn is_read_with_transcript(&self) -> bool {
        matches!(
            self.kind,
            HookKind::AgentStop
                | HookKind::SubagentStop
                | HookKind::SubagentStart
                | HookKind::PreCompact
        )
    }

    fn is_typing(&self) -> bool {
        self.kind.is_guard() && self.subject.as_deref() == Some(TYPING_TOOL)
    }

    /// Returns what a call types into a shell, as the command that it becomes with what was typed before.
    pub(super) fn typed_command(&self) -> Option<String> {
        let lines = self.typed_lines()?;
        Some(lines.trim_end_matches('\n').to_owned())
    }

    /// Returns the lines that what a call types may become, with their ends.
    fn typed_lines(&self) -> Option<String> {
        let arguments = self.arguments().filter(|_| self.is_typing())?;
        let input = arguments.get("input")?.as_str()?;
        let typed = match plain_text(input, &[]) {
            Some(text) => text,
            None => typed_command(arguments)?,
        };
        let Some(before) = &self.typed_before else {
            return Some(typed);
        };
        let lines = before.iter().map(|line| format!("{line}{typed}"));
        // A line that goes on with the next one is one with it.
        Some(lines.collect::<Vec<_>>().join("\n").replace("\\\n", ""))
    }

    /// Returns what stands on the line that a call types into.
    pub(super) fn typed_start(&self) -> &str {
        let mut before = self.typed_before.iter().flatten();
        before.next().map_or("", String::as_str)
    }

    /// Whether a call types something that no guard can be told as a command: the line is not known.
    pub(super) fn types_unknown_line(&self) -> bool {
        let Some(arguments) = self.arguments().filter(|_| self.is_typing()) else {
            return false;
        };
        let Some(input) = arguments.get("input").and_then(Value::as_str) else {
            return false;
        };
        let Some(before) = &self.typed_before else {
            return true;
        };
        let before: Vec<String> = before.iter().filter(|it| !it.is_empty()).cloned().collect();
        plain_text(input, &before).is_none()
    }

    /// Returns the payload for a client.
    pub(super) fn for_client(&self, context: &HookContext, now: Timestamp) -> Value {
        let mut members = self.native(context, now);
        if self.is_typing() {
            let line = self.typed_command().filter(|_| !self.types_unknown_line());
            members.insert("typedLine".to_owned(), line.into());
        }
        if self.is_read_with_transcript() {
            add_transcript(&mut members, context);
        }
        Value::Object(members)
    }

    /// Returns the payload for a hook of a file.
    pub(super) fn for_file(
        &self,
        form: PayloadForm,
        context: &HookContext,
        now: Timestamp,
    ) -> Value {
        let mut members = self.native(context, now);
        add_transcript(&mut members, context);
        // Files read an error as an object, clients as its text.
        if let Some(Value::String(message)) = members.get("error")
            && self.kind == HookKind::ErrorOccurred
        {
            let error = json!({"name": "Error", "message": message});
            members.insert("error".to_owned(), error);
        }
        match form {
            PayloadForm::Native => {
                // A guard of `bash` looks for the command there.
                if let (Some(command), Some(Value::Object(arguments))) =
                    (self.typed_command(), members.get_mut("toolArgs"))
                {
                    arguments.insert("command".to_owned(), command.into());
                }
                Value::Object(members)
            }
            PayloadForm::Claude => {
                let mode = if context.is_planning {
                    "plan"
                } else {
                    "default"
                };
                members.insert("permissionMode".to_owned(), json!(mode));
                // There what is typed is the command of the call.
                if let (Some(lines), Some(input)) = (
                    self.typed_lines(),
                    members
                        .get_mut("toolArgs")
                        .and_then(|it| it.get_mut("input")),
                ) {
                    *input = lines.replace('\n', "{enter}").into();
                }
                let patched = members.get("toolArgs").and_then(patched_files);
                let mut payload = claude_payload(self.kind, members, patched, now);
                // Before a call to a server the name is the one there, beside that of the server.
                if self.kind != HookKind::PreMcpToolCall
                    && let Some(tool) = context.of_servers(self).first()
                    && let Some(name) = payload.get_mut("tool_name")
                {
                    *name = claude_mcp_name(tool).into();
                }
                payload
            }
        }
    }

    /// Returns the name of the tool, unless a server or an app may have the tool of that name.
    fn built_in(&self, context: &HookContext) -> Option<&str> {
        let tool = self.subject.as_deref();
        tool.filter(|tool| {
            self.kind.subject() == Some(MatchSubject::Tool)
                && self.kind != HookKind::PreMcpToolCall
                && !context.replaced.iter().any(|it| it == tool)
        })
    }

    /// Says which of the arguments that a hook wants the tool does not have.
    pub(super) fn not_read(&self, arguments: &Value, context: &HookContext) -> Option<String> {
        let tool = self.built_in(context)?;
        let catalog = &context.services.catalog;
        let names = catalog.not_read(tool, arguments.as_object()?);
        if names.is_empty() {
            return None;
        }
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        Some(format!(
            "it sets arguments that {tool} does not have: {}",
            cut(&visible(&names.join(", ")))
        ))
    }

    fn native(&self, context: &HookContext, now: Timestamp) -> Map<String, Value> {
        let mut members = self.members.clone();
        // What a model writes beside the arguments of a tool would pass for them: `file_path` is what
        // `path` is called in Claude's format, and `command` what is typed.
        if let (Some(tool), Some(Value::Object(arguments))) =
            (self.built_in(context), members.get_mut("toolArgs"))
        {
            let catalog = &context.services.catalog;
            catalog.keep_what_is_read(tool, arguments);
        }
        members.insert("sessionId".to_owned(), json!(context.session));
        members.insert("timestamp".to_owned(), json!(now.0));
        members.insert("cwd".to_owned(), json!(context.cwd));
        if let Some(agent) = &context.agent {
            members.insert("agentId".to_owned(), json!(agent.id));
            members.insert("agentName".to_owned(), json!(agent.name));
            members.insert("agentType".to_owned(), json!(agent.name));
        }
        members
    }
}

/// Returns the files that a call of `apply_patch` changes, as the tool reads them.
pub(super) fn patched_files(arguments: &Value) -> Option<Vec<String>> {
    named_files(patch_text(arguments)?)
}

fn add_transcript(members: &mut Map<String, Value>, context: &HookContext) {
    if let Some(path) = context.transcript.path() {
        members.insert("transcriptPath".to_owned(), json!(path));
    }
}
