//! Writes events as text.

use std::collections::{HashMap, HashSet};

use loopd_sdk::proto::event::turn::Delivered;
use loopd_sdk::proto::id::ToolCallId;
use loopd_sdk::{
    AgentId, Body, Durable, Ephemeral, Event, LimitKind, MessageId, SessionId, TodoList,
};

use super::line::{CLEARED, compaction_line, hook_line, mode_line};
use super::own_run::OwnRun;
use super::{UserMessages, agents};
use crate::limits;
use crate::terminal::{Style, Terminal};
use crate::usage::UsageTotal;

/// Which messages of the agent are printed as the answer.
enum Answers {
    All,
    /// Those to this message: other clients may have sent others.
    To(OwnRun),
    /// The last one before the session is idle.
    Last,
}

/// What is said of a turn that ended early although nobody aborted it.
const INTERRUPTED: &str = "interrupted: the session or its daemon stopped";
const ABORTED: &str = "aborted";

/// Writes events as text.
pub(crate) struct Text {
    session: SessionId,
    pub(super) terminal: Terminal,
    users: UserMessages,
    hidden: HashSet<MessageId>,
    answers: Answers,
    /// What is to be said of the turn that was aborted.
    aborted: Option<&'static str>,
    /// Whether somebody has aborted what the session did since it was last idle.
    was_aborted: bool,
    /// Whether a turn has begun since the session was last idle.
    is_at_work: bool,
    /// The message that is being streamed to a screen, and what of it is shown.
    streamed: Option<(MessageId, String)>,
    /// Whether the answer stopped in the middle of a line.
    pub(super) line_open: bool,
    /// The lines about sub-agents that wait for the end of the line.
    pub(super) pending_notices: Vec<(Style, String)>,
    /// The agent of the session if that is a sub-agent's: there, its messages are the answer.
    own: Option<AgentId>,
    /// The last message of the agent, where only the answer goes to stdout: a later message shows
    /// that it is not the answer.
    held: Option<String>,
    /// Whether only errors, warnings and the answer are shown.
    pub(super) only_problems: bool,
    /// The open calls that events tell of, with the names of their tools.
    pub(super) told_by_events: HashMap<ToolCallId, &'static str>,
    /// The todo list, as it was shown last.
    pub(super) todos: TodoList,
    usage: UsageTotal,
}

