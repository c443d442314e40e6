//! What this process writes to its terminal, also while a person types a line there.
//!
//! While a question waits for its answer, output is held back. While the prompt of a conversation is
//! open, output appears above it, in whole lines.
//!
//! A thread hands these lines to the editor: it may wait there until the next line is opened, and
//! nobody who writes may wait with it.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rustyline::ExternalPrinter;

/// How many bytes are held back while a question is open, or wait to appear above a line.
const MOST_HELD: usize = 256 * 1024;

/// What is being typed at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Typing {
    #[default]
    Nothing,
    /// The answer to a question.
    Answer,
    /// A line of a conversation.
    Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// stdout and stderr. Clones share them.
#[derive(Clone)]
pub(super) struct Screen {
    /// Whether stdout is the terminal, too.
    out_is_terminal: bool,
    shared: Arc<ScreenShared>,
}

#[derive(Default)]
struct ScreenShared {
    state: Mutex<ScreenState>,
    /// Notified when there is something to show above the line.
    has_above: Condvar,
}

#[derive(Default)]
struct ScreenState {
    typing: Typing,
    held: Vec<(Stream, String)>,
    held_bytes: usize,
    /// The beginning of a line that is shown above the prompt when it is complete.
    partial: String,
    /// Whether stdout stopped in the middle of a line.
    open_line: bool,
    /// Whole lines that wait for the thread that shows them above the prompt.
    above: String,
    /// What prints above the open line; taken by the thread while it prints.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
    has_printer: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            out_is_terminal: io::stdout().is_terminal(),
            shared: Arc::default(),
        }
    }

    /// Sets what prints above the line that is opened next.
    pub(super) fn set_printer(&self, printer: impl ExternalPrinter + Send + 'static) {
        let mut state = self.shared.state.lock();
        state.printer = Some(Box::new(printer));
        if !std::mem::replace(&mut state.has_printer, true) {
            let shared = self.shared.clone();
            std::thread::spawn(move || print_above(&shared));
        }
    }

    pub(super) fn write(&self, stream: Stream, text: &str) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        if stream == Stream::Out && !self.out_is_terminal {
            return direct(stream, text);
        }
        match state.typing {
            Typing::Nothing => {
                if stream == Stream::Out && !text.is_empty() {
                    state.open_line = !text.ends_with('\n');
                }
                direct(stream, text)
            }
            Typing::Answer if state.held_bytes + text.len() <= MOST_HELD => {
                state.held_bytes += text.len();
                state.held.push((stream, text.to_owned()));
                Ok(())
            }
            Typing::Answer | Typing::Message => {
                state.release_above();
                state.partial.push_str(text);
                state.print_whole_lines(&self.shared.has_above);
                Ok(())
            }
        }
    }

    /// Shows a text on a line of its own, and from now on keeps output away from what is typed.
    pub(super) fn begin(&self, typing: Typing, text: &str) {
        let mut state = self.shared.state.lock();
        if std::mem::take(&mut state.open_line) {
            direct(Stream::Out, "\n").ok();
        }
        // A failure cannot be reported anywhere.
        direct(Stream::Err, text).ok();
        state.typing = typing;
    }

    /// Makes the answer that is being typed a line of a conversation: shows a text and what was held
    /// back above it, and from now on output, too.
    pub(super) fn answer_becomes_message(&self, text: &str) {
        let mut state = self.shared.state.lock();
        if state.typing != Typing::Answer {
            return;
        }
        state.typing = Typing::Message;
        state.held_bytes += text.len();
        state.held.insert(0, (Stream::Err, text.to_owned()));
        state.release_above();
        state.print_whole_lines(&self.shared.has_above);
    }

    /// Ends the line that was typed, and shows what was held back.
    pub(super) fn end(&self) {
        let mut state = self.shared.state.lock();
        state.typing = Typing::Nothing;
        state.held_bytes = 0;
        let above = std::mem::take(&mut state.above);
        direct(Stream::Err, &above).ok();
        for (stream, text) in std::mem::take(&mut state.held) {
            direct(stream, &text).ok();
            if stream == Stream::Out {
                state.open_line = !text.ends_with('\n');
            }
        }
        let partial = std::mem::take(&mut state.partial);
        if !partial.is_empty() {
            state.open_line = true;
            direct(Stream::Out, &partial).ok();
        }
    }

    pub(super) fn typing(&self) -> Typing {
        self.shared.state.lock().typing
    }
}

impl ScreenState {
    fn release_above(&mut self) {
        self.held_bytes = 0;
        for (_, text) in std::mem::take(&mut self.held) {
            self.partial.push_str(&text);
        }
    }

    fn print_whole_lines(&mut self, has_above: &Condvar) {
        let Some(end) = self.partial.rfind('\n') else {
            return;
        };
        let rest = self.partial.split_off(end + 1);
        let lines = std::mem::replace(&mut self.partial, rest);
        if self.has_printer && self.above.len() + lines.len() <= MOST_HELD {
            self.above.push_str(&lines);
            has_above.notify_one();
        } else {
            // A failure cannot be reported anywhere.
            direct(Stream::Err, &lines).ok();
        }
    }
}

/// Shows lines above the line that is being typed, for as long as the process lives.
fn print_above(shared: &ScreenShared) {
    loop {
        let (lines, printer) = {
            let mut state = shared.state.lock();
            while state.above.is_empty() {
                shared.has_above.wait(&mut state);
            }
            (std::mem::take(&mut state.above), state.printer.take())
        };
        // It fails if the line of this printer was closed meanwhile.
        let done = printer.map(|mut printer| (printer.print(lines.clone()).is_ok(), printer));
        if !matches!(done, Some((true, _))) {
            // A failure cannot be reported anywhere.
            direct(Stream::Err, &lines).ok();
        }
        if let Some((_, printer)) = done {
            // Another line may have been opened meanwhile, with a printer of its own.
            shared.state.lock().printer.get_or_insert(printer);
        }
    }
}

fn direct(stream: Stream, text: &str) -> io::Result<()> {
    let write = |out: &mut dyn Write| {
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    match stream {
        Stream::Out => write(&mut io::stdout().lock()),
        Stream::Err => write(&mut io::stderr().lock()),
    }
}
