//! Turns the events of a session into finished lines, and keeps what the live region shows of them.

use loopd_sdk::proto::event::autopilot::{CompletionOutcome, TaskComplete};
use loopd_sdk::proto::event::turn::{AssistantMessage, Delivered, MessageDelta, UserMessage};
use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{
    AgentId, Body, Durable, Ephemeral, Event, LimitKind, MessageId, Mode, SessionId, TodoList,
    TodoStatus,
};
use tokio::time::Instant;

use super::calls::Calls;
use super::markdown::MarkdownStream;
use super::styled::{Colour, Line, Look};
use crate::limits;
use crate::render::{CLEARED, compaction_line, fleet_line, hook_line, lifecycle_line, mode_line};
use crate::terminal::Style;
use crate::usage::UsageTotal;

const BAD: Look = Look::of(Colour::Red);
const GOOD: Look = Look::of(Colour::Green);
const OWN: Look = Look::of(Colour::Cyan).bold();

/// What is said of a turn that somebody stopped, and of one that ended early although nobody did.
const STOPPED: &str = "stopped";
const INTERRUPTED: &str = "interrupted: the session or its daemon stopped";

/// What is known of a session.
pub(super) struct Transcript {
    session: SessionId,
    /// Lines that are finished and wait to be printed.
    finished: Vec<Line>,
    /// The message that is being streamed, and what of it has come.
    stream: Option<(MessageId, String)>,
    markdown: MarkdownStream,
    pub(super) calls: Calls,
    /// The agent of the session if that is a sub-agent's: its messages are the answer there.
    own: Option<AgentId>,
    usage: UsageTotal,
    /// Since when the session works; `None` while it is idle.
    pub(super) working_since: Option<Instant>,
    /// Whether the model is thinking, and has said nothing of its answer yet.
    pub(super) is_thinking: bool,
    /// How many tokens the context has, and may have.
    pub(super) context: Option<(u64, u64)>,
    pub(super) todos: TodoList,
    pub(super) fleet: Option<String>,
    pub(super) model: Option<String>,
    pub(super) mode: Mode,
    /// Messages that were sent here and that the session has not taken yet.
    pub(super) waiting: Vec<(Option<MessageId>, String)>,
    aborted: Option<&'static str>,
    /// Whether somebody has aborted what the session did since it was last idle.
    was_aborted: bool,
    /// Whether the tasks may have changed since they were read.
    pub(super) tasks_changed: bool,
}