impl Text {
    pub(super) fn new(terminal: &Terminal, users: UserMessages, session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            terminal: terminal.clone(),
            users,
            hidden: HashSet::new(),
            answers: Answers::All,
            aborted: None,
            was_aborted: false,
            is_at_work: false,
            streamed: None,
            line_open: false,
            pending_notices: Vec::new(),
            own: None,
            held: None,
            only_problems: false,
            told_by_events: HashMap::new(),
            todos: TodoList::default(),
            usage: UsageTotal::default(),
        }
    }

    pub(super) fn only_answers_to(&mut self, run: OwnRun) {
        self.answers = Answers::To(run);
    }

    pub(super) fn only_last_answer(&mut self) {
        self.answers = Answers::Last;
    }

    pub(super) fn hide_message(&mut self, id: MessageId) {
        self.hidden.insert(id);
    }

    pub(super) fn show(&mut self, event: &Event) -> anyhow::Result<()> {
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
            self.is_at_work = true;
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
                if idle.aborted == Some(true) && std::mem::take(&mut self.is_at_work) {
                    let said = if self.was_aborted {
                        ABORTED
                    } else {
                        INTERRUPTED
                    };
                    self.aborted.get_or_insert(said);
                }
                self.is_at_work = false;
                self.was_aborted = false;
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
            // A line that is only of the moment is no news to a file or a pipe.
            Body::Ephemeral(Ephemeral::HookProgress(progress))
                if progress.temporary != Some(true) || self.terminal.is_live() =>
            {
                self.note(Style::Dim, &hook_line(&progress.message))?;
            }
            Body::Ephemeral(Ephemeral::FleetProgress(progress)) => self.show_fleet(progress)?,
            Body::Ephemeral(Ephemeral::AutopilotChanged(change)) => {
                let now = if change.paused {
                    "is paused"
                } else {
                    "goes on"
                };
                self.note(Style::Dim, &format!("the autopilot {now}"))?;
            }
            Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
        Ok(())
    }

    /// Notes whose message the session answers from this event on.
    fn note_whose(&mut self, body: &Body) -> anyhow::Result<()> {
        let Answers::To(own) = &mut self.answers else {
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
        matches!(&self.answers, Answers::To(own) if own.is_other())
    }

    /// Says that the turn was aborted, once.
    pub(super) fn tell_abort(&mut self) -> anyhow::Result<()> {
        if let Some(said) = self.aborted.take() {
            self.note(Style::Bad, said)?;
        }
        Ok(())
    }

    /// Ends what was shown so far: what comes next belongs to no turn before it.
    pub(super) fn end_turn(&mut self) -> anyhow::Result<()> {
        self.is_at_work = false;
        self.tell_abort()
    }

    fn show_durable(&mut self, event: &Durable) -> anyhow::Result<()> {
        match event {
            Durable::Abort(_) => {
                self.was_aborted = true;
                self.aborted = (!self.is_other()).then_some(ABORTED);
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
            Durable::TaskComplete(said) => self.show_task(said),
            Durable::AutopilotStopped(stopped) => match &stopped.message {
                Some(message) => self.note(Style::Bad, message),
                None => Ok(()),
            },
            Durable::ToolStart(start) => self.show_call(start),
            Durable::ToolComplete(done) => self.show_result(done),
            Durable::SessionError(failure) => {
                let code = failure.error_code.as_deref();
                let message = match LimitKind::of_error(&failure.error_type, code) {
                    Some(kind) => limits::reached(kind, &failure.message, &self.session),
                    None => failure.message.clone(),
                };
                self.note(Style::Bad, &format!("error: {message}"))
            }
            Durable::SessionWarning(warning) => self.note(Style::Bad, &warning.message),
            Durable::ModeChanged(change) => self.note(Style::Dim, mode_line(change.new_mode)),
            Durable::SessionInfo(info) => self.note(Style::Dim, &info.message),
            Durable::CompactionComplete(complete) => match compaction_line(complete) {
                Some(line) => self.note(Style::Dim, &line),
                None => Ok(()),
            },
            Durable::ContextCleared(_) => self.note(Style::Dim, CLEARED),
            Durable::TodosUpdated(list) => self.show_todos(list),
            _ => Ok(()),
        }
    }

    /// Whether only the answer goes to stdout, and it is not known yet which message that is.
    fn holds(&self) -> bool {
        let is_one = !matches!(self.answers, Answers::All);
        is_one && (self.only_problems || !self.terminal.is_live())
    }

    /// Shows a message of the agent that was not its answer.
    fn note_earlier(&mut self, message: Option<String>) -> anyhow::Result<()> {
        match message.filter(|message| !message.trim().is_empty()) {
            Some(message) => self.note(Style::Dim, message.trim_end()),
            None => Ok(()),
        }
    }

    /// Ends a run with this answer; a run that failed has none.
    pub(super) fn end_run(&mut self, answer: Option<&str>) -> anyhow::Result<()> {
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

    /// Ends the work of the session: its answer is the last message of the agent.
    pub(super) fn end_work(&mut self, summary: Option<&str>) -> anyhow::Result<()> {
        let last = self.held.clone().filter(|last| !last.trim().is_empty());
        let last = last.or_else(|| summary.map(str::to_owned));
        let last = last.unwrap_or_default();
        self.end_run(Some(&last))
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
            Durable::AssistantMessage(_)
                | Durable::ToolStart(_)
                | Durable::ToolComplete(_)
                | Durable::TaskComplete(_)
                | Durable::AutopilotStopped(_)
        ) | Body::Ephemeral(
            Ephemeral::MessageDelta(_)
                | Ephemeral::Usage(_)
                | Ephemeral::TurnRetry(_)
                | Ephemeral::HookProgress(_)
        )
    )
}
