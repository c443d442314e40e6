//! The terminal: styled output, and questions to the person at it.

mod completion;
mod input;
mod output_reader;
pub(crate) mod restore;
mod screen;
mod typed_ahead;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use input::LineInput;
use loopd_sdk::Session;
use loopd_sdk::proto::visible::visible;
use screen::{Screen, Stream};
use typed_ahead::KeepsTyped;

use crate::chat::ChatHandle;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use completion::Completes;
pub(crate) use input::Typed;
pub(crate) use output_reader::OutputReader;

/// The columns and rows of a screen that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Dim,
    Bold,
    Good,
    Bad,
}

/// This process's stdin, stdout and stderr. Clones share them.
#[derive(Clone)]
pub(crate) struct Terminal {
    colours: bool,
    can_ask: bool,
    live: bool,
    screen: Screen,
    input: LineInput,
    /// Notified when the terminal was closed under a question, or a person left it unanswered.
    gone: Arc<Notify>,
    is_left: Arc<AtomicBool>,
    /// Whether the terminal can draw more than lines.
    draws: bool,
    /// The conversation that owns the screen.
    chat: Arc<Mutex<Option<ChatHandle>>>,
}

/// Keeps the screen for a conversation until it is dropped.
pub(crate) struct Owned(Arc<Mutex<Option<ChatHandle>>>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(chat) = self.0.lock().take() {
            // What came too late for the region is printed as it is.
            let rest = chat.take_printed();
            io::Write::write_all(&mut io::stderr(), rest.as_bytes()).ok();
        }
    }
}

impl Terminal {
    pub(crate) fn new(env: &BTreeMap<String, String>) -> Self {
        let plain = env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        let screen = Screen::new();
        Self {
            colours: io::stderr().is_terminal() && !plain,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            live: io::stdout().is_terminal(),
            input: LineInput::new(screen.clone()),
            screen,
            gone: Arc::default(),
            is_left: Arc::default(),
            draws: draws(env),
            chat: Arc::default(),
        }
    }

    /// Returns whether a conversation can own the screen and draw in it.
    pub(crate) fn can_draw(&self) -> bool {
        self.can_ask && self.live && self.draws
    }

    pub(crate) fn has_colours(&self) -> bool {
        self.colours
    }

    /// Sends what is printed and asked to a conversation that owns the screen.
    pub(crate) fn owned_by(&self, chat: &ChatHandle) -> Owned {
        *self.chat.lock() = Some(chat.clone());
        Owned(self.chat.clone())
    }

    /// Returns the conversation that owns the screen.
    pub(crate) fn chat(&self) -> Option<ChatHandle> {
        self.chat.lock().clone()
    }

    /// Returns whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Returns whether stdout is a screen, which can be redrawn.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Returns the number of columns and rows.
    #[expect(clippy::unused_self, reason = "only a holder of the terminal may ask")]
    pub(crate) fn size(&self) -> (usize, usize) {
        #[cfg(unix)]
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
            && size.ws_col > 0
            && size.ws_row > 0
        {
            return (size.ws_col.into(), size.ws_row.into());
        }
        DEFAULT_SIZE
    }

