//! A conversation on a terminal that can do more than print lines. Finished text goes into the
//! scrollback and stays as it is; a small live region at the bottom shows what is going on and the line
//! that is being typed.
//!
//! One task owns the screen and everything on it. Keys, events, questions and the results of requests
//! come to it; after each of them the region is drawn anew if it has changed.

mod act;
mod calls;
mod complete;
mod diff;
mod editor;
mod footer;
mod handle;
mod highlight;
mod jobs;
mod keys;
mod markdown;
mod painter;
mod question;
mod raw;
mod screen;
mod styled;
mod transcript;

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use loopd_sdk::proto::method::SessionGetMetadata;
use loopd_sdk::proto::params::session::Of;
use loopd_sdk::{Activity, Body, Durable, Event, Events, RequestId, Session, TaskNode};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use handle::ChatHandle;
pub(crate) use question::PermissionText;

use self::complete::Menu;
use self::editor::Editor;
use self::jobs::JobResult;
use self::keys::KeyReader;
use self::painter::{Painter, Size};
use self::question::{OpenQuestion, Question};
use self::raw::RawMode;
use self::styled::{Line, Look};
use self::transcript::Transcript;
use crate::app::App;
use crate::slash::Said;
use crate::terminal::Terminated;

/// How often the sign of work turns.
const TICK: Duration = Duration::from_millis(120);
/// How long the rest of an escape sequence may take; then the escape was the key.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);
/// How long a message that was sent last may take to reach the daemon when the conversation is left.
const LEAVE_WAIT: Duration = Duration::from_secs(10);
/// How many lines of what happened before are shown.
const MOST_PAST: usize = 500;
/// How many lines may wait while a command runs.
const MOST_LINES: usize = 64;

/// How a conversation was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Idle,
    /// The session works on without this client.
    AtWork,
    /// The session waits for an answer that nobody gave.
    Asked,
}

type Running<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Said>> + 'a>>;

struct Chat<'a> {
    app: &'a App,
    session: &'a Session,
    /// The directory of the session, in which its files are.
    directory: PathBuf,
    handle: ChatHandle,
    painter: Painter,
    keys: KeyReader,
    editor: Editor,
    transcript: Transcript,
    tasks: Vec<TaskNode>,
    /// Questions that wait, and the one that is shown.
    waiting_questions: VecDeque<Question>,
    question: Option<OpenQuestion>,
    menu: Option<Menu>,
    jobs: JoinSet<JobResult>,
    /// A slash command that runs, and lines that wait for its end.
    command: Option<Running<'a>>,
    waiting_lines: VecDeque<String>,
    /// The command of the user that runs.
    user_command: Option<RequestId>,
    last_key: Option<Instant>,
    /// Whether the next Ctrl-C leaves.
    leaves_next: bool,
    /// Whether the last Ctrl-C took away what was typed.
    took_away: bool,
    raw: Option<RawMode>,
    tick: usize,
    last_was_empty: bool,
    /// Since when the person wants to leave.
    leaving: Option<Instant>,
}

/// Holds a conversation until the person leaves. `past` is shown first.
pub(crate) async fn run(
    app: &App,
    session: &Session,
    past: &[Event],
    mut events: Events,
) -> anyhow::Result<Left> {
    let (handle, mut asked) = ChatHandle::new();
    let mut resized = signal(SignalKind::window_change()).context("no signal of the screen")?;
    let mut terminated = Terminated::listen()?;
    let raw = RawMode::enter().context("the terminal cannot be read key by key")?;
    let mut input = raw::read_input();
    let _owned = app.terminal.owned_by(&handle);
    let mut chat = Chat {
        app,
        session,
        directory: app.directory.clone(),
        painter: Painter::new(size(app), app.terminal.has_colours(), reflows(app)),
        handle,
        keys: KeyReader::default(),
        editor: Editor::default(),
        transcript: Transcript::new(session.id()),
        tasks: Vec::new(),
        waiting_questions: VecDeque::new(),
        question: None,
        menu: None,
        jobs: JoinSet::new(),
        command: None,
        waiting_lines: VecDeque::new(),
        user_command: None,
        last_key: None,
        leaves_next: false,
        took_away: false,
        raw: Some(raw),
        tick: 0,
        last_was_empty: true,
        leaving: None,
    };
    chat.begin(past).await?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let ended = loop {
        chat.draw()?;
        if let Some(since) = chat.leaving
            && (!chat.is_sending() || since.elapsed() >= LEAVE_WAIT)
        {
            break Ok(chat.left());
        }
        let leaves_at = chat.leaving.map(|since| since + LEAVE_WAIT);
        let has_escape = chat.keys.has_escape();
        let turns = chat.turns();
        tokio::select! {
            biased;
            bytes = input.recv() => match bytes {
                Some(bytes) => chat.type_bytes(&bytes),
                None => chat.leave(),
            },
            () = tokio::time::sleep(ESCAPE_WAIT), if has_escape => chat.escape(),
            () = until(leaves_at) => {}
            _ = resized.recv() => chat.painter.resize(size(app)),
            () = terminated.came() => chat.leave(),
            event = events.next() => match (event, events.end()) {
                (Some(event), _) => {
                    chat.show(&event);
                    while events.waiting() > 0 && let Some(event) = events.next().await {
                        chat.show(&event);
                    }
                }
                (None, Some(error)) => break Err(error.into()),
                (None, None) => chat.leave(),
            },
            said = running(&mut chat.command) => {
                chat.command = None;
                chat.said(said);
            }
            Some(done) = chat.jobs.join_next() => {
                if let Ok(done) = done {
                    chat.done(done);
                }
            }
            () = closed(&mut chat.question) => chat.question_closed(),
            () = chat.handle.has_printed() => {}
            Some(question) = asked.recv() => chat.waiting_questions.push_back(question),
            // Only when no event is left: a question comes after what it is about.
            question = app.turnstile.next() => question.release(),
            _ = tick.tick(), if turns => chat.tick = chat.tick.wrapping_add(1),
        }
    };
    // What was printed last stays, and the region goes.
    let last = chat.print_rest();
    raw::write(&last)?;
    chat.raw = None;
    ended
}

