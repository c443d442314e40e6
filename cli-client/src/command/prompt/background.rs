//! The background commands that a run leaves behind: it has ended when they have.

use loopd_sdk::proto::event::task::ShellAttachment;
use loopd_sdk::{
    Body, Ephemeral, Event, Events, Session, ShellInfo, TaskInfo, TaskStatus, UntilIdle,
};

/// The wait for the background commands of a session, and for what the agent makes of their end.
pub(crate) struct Background {
    session: Session,
    stage: Stage,
    /// The event that is returned next. It is kept here, because a wait may be cancelled.
    next: Option<Event>,
}

enum Stage {
    /// Commands run.
    Commands(Option<Events>),
    /// None runs any more, and the agent goes on until the session is idle.
    Rest(UntilIdle),
}

impl Background {
    /// Begins the wait; `None` if no command runs. Also returns what runs.
    pub(crate) async fn begin(session: &Session) -> anyhow::Result<Option<(Self, Vec<ShellInfo>)>> {
        // Before the question, so that no end is missed.
        let commands = session.events();
        let running = running(session).await?;
        if running.is_empty() {
            return Ok(None);
        }
        let wait = Self {
            session: session.clone(),
            stage: Stage::Commands(Some(commands)),
            next: None,
        };
        Ok(Some((wait, running)))
    }

    /// Returns the next event; `None` when the commands have ended and the session is idle.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let events = match &mut self.stage {
            Stage::Rest(rest) => return rest.next().await,
            Stage::Commands(events) => events,
        };
        if self.next.is_none() {
            self.next = Some(events.as_mut()?.next().await?);
        }
        let changes = |event: &Event| {
            matches!(
                event.body,
                Body::Ephemeral(Ephemeral::BackgroundTasksChanged(_) | Ephemeral::SessionIdle(_))
            )
        };
        // A daemon that does not answer ends the stream of events, too.
        if self.next.as_ref().is_some_and(changes)
            && running(&self.session).await.is_ok_and(|it| it.is_empty())
            && let Some(events) = events.take()
        {
            self.stage = Stage::Rest(self.session.until_idle(events));
        }
        self.next.take()
    }
}

/// Returns the commands that belong to the session and run. A shell that waits for input runs none,
/// and a command that was detached is meant to outlast the session.
async fn running(session: &Session) -> anyhow::Result<Vec<ShellInfo>> {
    let tasks = session.tasks().await?.into_iter();
    let shells = tasks.filter_map(|node| match node.task {
        TaskInfo::Shell(shell) => Some(shell),
        TaskInfo::Agent(_) => None,
    });
    let attached = ShellAttachment::Attached;
    let running =
        shells.filter(|it| it.status == TaskStatus::Running && it.attachment_mode == attached);
    Ok(running.collect())
}