    /// Returns the text in a style, or unchanged if styles are off.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match style {
            Style::Dim => "2",
            Style::Bold => "1",
            Style::Good => "32",
            Style::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Writes to stdout and flushes it.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        if let Some(chat) = self.chat() {
            chat.print(text);
            return Ok(());
        }
        self.screen.write(Stream::Out, text)
    }

    /// Writes a line to stderr. A failure is ignored, because there is nowhere to report it.
    pub(crate) fn notice(&self, line: &str) {
        if let Some(chat) = self.chat() {
            chat.print(&format!("{line}\n"));
            return;
        }
        self.screen.write(Stream::Err, &format!("{line}\n")).ok();
    }

    /// Asks a question: shows a text, and reads a line after `prompt`. Returns `None` after Ctrl-D.
    /// After Ctrl-C it does not return; [`Terminal::interrupted`] does. It does not return when the
    /// terminal is closed, either: that is no answer, and the question stays open. Dropping the future
    /// closes the question.
    pub(crate) async fn ask(&self, text: &str, prompt: &str) -> Option<String> {
        if let Some(chat) = self.chat() {
            return match chat.ask(text, prompt).await {
                Some(line) => Some(line),
                // The conversation was left; the question stays open.
                None => std::future::pending().await,
            };
        }
        match self.input.question(text, prompt).typed().await {
            Ok(Typed::Line(line)) => Some(line),
            Ok(Typed::End) if is_there(io::stdin()) => None,
            Ok(Typed::End) => {
                self.gone.notify_one();
                std::future::pending().await
            }
            Ok(Typed::Interrupted) | Err(_) => std::future::pending().await,
        }
    }

    /// Reads a line of a conversation. Questions may come before it.
    pub(crate) async fn line(&self, prompt: &str) -> Typed {
        let typed = self.input.prompt(prompt).await;
        typed.unwrap_or(Typed::End)
    }

    /// Lets a session complete the lines of a conversation, as long as the result lives.
    pub(crate) fn completes_by(&self, session: &Session) -> Completes {
        self.input.completion().by(session)
    }

    /// Waits until the terminal was closed under a question, or a person left one unanswered.
    pub(crate) async fn closed(&self) {
        self.gone.notified().await;
    }

    /// Returns who reads what is printed.
    #[expect(clippy::unused_self, reason = "only a holder of the terminal may ask")]
    pub(crate) fn output_reader(&self) -> OutputReader {
        OutputReader::of_stdout()
    }

    /// Notes that a person left a question unanswered that only a person can answer. Does not return:
    /// whoever shows the session leaves it.
    pub(crate) async fn left_unanswered<T>(&self) -> T {
        self.is_left.store(true, Ordering::Relaxed);
        self.gone.notify_one();
        std::future::pending().await
    }

    /// Returns whether a person left such a question unanswered.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Keeps what is typed while nobody reads it when Ctrl-C comes, as long as the result lives.
    #[expect(clippy::unused_self, reason = "only a holder of the terminal may ask")]
    pub(crate) fn keeps_typed(&self) -> KeepsTyped {
        KeepsTyped::begin()
    }

    /// Waits for Ctrl-C, also while a question is open.
    pub(crate) async fn interrupted(&self) {
        if let Some(chat) = self.chat() {
            chat.stopped().await;
            return;
        }
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = self.input.interrupted() => {}
        }
    }
}

/// Returns whether the terminal knows more than plain lines. `LOOPD_PLAIN` asks for plain lines, for
/// example for a screen reader.
fn draws(env: &BTreeMap<String, String>) -> bool {
    let value = |name: &str| env.get(name).map(String::as_str).unwrap_or_default();
    let term = value("TERM");
    let is_plain = !["", "0"].contains(&value("LOOPD_PLAIN"));
    !is_plain && !["", "dumb", "cons25", "emacs"].contains(&term)
}

/// The signal that asks this process to end, such as `timeout` and service managers send. Whoever listens
/// has to end the process.
pub(crate) struct Terminated(#[cfg(unix)] tokio::signal::unix::Signal);

impl Terminated {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(Self)
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self())
    }

    /// Waits for it.
    pub(crate) async fn came(&mut self) {
        #[cfg(unix)]
        self.0.recv().await;
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// Returns whether the terminal is still there. When it is closed, the end of input comes first, then
/// it stops being a terminal, then comes the signal that ends this process; but it is known to be hung
/// up before the end of input.
#[cfg(unix)]
fn is_there(terminal: impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
    let is_known = poll(&mut polled, Some(&at_once)).is_ok();
    let [polled] = polled;
    let is_cut = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    is_known && !polled.revents().intersects(is_cut) && rustix::termios::isatty(&terminal)
}

#[cfg(not(unix))]
fn is_there(terminal: impl IsTerminal) -> bool {
    terminal.is_terminal()
}

/// Shows the hidden characters in untrusted text, so that it cannot control the terminal.
pub(crate) fn sanitize(text: &str) -> String {
    visible(text).into_owned()
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
