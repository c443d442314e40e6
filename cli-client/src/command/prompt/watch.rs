//! Shows the work of a session until its end: the turn of a message, or what a slash command has begun.

use loopd_sdk::{
    BegunWork, Body, CUT_WARNINGS, CompletionOutcome, Durable, Error, Event, KeepsWaiting, Mode,
    Reply, Session, StopReason, Stopped, TaskComplete, Turn, TurnOutcome, UntilIdle,
};

use super::Shows;
use super::background::Background;
use super::ending::{answer, command_outcome, of_stop, outcome_of};
use super::run_limits::{Counts, WatchedLimits};
use crate::app::App;
use crate::outcome::Outcome;
use crate::render::{OwnRun, Renderer, UserMessages};
use crate::terminal::{Style, Terminated, sanitize};

/// Which answers are shown, if other clients send messages to the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Only the answer to what was said here: stdout is its result.
    Own(Shows),
    All,
}

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

impl Work {
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match self {
            Self::Message(turn) => turn.next().await,
            Self::Command { until_idle, .. } => until_idle.next().await,
            Self::Background(wait) => wait.next().await,
        }
    }

    /// Prepares a renderer for it.
    fn renderer(&self, app: &App, answers: Answers) -> Renderer {
        let mut renderer = Renderer::new(&app.terminal, app.options.json, UserMessages::Hidden);
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
    /// command has begun. A turn of another client goes on; then returns `false`.
    async fn stop(&self, app: &App, session: &Session) -> anyhow::Result<bool> {
        let turn = match self {
            Self::Message(turn) => turn,
            Self::Command { begun, .. } => {
                match begun {
                    Some(BegunWork::Fleet) => drop(session.stop_fleet().await?),
                    Some(BegunWork::Agent) | None => {}
                }
                session.abort().await?;
                return Ok(true);
            }
            // The answer is there; who does not wait for the commands leaves.
            Self::Background(_) => return Ok(false),
        };
        let stopped = session.stop_message(turn.message_id(), KeepsWaiting::No);
        match stopped.await? {
            Stopped::Interrupted { .. } | Stopped::Removed => Ok(true),
            Stopped::Spared { .. } => {
                app.terminal.notice(&format!(
                    "the running turn belongs to another client and goes on; to stop it: loop abort {}",
                    session.id()
                ));
                Ok(false)
            }
        }
    }
}

/// Shows the work until its end. Ctrl-C stops it and keeps the session.
pub(crate) async fn watch(
    app: &App,
    session: &Session,
    mut work: Work,
    answers: Answers,
) -> anyhow::Result<Outcome> {
    let mut watching = Watching {
        app,
        session,
        renderer: work.renderer(app, answers),
        limits: match (answers, &work) {
            (Answers::All, _) => WatchedLimits::default(),
            (
                Answers::Own(_),
                Work::Message(_)
                | Work::Command {
                    begun: Some(BegunWork::Agent | BegunWork::Fleet),
                    ..
                },
            ) => WatchedLimits::new(&app.options.run, Counts::TheDaemon),
            (Answers::Own(_), Work::Command { .. } | Work::Background(_)) => {
                WatchedLimits::new(&app.options.run, Counts::Here)
            }
        },
        signals: match answers {
            Answers::Own(_) => Some(Terminated::listen()?),
            Answers::All => None,
        },
        interrupted: false,
        was_shown: false,
        last: None,
        own: match (&work, answers) {
            (Work::Message(turn), Answers::Own(_)) => Some(OwnRun::of(turn.message_id().clone())),
            (Work::Message(_) | Work::Command { .. } | Work::Background(_), _) => None,
        },
        task: None,
        stopped: None,
        is_cut: false,
    };
    if let Some(outcome) = watching.follow(&mut work).await? {
        return Ok(outcome);
    }
    watching.renderer.end_turn()?;
    let (failed, outcome) = match work {
        Work::Message(turn) => {
            let mut finished = turn.finish();
            if let (Ok(reply), Answers::Own(_)) = (&mut finished, answers)
                && let Some(outcome) = watching.follow_background(reply).await?
            {
                return Ok(outcome);
            }
            watching.end_run(&finished)?;
            if matches!(&finished, Ok(reply) if answer(reply).trim().is_empty()) {
                app.terminal
                    .notice("loop: the agent ended without an answer");
            }
            let failed = finished.is_err();
            let is_idle = matches!(&finished, Ok(reply) if reply.outcome == TurnOutcome::Idle);
            let paused = watching.paused(answers, is_idle).await?;
            // Whoever has stopped it here knows why it has no answer.
            let known =
                watching.was_shown || watching.interrupted || watching.limits.stopped().is_some();
            let outcome = outcome_of(app, finished, known);
            (failed, paused.map_or(outcome, Ok))
        }
        Work::Command { begun, until_idle } => {
            let finished = until_idle.finish();
            let failed =
                finished.is_err() || watching.limits.stopped().is_some() || watching.interrupted;
            if failed {
                watching.renderer.end_run(None)?;
            } else {
                let task = watching.task.as_ref().filter(|_| begun.is_some());
                let summary = task.and_then(|task| task.summary.as_deref());
                watching
                    .renderer
                    .end_work(summary.map(sanitize).as_deref())?;
            }
            let ended_well = finished.is_ok();
            let outcome = command_outcome(app, session, begun, finished).await;
            let is_blocked = |task: &TaskComplete| task.outcome == Some(CompletionOutcome::Blocked);
            let outcome = match outcome {
                Ok(Outcome::Done)
                    if begun.is_some() && watching.task.as_ref().is_some_and(is_blocked) =>
                {
                    Ok(Outcome::Blocked)
                }
                Ok(Outcome::Done) if begun.is_some() => {
                    let known = watching.autopilot_outcome();
                    let paused = match known {
                        Some(_) => None,
                        None => watching.paused(answers, ended_well).await?,
                    };
                    Ok(known.or(paused).unwrap_or(Outcome::Done))
                }
                outcome => outcome,
            };
            (failed, outcome)
        }
        Work::Background(_) => (false, Ok(Outcome::Done)),
    };
    if watching.interrupted {
        let again = format!("the session is kept: loop resume {}", session.id());
        app.terminal
            .notice(&app.terminal.styled(Style::Dim, &again));
        return Ok(Outcome::Interrupted);
    }
    if let (Some(outcome), true) = (watching.limits.stopped(), failed) {
        app.terminal
            .notice(&watching.limits.words(outcome, session.id()));
        return Ok(outcome);
    }
    outcome
}

