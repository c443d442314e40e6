//! The lines that a person types: one thread reads them with an editor, for one asker at a time.
//!
//! A question goes before the prompt of a conversation. If it comes while the prompt is open, it is
//! shown above it. It gets the next line, unless something was typed already: then that line is still
//! the message, and the question gets a line of its own.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};
use tokio::sync::{Notify, oneshot};

use super::screen::{Screen, Stream, Typing};

/// How many lines of a conversation are remembered.
const HISTORY: usize = 1_000;

/// What came of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// The end of input.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskerKind {
    Question,
    Prompt,
}

struct Asker {
    kind: AskerKind,
    /// What is shown above the line; empty once it is shown.
    text: String,
    prompt: String,
    reply: oneshot::Sender<Typed>,
    /// Whether it was shown above an empty prompt, so that the next line is its answer.
    gets_next: bool,
}

/// The reader of lines. Its thread starts with the first asker.
#[derive(Clone)]
pub(super) struct LineInput(Arc<InputShared>);

struct InputShared {
    screen: Screen,
    askers: Mutex<VecDeque<Asker>>,
    came: Condvar,
    started: AtomicBool,
    /// What is in the line that is being typed.
    line: Arc<Mutex<String>>,
    /// Notified by Ctrl-C in a question.
    interrupted: Notify,
}

impl LineInput {
    pub(super) fn new(screen: Screen) -> Self {
        Self(Arc::new(InputShared {
            screen,
            askers: Mutex::default(),
            came: Condvar::new(),
            started: AtomicBool::new(false),
            line: Arc::default(),
            interrupted: Notify::new(),
        }))
    }

    /// Asks for a line. Whoever drops the receiver does not want it any more.
    pub(super) fn ask(
        &self,
        kind: AskerKind,
        text: &str,
        prompt: &str,
    ) -> oneshot::Receiver<Typed> {
        let (reply, typed) = oneshot::channel();
        let shared = &self.0;
        let mut asker = Asker {
            kind,
            text: text.to_owned(),
            prompt: prompt.to_owned(),
            reply,
            gets_next: false,
        };
        let mut askers = shared.askers.lock();
        if kind == AskerKind::Question && shared.screen.typing() == Typing::Message {
            let text = std::mem::take(&mut asker.text);
            asker.gets_next = shared.line.lock().is_empty();
            let hint = if asker.gets_next {
                ""
            } else {
                "(after your line)"
            };
            let shown = format!("{text}{prompt}{hint}\n");
            // A failure cannot be reported anywhere.
            shared.screen.write(Stream::Err, &shown).ok();
        }
        askers.push_back(asker);
        shared.came.notify_one();
        drop(askers);
        if !shared.started.swap(true, Ordering::Relaxed) {
            let shared = shared.clone();
            std::thread::spawn(move || read_lines(&shared));
        }
        typed
    }

    /// Waits for Ctrl-C in a question.
    pub(super) async fn interrupted(&self) {
        self.0.interrupted.notified().await;
    }
}

fn read_lines(shared: &InputShared) {
    let mut editor = match editor(shared) {
        Ok(editor) => editor,
        Err(error) => {
            let text = format!("loop: the terminal cannot be read: {error}\n");
            shared.screen.write(Stream::Err, &text).ok();
            // Nobody gets a line any more: every asker learns that the input has ended.
            loop {
                let asker = shared.next_asker();
                asker.reply.send(Typed::End).ok();
            }
        }
    };
    loop {
        let asker = shared.next_asker();
        let typing = match asker.kind {
            AskerKind::Question => Typing::Answer,
            AskerKind::Prompt => Typing::Message,
        };
        shared.screen.begin(typing, &asker.text);
        super::restore::remember();
        let read = editor.readline(&asker.prompt);
        super::restore::forget();
        let had_text = !std::mem::take(&mut *shared.line.lock()).is_empty();
        shared.screen.end();
        let typed = match read {
            Ok(line) => Typed::Line(line),
            Err(ReadlineError::Interrupted) if had_text && asker.kind == AskerKind::Prompt => {
                // Ctrl-C only clears what was typed.
                shared.askers.lock().push_front(asker);
                continue;
            }
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(_) => Typed::End,
        };
        if let (Typed::Line(line), AskerKind::Prompt) = (&typed, asker.kind)
            && !line.trim().is_empty()
        {
            // It only fails for lines that the history does not want.
            editor.add_history_entry(line).ok();
        }
        shared.deliver(asker, typed);
    }
}

impl InputShared {
    /// Waits for somebody who wants a line; a question goes before a prompt.
    fn next_asker(&self) -> Asker {
        let mut askers = self.askers.lock();
        loop {
            askers.retain(|asker| !asker.reply.is_closed());
            let question = askers.iter().position(|it| it.kind == AskerKind::Question);
            if let Some(asker) = askers.remove(question.unwrap_or(0)) {
                return asker;
            }
            self.came.wait(&mut askers);
        }
    }

    fn deliver(&self, mut asker: Asker, typed: Typed) {
        if asker.kind == AskerKind::Question {
            match typed {
                Typed::Interrupted => {
                    // The question stays open; whoever asked decides what the interrupt stops.
                    self.interrupted.notify_one();
                }
                typed => {
                    let said = matches!(&typed, Typed::Line(line) if !line.trim().is_empty());
                    if asker.reply.send(typed).is_err() && said {
                        let text =
                            "that question was answered elsewhere; your answer was not used\n";
                        self.screen.write(Stream::Err, text).ok();
                    }
                }
            }
            return;
        }
        let mut askers = self.askers.lock();
        let answered = askers
            .iter()
            .position(|it| it.gets_next && !it.reply.is_closed());
        if let (Typed::Line(_), Some(question)) = (&typed, answered)
            && let Some(question) = askers.remove(question)
        {
            question.reply.send(typed).ok();
            asker.text.clear();
            askers.push_front(asker);
            return;
        }
        drop(askers);
        // It fails if nobody wants the line any more.
        asker.reply.send(typed).ok();
    }
}

fn editor(shared: &InputShared) -> rustyline::Result<Editor<LineWatcher, MemHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .auto_add_history(false)
        .behavior(if std::io::stdout().is_terminal() {
            Behavior::Stdio
        } else {
            // The prompt must not go into the file that stdout is.
            Behavior::PreferTerm
        })
        .build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(LineWatcher(shared.line.clone())));
    let printer = editor.create_external_printer()?;
    shared.screen.set_printer(Box::new(printer));
    Ok(editor)
}

/// Keeps track of the line that is being typed.
struct LineWatcher(Arc<Mutex<String>>);

impl Hinter for LineWatcher {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _context: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.0.lock());
        None
    }
}

impl Completer for LineWatcher {
    type Candidate = String;
}

impl Highlighter for LineWatcher {}

impl Validator for LineWatcher {}

impl Helper for LineWatcher {}
