//! The autopilot: whether the model has the tool `task_complete`, whether it is told to go on when
//! it stops, and why it is not told so any more.
//!
//! One function decides all three from one state, [`Judgement::of`]. The list of tools, the message
//! that tells the model to go on, and the event that says why the autopilot stopped all read it. So
//! a switch of the mode in the middle of a turn cannot leave one of them without the others.

use loopd_proto::event::autopilot::{
    AutopilotStopped, CompletionOutcome, StopReason, TaskComplete,
};
use loopd_proto::event::fact::{LoopEnded, LoopOutcome};
use loopd_proto::id::MessageId;
use loopd_proto::session::{AutopilotOptions, Mode};

use crate::state::State;

/// The tool with which the model says that the task is complete, or that it is blocked.
pub const TASK_COMPLETE: &str = "task_complete";

/// How many times in a row the model is told to go on without calling a tool.
const MOST_EMPTY: u64 = 3;

/// How many calls of `task_complete` in a row may fail.
const MOST_REFUSED: u64 = 3;

/// What the log says about the autopilot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Autopilot {
    pub paused: bool,
    /// The message that the agent works on; `None` if it is not to go on with any.
    pub request: Option<MessageId>,
    /// The message whose run a limit of the session ended. Its work goes on when more is granted.
    pub limited: Option<MessageId>,
    /// How often the model was told to go on since the last message of a person.
    pub continues: u64,
    /// How many of these, the last ones in a row, led to no tool call.
    pub empty: u64,
    /// How often the model was told to go on in the whole session. Numbers the messages.
    pub all: u64,
    /// How many calls of `task_complete`, the last ones in a row, failed.
    pub refused: u64,
    /// The last call of `task_complete` since the last message of a person.
    pub completion: Option<TaskComplete>,
    /// Why the autopilot stopped last.
    pub stopped: Option<AutopilotStopped>,
}

impl Autopilot {
    /// A message of a person begins a run, or joins the run of the message `origin`.
    pub(crate) fn begin(&mut self, message: &MessageId, origin: Option<&MessageId>) {
        self.request = Some(origin.unwrap_or(message).clone());
        self.limited = None;
        (self.continues, self.empty, self.refused) = (0, 0, 0);
        self.completion = None;
    }

    pub(crate) fn nudged(&mut self) {
        self.continues += 1;
        self.empty += 1;
        self.all += 1;
    }

    /// The model answered with calls of these tools.
    pub(crate) fn called<'a>(&mut self, mut tools: impl Iterator<Item = &'a str>) {
        let first = tools.next();
        if first.is_some() {
            self.empty = 0;
        }
        if first != Some(TASK_COMPLETE) && !tools.any(|tool| tool == TASK_COMPLETE) {
            self.refused = 0;
        }
    }

    /// A call of this tool failed.
    pub(crate) fn failed(&mut self, tool: &str) {
        if tool == TASK_COMPLETE {
            self.refused += 1;
        }
    }

    /// Whether the model tries in vain to mark the task.
    pub(crate) fn cannot_complete(&self) -> bool {
        self.refused >= MOST_REFUSED
    }

    pub(crate) fn completed(&mut self, complete: &TaskComplete) {
        self.refused = 0;
        self.completion = Some(complete.clone());
    }

    pub(crate) fn stop(&mut self, stopped: &AutopilotStopped) {
        self.request = None;
        self.stopped = Some(stopped.clone());
    }

    /// A run ended. Only a run that ended by itself, or one that can be continued, goes on later.
    pub(crate) fn run_ended(&mut self, ended: &LoopEnded, mode: Mode) {
        let goes_on = ended.outcome == LoopOutcome::Done && mode == Mode::Autopilot;
        if ended.limited {
            self.limited = self.request.take();
        } else if !goes_on && !ended.resumable {
            self.request = None;
        }
    }

    /// The run that a limit ended goes on, because more was granted.
    pub(crate) fn limit_lifted(&mut self) {
        if let Some(message) = self.limited.take() {
            self.request = Some(message);
        }
    }

    /// The session switched to this mode.
    pub(crate) fn mode_changed(&mut self, mode: Mode, busy: bool) {
        self.paused = false;
        if mode != Mode::Autopilot && !busy {
            self.abandon();
        }
    }

    /// The work does not go on by itself, for example because a client resumed the session and does
    /// not want that.
    pub(crate) fn abandon(&mut self) {
        (self.request, self.limited) = (None, None);
    }

    /// Returns how the task ended, if it did.
    pub(crate) fn task_end(&self) -> Option<StopReason> {
        let complete = self.completion.as_ref()?;
        match complete.outcome {
            Some(CompletionOutcome::Blocked) => Some(StopReason::Blocked),
            Some(CompletionOutcome::Continue) => None,
            Some(CompletionOutcome::Completed) | None => {
                (complete.success != Some(false)).then_some(StopReason::TaskComplete)
            }
        }
    }
}