impl Transcript {
    pub(super) fn new(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            finished: Vec::new(),
            stream: None,
            markdown: MarkdownStream::default(),
            calls: Calls::default(),
            own: None,
            usage: UsageTotal::default(),
            working_since: None,
            is_thinking: false,
            context: None,
            todos: TodoList::default(),
            fleet: None,
            model: None,
            mode: Mode::Interactive,
            waiting: Vec::new(),
            aborted: None,
            was_aborted: false,
            tasks_changed: true,
        }
    }

    pub(super) fn is_working(&self) -> bool {
        self.working_since.is_some()
    }

    /// Takes the lines that wait to be printed.
    pub(super) fn take_finished(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.finished)
    }

    /// Leaves out all but the last lines that wait to be printed; returns how many went.
    pub(super) fn keep_last(&mut self, most: usize) -> usize {
        let surplus = self.finished.len().saturating_sub(most);
        self.finished.drain(..surplus);
        surplus
    }

    /// Notes that nothing runs.
    pub(super) fn rest(&mut self) {
        self.working_since = None;
        self.tell_abort();
        self.calls.forget_running();
    }

    /// Returns the block of the answer that is not finished.
    pub(super) fn unfinished(&self, columns: usize) -> Vec<Line> {
        self.markdown.unfinished(columns)
    }

    pub(super) fn add(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.finished.extend(lines);
    }

    /// Adds a text of one or more lines.
    pub(super) fn note(&mut self, look: Look, text: &str) {
        let text = for_person(text);
        let lines = text.trim_end().lines();
        self.finished.extend(lines.map(|line| Line::of(look, line)));
    }

    pub(super) fn error(&mut self, text: &str) {
        self.note(BAD, text);
    }

    /// Separates what comes next from what stands above it.
    fn gap(&mut self) {
        self.finished.push(Line::default());
    }

    pub(super) fn show(&mut self, event: &Event, columns: usize) {
        if let Body::Durable(Durable::SessionStart(_)) = &event.body {
            self.own.clone_from(&event.head.agent_id);
        }
        if let Some(agent) = event.head.agent_id.as_ref()
            && self.own.as_ref() != Some(agent)
        {
            self.show_agent(agent, &event.body);
            return;
        }
        self.note_work(&event.body);
        match &event.body {
            Body::Durable(durable) => self.show_durable(durable, event, columns),
            Body::Ephemeral(ephemeral) => self.show_ephemeral(ephemeral, columns),
            Body::Unknown { .. } => {}
        }
    }

    fn show_agent(&mut self, agent: &AgentId, body: &Body) {
        self.tasks_changed = true;
        if let Body::Ephemeral(Ephemeral::Usage(usage)) = body {
            self.usage.add_of_agent(usage);
        }
        if let Some((style, line)) = lifecycle_line(agent, body) {
            self.note(look(style), &line);
        }
    }

    fn note_work(&mut self, body: &Body) {
        let begins = match body {
            Body::Durable(Durable::UserMessage(message)) => {
                message.delivery != Some(Delivered::Steering)
            }
            Body::Durable(Durable::TurnStart(_)) => true,
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => false,
        };
        if begins {
            self.tell_abort();
            self.working_since.get_or_insert_with(Instant::now);
            self.is_thinking = true;
        }
    }

    fn tell_abort(&mut self) {
        if let Some(said) = self.aborted.take() {
            self.error(said);
        }
    }

    fn show_durable(&mut self, event: &Durable, whole: &Event, columns: usize) {
        match event {
            Durable::Abort(_) => {
                self.end_stream(columns);
                self.aborted = Some(STOPPED);
                self.was_aborted = true;
            }
            Durable::UserMessage(message) => self.show_user(message),
            Durable::AssistantMessage(message) => self.show_answer(message, columns),
            Durable::TurnStart(start) => {
                if let Some(model) = &start.model {
                    self.model = Some(model.clone());
                }
            }
            Durable::ToolStart(start) => self.calls.start(start, whole.head.timestamp),
            Durable::ToolComplete(done) => {
                let lines = self.calls.complete(done, whole.head.timestamp);
                self.finished.extend(lines);
                self.is_thinking = true;
            }
            Durable::TaskComplete(said) => self.show_task(said),
            Durable::AutopilotStopped(stopped) => {
                if let Some(message) = &stopped.message {
                    self.error(message);
                }
            }
            Durable::SessionError(failure) => {
                self.end_stream(columns);
                let code = failure.error_code.as_deref();
                let message = match LimitKind::of_error(&failure.error_type, code) {
                    Some(kind) => limits::reached(kind, &failure.message, &self.session),
                    None => failure.message.clone(),
                };
                self.error(&format!("error: {message}"));
            }
            Durable::SessionWarning(warning) => self.error(&warning.message),
            Durable::SessionInfo(info) => self.note(Look::DIM, &info.message),
            Durable::CompactionComplete(complete) => {
                if let Some(line) = compaction_line(complete) {
                    self.note(Look::DIM, &line);
                }
            }
            Durable::ContextCleared(_) => self.note(Look::DIM, CLEARED),
            Durable::ModeChanged(change) => {
                self.mode = change.new_mode;
                self.note(Look::DIM, mode_line(change.new_mode));
            }
            Durable::ModelChange(change) => self.model = Some(change.new_model.clone()),
            Durable::TodosUpdated(list) => self.show_todos(list.clone()),
            Durable::TaskStarted(_) | Durable::TaskPromoted(_) | Durable::TaskEnded(_) => {
                self.tasks_changed = true;
            }
            // The others are facts for machines, or an ephemeral event tells them.
            _ => {}
        }
    }

    fn show_ephemeral(&mut self, event: &Ephemeral, columns: usize) {
        match event {
            Ephemeral::MessageDelta(delta) => self.show_delta(delta, columns),
            Ephemeral::ReasoningDelta(_) => self.is_thinking = true,
            Ephemeral::Usage(usage) => self.usage.add(usage),
            Ephemeral::UsageInfo(info) => {
                self.context = Some((info.current_tokens, info.token_limit));
            }
            Ephemeral::SessionIdle(idle) => {
                self.end_stream(columns);
                let was_working = self.working_since.take().is_some();
                let was_aborted = std::mem::take(&mut self.was_aborted);
                if idle.aborted == Some(true) && was_working && !was_aborted {
                    self.aborted.get_or_insert(INTERRUPTED);
                }
                self.rest();
                self.tasks_changed = true;
                if let Some(line) = std::mem::take(&mut self.usage).line() {
                    self.note(Look::DIM, &line);
                }
            }
            Ephemeral::TurnRetry(retry) => {
                let why = retry.reason.as_deref().unwrap_or("the model call failed");
                let what = if self.stream.is_some() {
                    self.end_stream(columns);
                    "the answer above broke off and begins again"
                } else {
                    "trying again"
                };
                self.note(Look::DIM, &format!("{what}: {why}"));
            }
            Ephemeral::SessionInfo(info) => self.note(Look::DIM, &info.message),
            Ephemeral::SessionWarning(warning) => self.error(&warning.message),
            Ephemeral::SessionError(failure) => self.error(&failure.message),
            Ephemeral::HookProgress(progress) if progress.temporary != Some(true) => {
                self.note(Look::DIM, &hook_line(&progress.message));
            }
            Ephemeral::FleetProgress(progress) => {
                let line = fleet_line(progress);
                if progress.ended.is_some() {
                    self.fleet = None;
                    self.note(Look::DIM, &line);
                } else {
                    self.fleet = Some(line);
                }
            }
            Ephemeral::BackgroundTasksChanged(_) => self.tasks_changed = true,
            Ephemeral::ToolPartial(partial) => self.calls.partial(partial),
            Ephemeral::AutopilotChanged(change) => {
                let now = if change.paused {
                    "is paused"
                } else {
                    "goes on"
                };
                self.note(Look::DIM, &format!("the autopilot {now}"));
            }
            // The others change nothing that is shown here.
            _ => {}
        }
    }

    fn show_user(&mut self, message: &UserMessage) {
        if message.is_autopilot_continuation == Some(true) {
            let told = "the task is not complete; the agent is told to go on";
            self.note(Look::DIM, told);
            return;
        }
        let id = message.message_id.as_ref();
        let is_this = |(sent, text): &(Option<MessageId>, String)| match sent {
            Some(sent) => Some(sent) == id,
            // The reply with its id has not come yet.
            None => *text == message.content,
        };
        if let Some(at) = self.waiting.iter().position(is_this) {
            self.waiting.remove(at);
        }
        self.gap();
        let text = for_person(&message.content);
        for (number, line) in text.lines().enumerate() {
            let first = if number == 0 { "> " } else { "  " };
            self.finished
                .push(Line::of(OWN, line).indented(first, "  "));
        }
        self.gap();
    }

    fn show_delta(&mut self, delta: &MessageDelta, columns: usize) {
        let is_same = matches!(&self.stream, Some((id, _)) if *id == delta.message_id);
        if !is_same {
            self.end_stream(columns);
            self.gap();
            self.stream = Some((delta.message_id.clone(), String::new()));
        }
        if let Some((_, shown)) = &mut self.stream {
            shown.push_str(&delta.delta_content);
        }
        self.is_thinking = false;
        self.markdown.push(&delta.delta_content);
        let lines = self.markdown.take_finished(columns);
        self.finished.extend(lines);
    }

    fn show_answer(&mut self, message: &AssistantMessage, columns: usize) {
        let streamed = self.stream.take();
        let shown = streamed.filter(|(id, _)| *id == message.message_id);
        if shown.is_none() && !message.content.is_empty() {
            self.gap();
        }
        let shown = shown.map_or_else(String::new, |(_, shown)| shown);
        if let Some(rest) = message.content.strip_prefix(&shown) {
            self.markdown.push(rest);
        } else {
            self.end_stream(columns);
            let told = "parts of the answer above are missing; this is all of it:";
            self.note(Look::DIM, told);
            self.markdown.push(&message.content);
        }
        self.end_stream(columns);
    }

    /// Prints the rest of what was streamed.
    fn end_stream(&mut self, columns: usize) {
        self.stream = None;
        let lines = self.markdown.finish(columns);
        if !lines.is_empty() {
            self.finished.extend(lines);
            self.gap();
        }
    }

    fn show_task(&mut self, said: &TaskComplete) {
        let summary = said.summary.as_deref().unwrap_or_default();
        let reason = said.reason.as_deref().unwrap_or_default();
        match said.outcome {
            Some(CompletionOutcome::Blocked) => {
                self.error(&format!("blocked: {reason}\n{summary}"));
            }
            _ if said.success == Some(false) => {
                self.note(Look::DIM, &format!("not complete yet: {reason}"));
            }
            Some(_) | None => self.note(GOOD, &format!("task complete: {summary}")),
        }
    }

    fn show_todos(&mut self, list: TodoList) {
        let is_open = |list: &TodoList| {
            let open = |status| !matches!(status, TodoStatus::Completed | TodoStatus::Cancelled);
            list.todos.iter().any(|todo| open(todo.status))
        };
        if is_open(&self.todos) && !is_open(&list) {
            let done = list.todos.iter();
            let done = done.filter(|it| it.status == TodoStatus::Completed).count();
            self.note(Look::DIM, &format!("todos: all {done} done"));
        }
        self.todos = list;
    }
}

fn look(style: Style) -> Look {
    match style {
        Style::Dim => Look::DIM,
        Style::Bold => Look::BOLD,
        Style::Good => GOOD,
        Style::Bad => BAD,
    }
}