/// What is shown, and what may end it early.
struct Watching<'a> {
    app: &'a App,
    session: &'a Session,
    renderer: Renderer,
    limits: WatchedLimits,
    /// The signal that asks this process to end; a conversation has the usual handling.
    signals: Option<Terminated>,
    interrupted: bool,
    was_shown: bool,
    /// The last message of the agent, if it called no tool.
    last: Option<String>,
    /// Whose run an event belongs to, where other clients send messages to the same session.
    own: Option<OwnRun>,
    /// What the agent said last of its task.
    task: Option<TaskComplete>,
    /// Why the autopilot stopped last.
    stopped: Option<StopReason>,
    /// Whether the last message of the agent is not complete.
    is_cut: bool,
}

impl Watching<'_> {
    /// Shows the work until its last event. Returns the outcome if the wait ends earlier.
    async fn follow(&mut self, work: &mut Work) -> anyhow::Result<Option<Outcome>> {
        let app = self.app;
        loop {
            let event = tokio::select! {
                biased;
                () = interrupted(app, self.signals.as_mut()) => {
                    // A second signal does not wait for the daemon.
                    let again = std::mem::replace(&mut self.interrupted, true);
                    if again || !work.stop(app, self.session).await? {
                        return Ok(Some(Outcome::Interrupted));
                    }
                    continue;
                }
                outcome = self.limits.over() => {
                    // The daemon gets some time to stop it, and no more.
                    if !self.limits.stops(outcome) || !work.stop(app, self.session).await? {
                        return Ok(Some(outcome));
                    }
                    continue;
                }
                // The question stays open, and the session goes on without this client.
                () = app.terminal.closed() => return Ok(Some(Outcome::Interrupted)),
                event = work.next() => event,
                // Only when no event is left: a question comes after what it is about.
                question = app.turnstile.next() => {
                    self.renderer.end_line()?;
                    question.release();
                    continue;
                }
            };
            let Some(event) = event else {
                return Ok(None);
            };
            self.note(&event)?;
            if !app.terminal.can_ask() && waits_for_guard(&event.body) {
                return give_up(app, self.session, work).await.map(Some);
            }
        }
    }

    fn note(&mut self, event: &Event) -> anyhow::Result<()> {
        self.was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
        self.limits.note(event);
        let is_own = self.own.as_mut().is_none_or(|own| own.takes(event));
        match (&event.body, &event.head.agent_id) {
            (Body::Durable(Durable::AssistantMessage(said)), None) if is_own => {
                let is_answer = said.tool_requests.is_empty();
                self.last = is_answer.then(|| said.content.clone());
                self.is_cut = false;
            }
            (Body::Durable(Durable::SessionWarning(warning)), None)
                if is_own && CUT_WARNINGS.contains(&warning.warning_type.as_str()) =>
            {
                self.is_cut = true;
            }
            (Body::Durable(Durable::AutopilotStopped(stopped)), None) => {
                self.stopped = Some(stopped.reason);
            }
            (Body::Durable(Durable::TaskComplete(said)), None) => self.task = Some(said.clone()),
            _ => {}
        }
        self.renderer.show(event)?;
        if !is_own {
            self.app.denied_unasked.forget(event);
        } else if let Some(denied) = self.app.denied_unasked.denial(event) {
            self.renderer.end_line()?;
            self.app.terminal.notice(&denied);
        }
        if let Body::Durable(Durable::ModeChanged(change)) = &event.body {
            self.app.planning.set(change.new_mode);
        }
        Ok(())
    }

    /// Waits for the commands that the run left in the background. What the agent says then is its
    /// answer.
    async fn follow_background(&mut self, reply: &mut Reply) -> anyhow::Result<Option<Outcome>> {
        while let Some((wait, commands)) = Background::begin(self.session).await? {
            for command in commands {
                let what = sanitize(&command.command);
                let told = format!("waiting for a command in the background: {what}");
                self.renderer.end_line()?;
                self.app
                    .terminal
                    .notice(&self.app.terminal.styled(Style::Dim, &told));
            }
            self.last = None;
            // What follows answers a notice, and no message.
            self.own = None;
            let mut work = Work::Background(Box::new(wait));
            if let Some(outcome) = self.follow(&mut work).await? {
                // Whoever does not wait for the commands has the answer all the same.
                if let Some(later) = self.last.take().filter(|text| !text.trim().is_empty()) {
                    reply.text = later;
                }
                self.renderer.end_run(Some(&answer(reply)))?;
                if outcome == Outcome::TimedOut {
                    let words = self.limits.words(outcome, self.session.id());
                    self.app.terminal.notice(&words);
                }
                return Ok(Some(outcome));
            }
            if let Some(later) = self.last.take().filter(|text| !text.trim().is_empty()) {
                reply.text = later;
            }
        }
        Ok(None)
    }

    /// Prints the answer. A run that a limit has ended after an answer has that one.
    fn end_run(&mut self, finished: &Result<Reply, Error>) -> anyhow::Result<()> {
        let answer = match finished {
            Ok(reply) => Some(answer(reply)),
            Err(error) if error.limit_reached().is_some() => self.last.as_deref().map(sanitize),
            Err(_) => None,
        };
        self.renderer.end_run(answer.as_deref())
    }

    /// Returns what the end of the autopilot, or of the last answer, means for work that no message of ours
    /// began.
    fn autopilot_outcome(&self) -> Option<Outcome> {
        if self.is_cut {
            return Some(Outcome::Limit);
        }
        self.stopped.map(|reason| of_stop(self.app, reason))
    }

    /// Returns the outcome of a run that has stopped because somebody has paused the autopilot.
    async fn paused(&self, answers: Answers, is_idle: bool) -> anyhow::Result<Option<Outcome>> {
        if answers == Answers::All || !is_idle || !self.app.options.asks_for_autopilot() {
            return Ok(None);
        }
        let status = self.session.autopilot().await?;
        if status.mode != Mode::Autopilot || !status.paused {
            return Ok(None);
        }
        self.app.terminal.notice(&format!(
            "loop: the autopilot is paused, and the task is not marked as complete; to let it go on: \
             loop resume {} --autopilot \"go on\"",
            self.session.id()
        ));
        Ok(Some(Outcome::Limit))
    }
}

/// Waits for Ctrl-C, or for the signal that asks this process to end.
async fn interrupted(app: &App, signals: Option<&mut Terminated>) {
    match signals {
        Some(signals) => tokio::select! {
            () = app.terminal.interrupted() => {}
            () = signals.came() => {}
        },
        None => app.terminal.interrupted().await,
    }
}

/// Whether an event says that a call waits for an app whose hooks guard the session.
fn waits_for_guard(body: &Body) -> bool {
    matches!(
        body,
        Body::Durable(Durable::SessionWarning(warning)) if warning.warning_type == "guard_absent"
    )
}

/// Stops work that waits for somebody whom nobody here can call.
async fn give_up(app: &App, session: &Session, work: &Work) -> anyhow::Result<Outcome> {
    work.stop(app, session).await?;
    app.terminal.notice(&format!(
        "loop: nobody is there to wait, so the turn was stopped; to go on without the hooks of that app: \
         loop hooks lift {}",
        session.id()
    ));
    Ok(Outcome::NobodyToAsk)
}