/// Who the agent of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRole {
    Main,
    /// A copy of its parent, with the same tools.
    Fork,
    Subagent,
}

impl AgentRole {
    fn of(state: &State) -> Self {
        match &state.subagent {
            None => Self::Main,
            Some(own) if own.profile.fork => Self::Fork,
            Some(_) => Self::Subagent,
        }
    }
}

/// What the loop does, as far as the autopilot is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// A run is under way, or there was none.
    No,
    /// The run ended by itself, and other work goes on: messages that wait, or sub-agents.
    Busy,
    /// The run ended by itself, and there is nothing else to do.
    Quiet,
    /// A person rejected a tool call.
    Rejected,
    Failed,
    /// A limit of the session is reached.
    Limited,
    Aborted,
}

/// Everything that the autopilot depends on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub mode: Mode,
    pub role: AgentRole,
    pub options: AutopilotOptions,
    pub progress: &'a Autopilot,
    pub run: RunEnd,
    /// Whether the filters of the session let the built-in tool `task_complete` through.
    pub has_tool: bool,
    /// Whether a client is attached.
    pub attended: bool,
}

impl<'a> Situation<'a> {
    /// Returns the situation of a session whose loop has not ended.
    pub fn of(state: &'a State) -> Self {
        Self {
            mode: state.mode,
            role: AgentRole::of(state),
            options: state.options.autopilot.unwrap_or_default(),
            progress: &state.autopilot,
            run: RunEnd::No,
            has_tool: true,
            attended: true,
        }
    }
}

/// What follows from a situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// Whether the list of tools has `task_complete`.
    pub offers_tool: bool,
    /// Whether a call of it can complete the task.
    pub takes_completion: bool,
    pub next: Continuation,
}

/// What the autopilot does when the loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    Nothing,
    /// The model is told to go on.
    Nudge,
    Stop(StopReason, StopDetail),
    /// The model would be told to go on, but the session does not let it have the tool.
    NoTool,
}

/// What the reason does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopDetail {
    None,
    /// So many times the model was told to go on.
    Continues(u64),
    /// So many times in a row it called no tool.
    Empty(u64),
    /// So many calls of `task_complete` in a row failed.
    Refused(u64),
    /// A limit of the session is reached.
    Limit,
}

impl Judgement {
    pub fn of(situation: &Situation<'_>) -> Self {
        let is_on = situation.mode == Mode::Autopilot;
        let takes_completion = is_on && situation.role == AgentRole::Main;
        Self {
            // A request of a fork begins with the same bytes as those of its parent.
            offers_tool: takes_completion || is_on && situation.role == AgentRole::Fork,
            takes_completion,
            next: if takes_completion {
                continuation(situation)
            } else {
                Continuation::Nothing
            },
        }
    }
}

fn continuation(situation: &Situation<'_>) -> Continuation {
    let (progress, options) = (situation.progress, situation.options);
    let stop = |reason| Continuation::Stop(reason, StopDetail::None);
    if progress.request.is_none() {
        return Continuation::Nothing;
    }
    match (situation.run, progress.task_end()) {
        (RunEnd::Busy | RunEnd::Quiet, None) if progress.cannot_complete() => {
            let detail = StopDetail::Refused(progress.refused);
            return Continuation::Stop(StopReason::CapReached, detail);
        }
        (RunEnd::No, _) | (RunEnd::Busy, None) => return Continuation::Nothing,
        (RunEnd::Aborted, _) => return stop(StopReason::Aborted),
        (RunEnd::Failed, _) => return stop(StopReason::Error),
        (RunEnd::Limited, _) => {
            return Continuation::Stop(StopReason::Error, StopDetail::Limit);
        }
        (RunEnd::Busy | RunEnd::Quiet | RunEnd::Rejected, Some(reason)) => return stop(reason),
        (RunEnd::Rejected, None) => return stop(StopReason::Rejected),
        (RunEnd::Quiet, None) => {}
    }
    if !options.continues() || progress.paused {
        Continuation::Nothing
    } else if !situation.has_tool {
        Continuation::NoTool
    } else if progress.continues >= options.most_continues() {
        let detail = StopDetail::Continues(progress.continues);
        Continuation::Stop(StopReason::CapReached, detail)
    } else if progress.empty >= MOST_EMPTY {
        let detail = StopDetail::Empty(progress.empty);
        Continuation::Stop(StopReason::CapReached, detail)
    } else if situation.attended || options.goes_on_alone() {
        Continuation::Nudge
    } else {
        Continuation::Nothing
    }
}

#[cfg(test)]
mod tests;
