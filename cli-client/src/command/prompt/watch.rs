//! Shows the work of a session until its end: the turn of a message, or what a slash command has begun.

use std::io::ErrorKind;

use loopd_sdk::{
    BegunWork, Body, CUT_WARNINGS, CompletionOutcome, Durable, Error, Event, LimitKind, Mode,
    Reply, Session, StopReason, TaskComplete, TurnOutcome,
};

use super::Shows;
use super::background::Background;
use super::ending::{answer, command_outcome, of_stop, outcome_of, unfinished};
use super::run_limits::{Counts, WatchedLimits};
use super::work::{Stopping, Work};
use crate::app::App;
use crate::outcome::Outcome;
use crate::render::{OwnRun, Renderer};
use crate::terminal::{OutputReader, Style, Terminated, sanitize};

/// Which answers are shown, if other clients send messages to the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Only the answer to what was said here: stdout is its result.
    Own(Shows),
    All,
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
        renderer: work.renderer(app, session, answers),
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
        reader: app.terminal.output_reader(),
        interrupted: false,
        was_shown: false,
        last: None,
        called_last: false,
        own: match (&work, answers) {
            (Work::Message(turn), Answers::Own(_)) => Some(OwnRun::of(turn.message_id().clone())),
            (Work::Message(_) | Work::Command { .. } | Work::Background(_), _) => None,
        },
        task: None,
        stopped: None,
        is_cut: false,
        told_empty: false,
        at_limit: false,
        autopilot_ended: false,
        is_message: matches!(work, Work::Message(_)),
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
            let is_empty = matches!(&finished, Ok(reply) if answer(reply).trim().is_empty());
            if is_empty && !watching.told_empty {
                app.terminal
                    .notice("loop: the agent ended without an answer");
            }
            let failed = finished.is_err();
            let is_idle = matches!(&finished, Ok(reply) if reply.outcome == TurnOutcome::Idle);
            let unfinished = watching.unfinished(answers, is_idle).await?;
            // Whoever has stopped it here knows why it has no answer.
            let known =
                watching.was_shown || watching.interrupted || watching.limits.stopped().is_some();
            let outcome = match outcome_of(app, finished, known) {
                Ok(Outcome::Done) => Ok(match unfinished {
                    Some(outcome) => outcome,
                    None if watching.at_limit => Outcome::Limit,
                    None if is_empty && !watching.called_last && answers != Answers::All => {
                        Outcome::Failed
                    }
                    None => Outcome::Done,
                }),
                outcome => outcome,
            };
            (failed, outcome)
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
                    let unfinished = match known {
                        Some(_) => None,
                        None => watching.unfinished(answers, ended_well).await?,
                    };
                    Ok(known.or(unfinished).unwrap_or(Outcome::Done))
                }
                outcome => outcome,
            };
            (failed, outcome)
        }
        Work::Background(_) => (false, Ok(Outcome::Done)),
    };
    if watching.interrupted {
        if answers == Answers::All {
            let again = format!("the session is kept: loop resume {}", session.id());
            app.terminal
                .notice(&app.terminal.styled(Style::Dim, &again));
        }
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
    /// Who reads what is printed.
    reader: OutputReader,
    interrupted: bool,
    was_shown: bool,
    /// The last message of the agent, if it called no tool.
    last: Option<String>,
    /// Whether that message called tools: the run ended with a call that a person has rejected.
    called_last: bool,
    /// Whose run an event belongs to, where other clients send messages to the same session.
    own: Option<OwnRun>,
    /// What the agent said last of its task.
    task: Option<TaskComplete>,
    /// Why the autopilot stopped last.
    stopped: Option<StopReason>,
    /// Whether the last message of the agent is not complete.
    is_cut: bool,
    /// Whether a warning of the session has said that its last message is empty.
    told_empty: bool,
    /// Whether a limit was reached, also after the answer, by what agents did in the background.
    at_limit: bool,
    /// Whether the session was switched out of autopilot mode during the run.
    autopilot_ended: bool,
    /// Whether the work is the run of a message, and not what a command has begun.
    is_message: bool,
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
                    if std::mem::replace(&mut self.interrupted, true) {
                        return Ok(Some(Outcome::Left));
                    }
                    match work.stop(app, self.session).await? {
                        Stopping::Ends => continue,
                        Stopping::WithSession => {
                            self.end_answered(work)?;
                            return Ok(Some(Outcome::Interrupted));
                        }
                        Stopping::Spared => return Ok(Some(Outcome::Left)),
                    }
                }
                outcome = self.limits.over() => {
                    // The daemon gets some time to stop it, and no more.
                    if !self.limits.stops(outcome) {
                        return Ok(Some(outcome));
                    }
                    match work.stop(app, self.session).await? {
                        Stopping::Ends => continue,
                        Stopping::WithSession => {
                            self.end_answered(work)?;
                            if matches!(work, Work::Message(_)) {
                                let words = self.limits.words(outcome, self.session.id());
                                app.terminal.notice(&words);
                            }
                            return Ok(Some(outcome));
                        }
                        Stopping::Spared => return Ok(Some(outcome)),
                    }
                }
                // The question stays open, and the session goes on without this client.
                () = app.terminal.closed() => {
                    if app.terminal.is_left() {
                        app.terminal.notice(&format!(
                            "loop: a question waits for an answer; to give it: loop attach {}",
                            self.session.id()
                        ));
                    }
                    return Ok(Some(Outcome::Left));
                }
                () = self.reader.gone() => return self.unread(work).await.map(Some),
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
            if let Err(error) = self.note(&event) {
                let failure = error.downcast_ref::<std::io::Error>();
                if failure.is_some_and(|it| it.kind() == ErrorKind::BrokenPipe) {
                    return self.unread(work).await.map(Some);
                }
                // What cannot be printed does not go on.
                work.stop(app, self.session).await?;
                return Err(error);
            }
            if !app.terminal.can_ask() && waits_for_guard(&event.body) {
                return give_up(app, self.session, work).await.map(Some);
            }
        }
    }

    /// Stops work that nobody reads of any more.
    async fn unread(&self, work: &Work) -> anyhow::Result<Outcome> {
        work.stop(self.app, self.session).await?;
        self.app.terminal.notice(&format!(
            "loop: nobody reads the output any more, so the run was stopped; the session is kept: loop resume {}",
            self.session.id()
        ));
        Ok(Outcome::Failed)
    }

    fn note(&mut self, event: &Event) -> anyhow::Result<()> {
        self.was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
        self.limits.note(event);
        let is_own = self.own.as_mut().is_none_or(|own| own.takes(event));
        match (&event.body, &event.head.agent_id) {
            (Body::Durable(Durable::AssistantMessage(said)), None) if is_own => {
                let is_answer = said.tool_requests.is_empty();
                self.last = is_answer.then(|| said.content.clone());
                self.called_last = !is_answer;
                self.is_cut = false;
                self.told_empty = false;
            }
            (Body::Durable(Durable::SessionWarning(warning)), None)
                if is_own && warning.warning_type == "answer_empty" =>
            {
                self.told_empty = true;
            }
            (Body::Durable(Durable::SessionWarning(warning)), None)
                if is_own && CUT_WARNINGS.contains(&warning.warning_type.as_str()) =>
            {
                self.is_cut = true;
            }
            (Body::Durable(Durable::SessionError(failure)), None) if is_own => {
                let code = failure.error_code.as_deref();
                self.at_limit |= LimitKind::of_error(&failure.error_type, code).is_some();
            }
            (Body::Durable(Durable::AutopilotStopped(stopped)), None) => {
                self.stopped = Some(stopped.reason);
            }
            (Body::Durable(Durable::TaskComplete(said)), None) => self.task = Some(said.clone()),
            _ => {}
        }
        self.renderer.show(event)?;
        if is_own {
            self.app.denied_unasked.note(event);
        }
        if !is_own {
            self.app.denied_unasked.forget(event);
        } else if let Some(denied) = self.app.denied_unasked.denial(event) {
            self.renderer.end_line()?;
            self.app.terminal.notice(&denied);
        }
        if let Body::Durable(Durable::ModeChanged(change)) = &event.body {
            self.app.planning.set(change.new_mode);
            let has_begun = self.own.as_ref().is_some_and(|own| !own.is_other());
            let ends = has_begun && change.previous_mode == Mode::Autopilot;
            self.autopilot_ended =
                change.new_mode != Mode::Autopilot && (self.autopilot_ended || ends);
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

    /// Prints the answer to a message whose turn has ended, while agents still work in the background.
    fn end_answered(&mut self, work: &Work) -> anyhow::Result<()> {
        if !matches!(work, Work::Message(_)) {
            return Ok(());
        }
        let answer = self.last.as_deref().map(sanitize);
        self.renderer.end_run(answer.as_deref())
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

    /// Returns the outcome of a run that has ended although the autopilot was to go on until the task is
    /// marked as complete. `is_idle` tells that the run ended by itself, without such a mark.
    async fn unfinished(&self, answers: Answers, is_idle: bool) -> anyhow::Result<Option<Outcome>> {
        let expects = self.app.options.asks_for_autopilot() || self.autopilot_ended;
        if answers == Answers::All || !is_idle || !expects {
            return Ok(None);
        }
        unfinished(self.app, self.session, self.is_message).await
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
