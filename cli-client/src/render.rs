//! Events as a person reads them: the answer on stdout, everything about it on stderr.

mod agents;

use std::collections::HashMap;

use loopd_sdk::proto::event::tool::{ToolComplete, ToolStart};
use loopd_sdk::proto::id::ToolCallId;
use loopd_sdk::{AgentId, Body, Durable, Ephemeral, Event, MessageId};
use serde_json::Value;

use crate::terminal::{Style, Terminal, harmless};
use crate::usage::Tally;

/// How many lines of a tool's output are shown, and how much of each.
const OUTPUT_LINES: usize = 10;
const LINE_CHARS: usize = 160;
/// How many lines about agents wait for the end of a line of the answer.
const ASIDES: usize = 64;

/// Whether users' messages are shown: who typed one has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    Shown,
    Hidden,
}

/// How events are written.
pub(crate) enum Renderer {
    Json(Terminal),
    Text(Text),
}

impl Renderer {
    pub(crate) fn new(terminal: &Terminal, json: bool, users: Users) -> Self {
        if json {
            return Self::Json(terminal.clone());
        }
        Self::Text(Text {
            terminal: terminal.clone(),
            users,
            streamed: None,
            line_open: false,
            asides: Vec::new(),
            own: None,
            calls: HashMap::new(),
            tally: Tally::default(),
        })
    }

    pub(crate) fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Json(terminal) => Ok(terminal.answer(&(event.to_line()? + "\n"))?),
            Self::Text(text) => text.show(event),
        }
    }
}

/// Events as text, with what has to be known to write the next one.
pub(crate) struct Text {
    terminal: Terminal,
    users: Users,
    /// The message whose text comes in pieces, and how much of it came.
    streamed: Option<(MessageId, usize)>,
    /// Whether the answer stopped in the middle of a line.
    line_open: bool,
    /// What is to be told of agents once the line is whole.
    asides: Vec<(Style, String)>,
    /// Set in the session of an agent: there, its words are the answer.
    own: Option<AgentId>,
    calls: HashMap<ToolCallId, String>,
    tally: Tally,
}

impl Text {
    fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        if let Body::Durable(Durable::SessionStart(_)) = &event.body {
            self.own.clone_from(&event.head.agent_id);
        }
        if let Some(agent) = event.head.agent_id.as_ref()
            && self.own.as_ref() != Some(agent)
        {
            return match agents::line(agent, &event.body) {
                Some((style, line)) => self.beside(style, line),
                None => Ok(()),
            };
        }
        match &event.body {
            Body::Durable(durable) => self.show_durable(durable)?,
            Body::Ephemeral(Ephemeral::MessageDelta(delta)) => {
                let fresh = self
                    .streamed
                    .take()
                    .filter(|(message, _)| *message == delta.message_id);
                let before = fresh.map_or(0, |(_, length)| length);
                self.say(&delta.delta_content)?;
                let length = before + delta.delta_content.len();
                self.streamed = Some((delta.message_id.clone(), length));
            }
            Body::Ephemeral(Ephemeral::Usage(usage)) => self.tally.add(usage),
            Body::Ephemeral(Ephemeral::SessionIdle(idle)) => {
                if idle.aborted == Some(true) {
                    self.note(Style::Bad, "aborted")?;
                }
                if let Some(line) = std::mem::take(&mut self.tally).line() {
                    self.note(Style::Dim, &line)?;
                }
            }
            Body::Ephemeral(Ephemeral::TurnRetry(retry)) => {
                let why = retry.reason.as_deref().unwrap_or("the model call failed");
                self.note(Style::Dim, &format!("trying again: {why}"))?;
            }
            Body::Ephemeral(Ephemeral::SessionInfo(info)) => {
                self.note(Style::Dim, &info.message)?;
            }
            Body::Ephemeral(Ephemeral::SessionWarning(warning)) => {
                self.note(Style::Bad, &warning.message)?;
            }
            Body::Ephemeral(Ephemeral::SessionError(failure)) => {
                self.note(Style::Bad, &failure.message)?;
            }
            Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
        Ok(())
    }

    fn show_durable(&mut self, event: &Durable) -> anyhow::Result<()> {
        match event {
            Durable::UserMessage(message) if self.users == Users::Shown => {
                self.note(Style::Bold, &format!("> {}", message.content))
            }
            Durable::AssistantMessage(message) => {
                let streamed = self.streamed.take();
                let told = streamed.filter(|(streamed, _)| *streamed == message.message_id);
                let told = told.map_or(0, |(_, length)| length);
                // Pieces may have been lost on the way; the whole is here. A place inside a
                // character cannot be: pieces are whole texts.
                let rest = message.content.get(told..).unwrap_or_default();
                self.say(rest)?;
                self.end_line()
            }
            Durable::ToolStart(start) => {
                let what = summary(start);
                self.calls.insert(start.tool_call_id.clone(), what.clone());
                self.note(Style::Dim, &format!("• {what}"))
            }
            Durable::ToolComplete(done) => self.show_result(done),
            Durable::SessionError(failure) => {
                self.note(Style::Bad, &format!("error: {}", failure.message))
            }
            Durable::SessionWarning(warning) => self.note(Style::Bad, &warning.message),
            Durable::SessionInfo(info) => self.note(Style::Dim, &info.message),
            _ => Ok(()),
        }
    }