impl Chat<'_> {
    async fn begin(&mut self, past: &[Event]) -> anyhow::Result<()> {
        let columns = self.painter.size.usable();
        for event in past {
            self.transcript.show(event, columns);
            if let Body::Durable(Durable::UserMessage(message)) = &event.body
                && event.head.agent_id.is_none()
                && message.is_autopilot_continuation != Some(true)
            {
                self.editor.remember(&message.content);
            }
        }
        let hidden = self.transcript.keep_last(MOST_PAST);
        if hidden > 0 {
            let id = self.session.id();
            let told =
                format!("{hidden} earlier lines are not shown; loop events {id} has all of it");
            raw::write(&format!("{told}\r\n"))?;
        }
        self.directory = directory(self.session).await?;
        let status = self.session.client().daemon_status().await?;
        let mut live = status.sessions.iter();
        let own = live.find(|live| live.session_id == *self.session.id());
        if own.is_none_or(|own| own.activity == Activity::Idle) {
            self.transcript.rest();
        }
        let id = self.session.id();
        let told = format!("session {id}; /help lists commands and keys");
        self.transcript.note(Look::DIM, &told);
        Ok(())
    }

    /// Returns whether something on the screen changes with time.
    fn turns(&self) -> bool {
        self.transcript.is_working()
            || !self.transcript.calls.running.is_empty()
            || self.question.is_some()
            || self.command.is_some()
    }

    fn show(&mut self, event: &Event) {
        let columns = self.painter.size.usable();
        self.transcript.show(event, columns);
        if let Body::Durable(Durable::ModeChanged(change)) = &event.body {
            self.app.planning.set(change.new_mode);
        }
        if std::mem::take(&mut self.transcript.tasks_changed) {
            self.read_tasks();
        }
    }

    /// Shows the next question, if none is shown.
    fn next_question(&mut self) {
        if self.question.is_some() {
            return;
        }
        if let Some(question) = self.waiting_questions.pop_front() {
            let lines = question.lines();
            self.transcript.add([Line::default()]);
            self.transcript.add(lines);
            self.question = Some(OpenQuestion::new(question));
            self.menu = None;
        }
    }

    fn question_closed(&mut self) {
        let open = self.question.take();
        let typed = open.and_then(|open| open.question.typed().map(str::to_owned));
        if let Some(typed) = typed.filter(|typed| !typed.trim().is_empty()) {
            self.put_back(&typed);
        }
        let told = "that question was answered elsewhere, or its turn was stopped";
        self.transcript.note(Look::DIM, told);
    }

    /// Puts a text that was typed and not used into the line, before what is there.
    fn put_back(&mut self, text: &str) {
        let whole = if self.editor.is_empty() {
            text.to_owned()
        } else {
            format!("{text}\n{}", self.editor.text())
        };
        self.editor.set(&whole);
    }

    fn leave(&mut self) {
        self.leaving.get_or_insert_with(Instant::now);
    }

    /// Returns whether a message is on its way to the daemon. Leaving now would lose it.
    fn is_sending(&self) -> bool {
        self.transcript.waiting.iter().any(|(id, _)| id.is_none())
    }

    fn left(&mut self) -> Left {
        if self.is_sending() {
            let told = "the last message has not reached the daemon and may be lost";
            self.transcript.error(told);
        }
        if self.question.is_some() || !self.waiting_questions.is_empty() {
            return Left::Asked;
        }
        let is_at_work = self.transcript.is_working() || !self.transcript.waiting.is_empty();
        if is_at_work { Left::AtWork } else { Left::Idle }
    }
}

/// Waits until a time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns the directory in which a session works, which need not be the one of this program.
async fn directory(session: &Session) -> Result<PathBuf, loopd_sdk::Error> {
    let session_id = session.id().clone();
    let found = session
        .call::<SessionGetMetadata>(&Of { session_id })
        .await?;
    let context = found.session.and_then(|found| found.context);
    Ok(context
        .map(|context| context.cwd.into())
        .unwrap_or_default())
}

/// Runs a command on, if there is one.
async fn running(command: &mut Option<Running<'_>>) -> anyhow::Result<Said> {
    match command {
        Some(command) => command.await,
        None => std::future::pending().await,
    }
}

/// Waits until the question on the screen needs no answer any more.
async fn closed(question: &mut Option<OpenQuestion>) {
    match question {
        Some(open) => open.question.closed().await,
        None => std::future::pending().await,
    }
}

fn size(app: &App) -> Size {
    let (columns, rows) = app.terminal.size();
    Size { columns, rows }
}

/// Returns whether the terminal breaks long lines anew when it gets narrower. Most do; where it is not
/// so, climbing too far would overwrite finished lines.
fn reflows(app: &App) -> bool {
    let is_set = |name: &str| app.variable(name).is_some();
    let term = app.variable("TERM").unwrap_or_default();
    let in_tmux = is_set("TMUX");
    let keeps = is_set("XTERM_VERSION") || term.starts_with("linux") || term.starts_with("screen");
    in_tmux || !keeps
}
