//! The terminal: styled output, and questions to the person at it.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use loopd_sdk::proto::visible::visible;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::sync::Mutex;

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
    // Locked while a question waits for its line, so that two questions never share one answer.
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
    #[expect(
        clippy::unused_self,
        reason = "only a holder of the terminal may write"
    )]
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line to stderr.
    pub(crate) fn notice(&self, line: &str) {
        self.write_stderr(&format!("{line}\n"));
    }

    /// Writes to stderr. A failure is ignored, because there is nowhere to report it.
    #[expect(
        clippy::unused_self,
        reason = "only a holder of the terminal may write"
    )]
    pub(crate) fn write_stderr(&self, text: &str) {
        let mut err = io::stderr().lock();
        err.write_all(text.as_bytes()).ok();
        err.flush().ok();
    }

    /// Holds questions back until the guard is dropped.
    pub(crate) async fn hold_questions(&self) -> impl Drop + use<> {
        self.input.clone().lock_owned().await
    }

    /// Asks for a line; `None` at the end of input. Other questions wait until it has come.
    pub(crate) async fn ask(&self, question: &str) -> Option<String> {
        let mut input = self.input.lock().await;
        self.write_stderr(question);
        input.next_line().await.ok().flatten()
    }
}

/// Shows the hidden characters in untrusted text, so that it cannot control the terminal.
pub(crate) fn sanitize(text: &str) -> String {
    visible(text).into_owned()
}