    fn show_result(&mut self, done: &ToolComplete) -> anyhow::Result<()> {
        self.calls.remove(&done.tool_call_id);
        let (style, text) = match (&done.error, &done.result) {
            (Some(error), _) => (Style::Bad, error.message.as_str()),
            (None, Some(result)) => (Style::Dim, result.content.as_str()),
            (None, None) => (Style::Dim, ""),
        };
        let text = harmless(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(OUTPUT_LINES) {
            self.note(style, &format!("  {}", shorten(line)))?;
        }
        if let Some(more) = lines
            .len()
            .checked_sub(OUTPUT_LINES)
            .filter(|more| *more > 0)
        {
            self.note(Style::Dim, &format!("  … {more} more lines"))?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.terminal.answer(&harmless(text))?;
        self.line_open = !text.ends_with('\n');
        self.tell_asides();
        Ok(())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.line_open) {
            self.terminal.answer("\n")?;
        }
        self.tell_asides();
        Ok(())
    }

    /// Tells of an agent without breaking a line of the answer, unless that takes too long.
    fn beside(&mut self, style: Style, line: String) -> anyhow::Result<()> {
        self.asides.push((style, line));
        if self.asides.len() > ASIDES {
            self.end_line()?;
        }
        self.tell_asides();
        Ok(())
    }

    fn tell_asides(&mut self) {
        if self.line_open {
            return;
        }
        for (style, line) in self.asides.drain(..) {
            let line = self.terminal.styled(style, &harmless(&line));
            self.terminal.notice(&line);
        }
    }

    fn note(&mut self, style: Style, line: &str) -> anyhow::Result<()> {
        self.end_line()?;
        self.terminal
            .notice(&self.terminal.styled(style, &harmless(line)));
        Ok(())
    }
}

/// A tool call in one line: its name, and the argument that says most.
fn summary(start: &ToolStart) -> String {
    const TELLING: [&str; 7] = [
        "command", "path", "pattern", "question", "url", "query", "name",
    ];
    let arguments = start.arguments.as_ref();
    let telling = arguments.and_then(|arguments| {
        TELLING
            .iter()
            .find_map(|name| arguments.get(name).and_then(Value::as_str))
    });
    let name = &start.tool_name;
    match (telling, arguments) {
        (Some(telling), _) => shorten(&format!("{name}  {}", telling.replace('\n', " ⏎ "))),
        (None, Some(arguments)) => shorten(&format!("{name}  {arguments}")),
        (None, None) => name.clone(),
    }
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// An event in one line, for lists of them.
pub(crate) fn line(event: &Event) -> String {
    let told = match &event.body {
        Body::Durable(Durable::UserMessage(message)) => message.content.clone(),
        Body::Durable(Durable::AssistantMessage(message)) => message.content.clone(),
        Body::Durable(Durable::ToolStart(start)) => summary(start),
        Body::Durable(Durable::ToolComplete(done)) => match &done.error {
            Some(error) => format!("failed: {}", error.message),
            None => done
                .result
                .as_ref()
                .map_or_else(String::new, |result| result.content.clone()),
        },
        Body::Durable(Durable::PermissionRequested(asked)) => {
            crate::answer::describe(&asked.permission_request)
        }
        Body::Durable(Durable::SessionError(failure)) => failure.message.clone(),
        Body::Durable(Durable::SessionStart(start)) => {
            let context = start.context.as_ref();
            context.map_or_else(String::new, |context| context.cwd.clone())
        }
        Body::Durable(Durable::ModelChange(change)) => change.new_model.clone(),
        body => match &event.head.agent_id {
            Some(agent) => agents::fate(agent, body)
                .map(|(_, line)| line)
                .unwrap_or_default(),
            None => String::new(),
        },
    };
    let told = match &event.head.agent_id {
        Some(agent) if !told.is_empty() && !event.body.kind().starts_with("subagent.") => {
            format!("[{agent}] {told}")
        }
        _ => told,
    };
    let told = shorten(&harmless(&told).replace('\n', " ⏎ "));
    let line = format!("{}  {:<26} {told}", event.head.timestamp, event.body.kind());
    line.trim_end().to_owned()
}
