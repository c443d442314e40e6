//! The work that is shown until its end: the turn of a message, what a command has begun, or the commands
//! in the background.

use loopd_sdk::{BegunWork, Event, KeepsWaiting, Session, Stopped, Turn, UntilIdle};

use super::background::Background;
use super::watch::Answers;
use crate::app::App;
use crate::render::{Renderer, UserMessages};

use super::Shows;

/// The work that is shown until its end.
pub(crate) enum Work {
    Message(Turn),
    /// A command that has run, and what goes on because of it.
    Command {
        begun: Option<BegunWork>,
        until_idle: UntilIdle,
    },
    /// The commands that a run has left in the background.
    Background(Box<Background>),
}

/// What became of work that was to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// It ends soon, and its events say so.
    Ends,
    /// The answer is there already. What goes on ends with the session.
    WithSession,
    /// A turn of another client runs, and goes on.
    Spared,
}

impl Work {
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match self {
            Self::Message(turn) => turn.next().await,
            Self::Command { until_idle, .. } => until_idle.next().await,
            Self::Background(wait) => wait.next().await,
        }
    }

    /// Prepares a renderer for it.
    pub(super) fn renderer(&self, app: &App, session: &Session, answers: Answers) -> Renderer {
        let json = app.options.json;
        let mut renderer = Renderer::new(&app.terminal, json, UserMessages::Hidden, session.id());
        let Answers::Own(shows) = answers else {
            return renderer;
        };
        match self {
            Self::Message(turn) => renderer.only_answers_to(turn.message_id().clone()),
            Self::Command { .. } | Self::Background(_) => renderer.only_last_answer(),
        }
        if shows == Shows::Answer {
            renderer.only_problems();
        }
        renderer
    }

    /// Stops the turn of our own message, or takes the message out of the queue, or stops what the
    /// command has begun. A turn of another client goes on.
    pub(super) async fn stop(&self, app: &App, session: &Session) -> anyhow::Result<Stopping> {
        let turn = match self {
            Self::Message(turn) => turn,
            Self::Command { begun, .. } => {
                match begun {
                    Some(BegunWork::Fleet) => drop(session.stop_fleet().await?),
                    Some(BegunWork::Agent) | None => {}
                }
                session.abort().await?;
                return Ok(Stopping::Ends);
            }
            Self::Background(_) => return Ok(Stopping::WithSession),
        };
        let stopped = session.stop_message(turn.message_id(), KeepsWaiting::No);
        match stopped.await? {
            Stopped::Interrupted { .. } | Stopped::Removed => Ok(Stopping::Ends),
            // Our turn has ended, and no other one runs: agents work in the background.
            Stopped::Spared { running: None, .. } => Ok(Stopping::WithSession),
            Stopped::Spared { .. } => {
                app.terminal.notice(&format!(
                    "the running turn belongs to another client and goes on; to stop it: loop abort {}",
                    session.id()
                ));
                Ok(Stopping::Spared)
            }
        }
    }
}
