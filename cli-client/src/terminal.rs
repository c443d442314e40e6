//! The terminal: what is said on it, in which style, and lines that are read from it.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::sync::Mutex;

/// The size of a screen that does not tell its own.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// How a part of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Dim,
    Bold,
    Good,
    Bad,
}

/// This process's stdin, stdout and stderr; clones mean the same.
#[derive(Clone)]
pub(crate) struct Terminal {
    colours: bool,
    can_ask: bool,
    live: bool,
    // Held while somebody waits for a line: two questions must not share one answer.
    input: Arc<Mutex<Lines<BufReader<Stdin>>>>,
}

impl Terminal {
    pub(crate) fn new(env: &BTreeMap<String, String>) -> Self {
        let plain = env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: io::stderr().is_terminal() && !plain,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            live: io::stdout().is_terminal(),
            input: Arc::new(Mutex::new(BufReader::new(tokio::io::stdin()).lines())),
        }
    }

    /// Whether a person is there to ask.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Whether the answer is seen on a screen, where it can be drawn anew.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// How many columns and rows the screen has.
    #[expect(
        clippy::unused_self,
        reason = "only who holds the terminal asks about it"
    )]
    pub(crate) fn size(&self) -> (usize, usize) {
        #[cfg(unix)]
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
            && size.ws_col > 0
            && size.ws_row > 0
        {
            return (size.ws_col.into(), size.ws_row.into());
        }
        USUAL_SIZE
    }

    /// The text in a style, where styles can be seen.
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

    /// Writes the answer itself, at once.
    #[expect(
        clippy::unused_self,
        reason = "only who holds the terminal writes on it"
    )]
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line about the answer.
    pub(crate) fn notice(&self, line: &str) {
        self.aside(&format!("{line}\n"));
    }

    /// Writes beside the answer; nobody is left to tell when that fails.
    #[expect(
        clippy::unused_self,
        reason = "only who holds the terminal writes on it"
    )]
    pub(crate) fn aside(&self, text: &str) {
        let mut err = io::stderr().lock();
        err.write_all(text.as_bytes()).ok();
        err.flush().ok();
    }

    /// Keeps questions back for as long as the guard is held.
    pub(crate) async fn quiet(&self) -> impl Drop + use<> {
        self.input.clone().lock_owned().await
    }

    /// Asks for a line; `None` at the end of input. What follows waits until it is given.
    pub(crate) async fn ask(&self, question: &str) -> Option<String> {
        let mut input = self.input.lock().await;
        self.aside(question);
        input.next_line().await.ok().flatten()
    }
}

/// Text of others without what would steer the terminal.
pub(crate) fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.replace(steers, "\u{fffd}")
}
