//! Shows events to a person: the answer on stdout, everything else on stderr.

mod agents;
mod own_run;

use std::collections::{HashMap, HashSet};

use loopd_sdk::proto::event::autopilot::{CompletionOutcome, TaskComplete};
use loopd_sdk::proto::event::tool::{ToolComplete, ToolStart};
use loopd_sdk::proto::event::turn::Delivered;
use loopd_sdk::proto::id::ToolCallId;
use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{AgentId, Body, Durable, Ephemeral, Event, MessageId, Mode};
use serde_json::Value;

use self::own_run::OwnRun;
use crate::terminal::{Style, Terminal, sanitize};
use crate::usage::UsageTotal;

/// How many lines of a tool's output are shown, and how many characters of each.
const OUTPUT_LINES: usize = 10;
const LINE_CHARS: usize = 160;
/// The tool that ends a task.
const TASK_COMPLETE: &str = "task_complete";
/// How many lines about sub-agents may wait for the end of a line of the answer.
const PENDING_NOTICES: usize = 64;

/// Whether user messages are shown. Whoever typed a message here has already seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserMessages {
    Shown,
    Hidden,
}

/// Writes events as JSON or as text.
pub(crate) enum Renderer {
    Json {
        terminal: Terminal,
        /// The only message whose run is printed; `None` prints every event.
        own: Option<OwnRun>,
    },
    Text(Text),
}

impl Renderer {
    pub(crate) fn new(terminal: &Terminal, json: bool, users: UserMessages) -> Self {
        if json {
            return Self::Json {
                terminal: terminal.clone(),
                own: None,
            };
        }
        Self::Text(Text {
            terminal: terminal.clone(),
            users,
            hidden: HashSet::new(),
            answers: None,
            aborted: false,
            streamed: None,
            line_open: false,
            pending_notices: Vec::new(),
            own: None,
            held: None,
            completions: HashSet::new(),
            only_problems: false,
            calls: HashMap::new(),
            usage: UsageTotal::default(),
        })
    }

    pub(crate) fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Json { terminal, own } => {
                if own.as_mut().is_none_or(|own| own.takes(event)) {
                    terminal.print(&(event.to_line()? + "\n"))?;
                }
                Ok(())
            }
            Self::Text(text) => text.show(event),
        }
    }

    /// Ends a line that is not complete, so that something else can be shown.
    pub(crate) fn end_line(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Text(text) => text.end_line(),
        }
    }

    /// Prints only the work on this message and its answer: other clients may have sent others.
    pub(crate) fn only_answers_to(&mut self, id: MessageId) {
        let run = Some(OwnRun::of(id));
        match self {
            Self::Json { own, .. } => *own = run,
            Self::Text(text) => text.answers = run,
        }
    }

    /// Shows errors and warnings only, until the answer.
    pub(crate) fn only_problems(&mut self) {
        if let Self::Text(text) = self {
            text.only_problems = true;
        }
    }

    /// Prints the answer of a run that has ended, unless it was printed as it came. A run that failed
    /// has none.
    pub(crate) fn end_run(&mut self, answer: Option<&str>) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Text(text) => text.end_run(answer),
        }
    }

    /// Says that the turn was aborted, if no event has said it since.
    pub(crate) fn end_turn(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Text(text) => text.tell_abort(),
        }
    }

    /// Does not show this message of the user, because it was typed here.
    pub(crate) fn hide_message(&mut self, id: MessageId) {
        if let Self::Text(text) = self {
            text.hidden.insert(id);
        }
    }
}

