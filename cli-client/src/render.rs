//! Shows events to a person: the answer on stdout, everything else on stderr.

mod agents;
mod line;
mod output;
mod own_run;
mod progress;
mod text;
mod tools;

use loopd_sdk::{Event, MessageId, SessionId};

pub(crate) use self::own_run::OwnRun;
use self::text::Text;
use crate::terminal::Terminal;

pub(crate) use agents::lifecycle_line;
pub(crate) use line::{CLEARED, compaction_line, hook_line, line, mode_line, summary};
pub(crate) use progress::fleet_line;

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
    pub(crate) fn new(
        terminal: &Terminal,
        json: bool,
        users: UserMessages,
        session: &SessionId,
    ) -> Self {
        if json {
            return Self::Json {
                terminal: terminal.clone(),
                own: None,
            };
        }
        Self::Text(Text::new(terminal, users, session))
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
        let run = OwnRun::of(id);
        match self {
            Self::Json { own, .. } => *own = Some(run),
            Self::Text(text) => text.only_answers_to(run),
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

    /// Prints only the last message of the agent, when the session is idle.
    pub(crate) fn only_last_answer(&mut self) {
        if let Self::Text(text) = self {
            text.only_last_answer();
        }
    }

    /// Prints the last message of the agent, unless it was printed as it came. Without one, `summary` is
    /// the answer.
    pub(crate) fn end_work(&mut self, summary: Option<&str>) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Text(text) => text.end_work(summary),
        }
    }

    /// Says that the turn was aborted, if no event has said it since.
    pub(crate) fn end_turn(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Text(text) => text.end_turn(),
        }
    }

    /// Does not show this message of the user, because it was typed here.
    pub(crate) fn hide_message(&mut self, id: MessageId) {
        if let Self::Text(text) = self {
            text.hide_message(id);
        }
    }
}