/// Writes events as text.
pub(crate) struct Text {
    terminal: Terminal,
    users: UserMessages,
    hidden: HashSet<MessageId>,
    /// The only message whose answer is printed; `None` prints every answer.
    answers: Option<OwnRun>,
    /// Whether the turn was aborted and nothing has said so yet.
    aborted: bool,
    /// The message that is being streamed to a screen, and what of it is shown.
    streamed: Option<(MessageId, String)>,
    /// Whether the answer stopped in the middle of a line.
    line_open: bool,
    /// The lines about sub-agents that wait for the end of the line.
    pending_notices: Vec<(Style, String)>,
    /// The agent of the session if that is a sub-agent's: there, its messages are the answer.
    own: Option<AgentId>,
    /// The last message of the agent, where only the answer goes to stdout: a later message shows
    /// that it is not the answer.
    held: Option<String>,
    /// Whether only errors, warnings and the answer are shown.
    only_problems: bool,
    calls: HashMap<ToolCallId, String>,
    /// The calls of `task_complete`, which are not shown as calls.
    completions: HashSet<ToolCallId>,
    usage: UsageTotal,
}

impl Text {
    fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        if let Body::Durable(Durable::SessionStart(_)) = &event.body {
            self.own.clone_from(&event.head.agent_id);
        }
        if let Some(agent) = event.head.agent_id.as_ref()
            && self.own.as_ref() != Some(agent)
        {
            if let Body::Ephemeral(Ephemeral::Usage(usage)) = &event.body {
                self.usage.add_of_agent(usage);
            }
            return match agents::line(agent, &event.body) {
                Some((style, line)) if !self.only_problems => self.agent_notice(style, line),
                Some(_) | None => Ok(()),
            };
        }
        if begins_work(&event.body) {
            // The aborted turn is over, whatever comes of this one.
            self.tell_abort()?;
        }
        self.note_whose(&event.body)?;
        if self.is_other() && is_work(&event.body) {
            return Ok(());
        }
        match &event.body {
            Body::Durable(durable) => self.show_durable(durable)?,
            // A file or a pipe gets only what is final: the stream may break and begin again.
            Body::Ephemeral(Ephemeral::MessageDelta(delta))
                if !self.holds() && self.terminal.is_live() =>
            {
                let same = self
                    .streamed
                    .take()
                    .filter(|(message, _)| *message == delta.message_id);
                let mut shown = same.map_or_else(String::new, |(_, shown)| shown);
                self.print_text(&delta.delta_content)?;
                shown.push_str(&delta.delta_content);
                self.streamed = Some((delta.message_id.clone(), shown));
            }
            Body::Ephemeral(Ephemeral::Usage(usage)) => self.usage.add(usage),
            Body::Ephemeral(Ephemeral::SessionIdle(idle)) => {
                self.aborted |= idle.aborted == Some(true);
                self.tell_abort()?;
                if let Some(line) = std::mem::take(&mut self.usage).line() {
                    self.note(Style::Dim, &line)?;
                }
            }
            Body::Ephemeral(Ephemeral::TurnRetry(retry)) => {
                let why = retry.reason.as_deref().unwrap_or("the model call failed");
                let what = match self.streamed.take() {
                    Some(_) => "the answer above broke off and begins again",
                    None => "trying again",
                };
                self.note(Style::Dim, &format!("{what}: {why}"))?;
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

    /// Notes whose message the session answers from this event on.
    fn note_whose(&mut self, body: &Body) -> anyhow::Result<()> {
        let Some(own) = &mut self.answers else {
            return Ok(());
        };
        let was_other = own.is_other();
        own.note(body);
        if own.is_other() && !was_other {
            self.tell_abort()?;
            self.note(
                Style::Dim,
                "the session answers a message of another client now, which is not shown here",
            )?;
        }
        Ok(())
    }

    /// Returns whether the session answers another message now.
    fn is_other(&self) -> bool {
        self.answers.as_ref().is_some_and(OwnRun::is_other)
    }

    /// Says that the turn was aborted, once.
    fn tell_abort(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.aborted) {
            self.note(Style::Bad, "aborted")?;
        }
        Ok(())
    }

    fn show_durable(&mut self, event: &Durable) -> anyhow::Result<()> {
        match event {
            Durable::Abort(_) => {
                self.aborted = !self.is_other();
                Ok(())
            }
            Durable::UserMessage(message) if message.is_autopilot_continuation == Some(true) => {
                self.note(
                    Style::Dim,
                    "the task is not complete; the agent is told to go on",
                )
            }
            Durable::UserMessage(message) if self.users == UserMessages::Shown => {
                let typed_here = message.message_id.as_ref();
                if typed_here.is_some_and(|id| self.hidden.remove(id)) {
                    return Ok(());
                }
                self.note(Style::Bold, &format!("> {}", message.content))
            }
            Durable::AssistantMessage(message) if self.holds() => {
                let earlier = self.held.replace(message.content.clone());
                self.note_earlier(earlier)
            }
            Durable::AssistantMessage(message) => {
                let streamed = self.streamed.take();
                let shown = streamed.filter(|(streamed, _)| *streamed == message.message_id);
                let shown = shown.map_or_else(String::new, |(_, shown)| shown);
                if let Some(rest) = message.content.strip_prefix(&shown) {
                    self.print_text(rest)?;
                } else {
                    // Deltas were dropped; the event has the whole text.
                    self.note(
                        Style::Dim,
                        "parts of the answer above are missing; this is all of it:",
                    )?;
                    self.print_text(&message.content)?;
                }
                self.end_line()
            }
            // The event that follows its result says what came of it.
            Durable::ToolStart(start) if start.tool_name == TASK_COMPLETE => {
                self.completions.insert(start.tool_call_id.clone());
                Ok(())
            }
            Durable::ToolComplete(done) if self.completions.remove(&done.tool_call_id) => Ok(()),
            Durable::TaskComplete(said) => self.show_task(said),
            Durable::AutopilotStopped(stopped) => match &stopped.message {
                Some(message) => self.note(Style::Bad, message),
                None => Ok(()),
            },
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
            Durable::ModeChanged(change) => self.note(Style::Dim, mode_line(change.new_mode)),
            Durable::SessionInfo(info) => self.note(Style::Dim, &info.message),
            _ => Ok(()),
        }
    }

    /// Whether only the answer goes to stdout, and it is not known yet which message that is.
    fn holds(&self) -> bool {
        self.answers.is_some() && (self.only_problems || !self.terminal.is_live())
    }

    /// Shows a message of the agent that was not its answer.
    fn note_earlier(&mut self, message: Option<String>) -> anyhow::Result<()> {
        match message.filter(|message| !message.trim().is_empty()) {
            Some(message) => self.note(Style::Dim, message.trim_end()),
            None => Ok(()),
        }
    }

    fn end_run(&mut self, answer: Option<&str>) -> anyhow::Result<()> {
        let held = self.held.take();
        match answer {
            Some(answer) if self.holds() => {
                self.print_text(answer)?;
                self.end_line()
            }
            Some(_) => Ok(()),
            None => self.note_earlier(held),
        }
    }

    /// Shows what the model says about its task.
    fn show_task(&mut self, said: &TaskComplete) -> anyhow::Result<()> {
        let summary = said.summary.as_deref().unwrap_or_default();
        let reason = said.reason.as_deref().unwrap_or_default();
        match said.outcome {
            Some(CompletionOutcome::Blocked) => {
                self.note(Style::Bad, &format!("blocked: {reason}\n{summary}"))
            }
            _ if said.success == Some(false) => {
                self.note(Style::Dim, &format!("not complete yet: {reason}"))
            }
            Some(_) | None => self.note(Style::Good, &format!("task complete: {summary}")),
        }
    }

    fn show_result(&mut self, done: &ToolComplete) -> anyhow::Result<()> {
        self.calls.remove(&done.tool_call_id);
        let (style, text) = match (&done.error, &done.result) {
            (Some(error), _) => (Style::Bad, error.message.as_str()),
            (None, Some(result)) => (Style::Dim, result.content.as_str()),
            (None, None) => (Style::Dim, ""),
        };
        let text = for_person(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(OUTPUT_LINES) {
            // Why a call did not run, and how to go on, is told in full.
            let line = match &done.error {
                Some(error) if error.code.as_deref() == Some("denied") => (*line).to_owned(),
                _ => shorten(line),
            };
            self.note(style, &format!("  {line}"))?;
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

    fn print_text(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.terminal.print(&sanitize(text))?;
        self.line_open = !text.ends_with('\n');
        self.flush_notices();
        Ok(())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.line_open) {
            self.terminal.print("\n")?;
        }
        self.flush_notices();
        Ok(())
    }

    /// Shows a line about a sub-agent after the current line of the answer. Breaks that line if too
    /// many are waiting.
    fn agent_notice(&mut self, style: Style, line: String) -> anyhow::Result<()> {
        self.pending_notices.push((style, line));
        if self.pending_notices.len() > PENDING_NOTICES {
            self.end_line()?;
        }
        self.flush_notices();
        Ok(())
    }

    fn flush_notices(&mut self) {
        if self.line_open {
            return;
        }
        for (style, line) in self.pending_notices.drain(..) {
            let line = self.terminal.styled(style, &for_person(&line));
            self.terminal.notice(&line);
        }
    }

    fn note(&mut self, style: Style, line: &str) -> anyhow::Result<()> {
        if self.only_problems && style != Style::Bad {
            return Ok(());
        }
        self.end_line()?;
        self.terminal
            .notice(&self.terminal.styled(style, &for_person(line)));
        Ok(())
    }
}

/// Says what a mode means.
fn mode_line(mode: Mode) -> &'static str {
    match mode {
        Mode::Interactive => "interactive mode",
        Mode::Plan => "plan mode: nothing is changed until a plan is approved",
        Mode::Autopilot => "autopilot mode: the agent decides by itself and goes on",
    }
}

/// Returns whether a turn begins with this event, or a message that does not join one.
fn begins_work(body: &Body) -> bool {
    match body {
        Body::Durable(Durable::UserMessage(message)) => {
            message.delivery != Some(Delivered::Steering)
        }
        Body::Durable(Durable::TurnStart(_)) => true,
        Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => false,
    }
}

/// Returns whether an event is part of the work on a message.
fn is_work(body: &Body) -> bool {
    matches!(
        body,
        Body::Durable(
            Durable::AssistantMessage(_) | Durable::ToolStart(_) | Durable::ToolComplete(_)
        ) | Body::Ephemeral(
            Ephemeral::MessageDelta(_) | Ephemeral::Usage(_) | Ephemeral::TurnRetry(_)
        )
    )
}

/// Describes a tool call in one line: its name and its most informative argument.
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
        (Some(telling), _) => shorten(&format!(
            "{name}  {}",
            for_person(telling).replace('\n', " ⏎ ")
        )),
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

/// Describes an event in one line.
pub(crate) fn line(event: &Event) -> String {
    let text = match &event.body {
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
        Body::Durable(Durable::TaskComplete(said)) => {
            let parts = [said.summary.as_deref(), said.reason.as_deref()];
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        Body::Durable(Durable::AutopilotStopped(stopped)) => stopped.reason.name().to_owned(),
        Body::Durable(Durable::SessionStart(start)) => {
            let context = start.context.as_ref();
            context.map_or_else(String::new, |context| context.cwd.clone())
        }
        Body::Durable(Durable::ModelChange(change)) => change.new_model.clone(),
        Body::Durable(Durable::ModeChanged(change)) => mode_line(change.new_mode).to_owned(),
        body => match &event.head.agent_id {
            Some(agent) => agents::lifecycle_line(agent, body)
                .map(|(_, line)| line)
                .unwrap_or_default(),
            None => String::new(),
        },
    };
    let text = match &event.head.agent_id {
        Some(agent) if !text.is_empty() && !event.body.kind().starts_with("subagent.") => {
            format!("[{agent}] {text}")
        }
        _ => text,
    };
    let text = shorten(&for_person(&text).replace('\n', " ⏎ "));
    let line = format!("{}  {:<26} {text}", event.head.timestamp, event.body.kind());
    line.trim_end().to_owned()
}
