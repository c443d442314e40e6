//! The lines that a person types: one thread reads them with an editor, for one asker at a time.
//!
//! A question goes before the prompt of a conversation. If it comes while the prompt is open, it is
//! shown above it. It gets the next line, unless something was typed already: then that line is still
//! the message, and the question gets a line of its own.
//!
//! A question may be closed while it is open here, because another client answers it. The person is
//! told so at once. What was typed as its answer goes to the prompt, where it can be edited and sent:
//! it is never dropped, and never sent unseen.
//!
//! What was typed before a question was shown does not answer it. It goes to the prompt as well, or the
//! person is told that it was not used. A question has an editor of its own, so that lines that came
//! together with one of the conversation stay lines of the conversation.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, CompletionType, Config, Context, Editor, Helper};
use tokio::sync::{Notify, oneshot};

use super::completion::LineCompletion;
use super::screen::{Screen, Stream, Typing};
use super::typed_ahead;

/// What is said when a question that is on the screen is closed.
const CLOSED: &str = "that question was answered by another client, or its turn was stopped; it needs no answer here\n";

/// What is said when Ctrl-C has taken away what was typed.
const TAKEN_AWAY: &str = "the Up key brings back what you typed\n";

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
enum AskerKind {
    Question,
    Prompt,
}

struct Asker {
    id: u64,
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
    askers: Mutex<Askers>,
    came: Condvar,
    started: AtomicBool,
    last_id: AtomicU64,
    /// Whether a prompt was ever open. Without one, a line that answers nothing has nowhere to go.
    has_prompt: AtomicBool,
    /// What is in the line that is being typed.
    line: Arc<Mutex<String>>,
    /// Whether the question of the open line was closed; its prompt is then shown as such.
    is_closed: Arc<AtomicBool>,
    /// Completes the lines of a conversation.
    completion: LineCompletion,
    /// Whether the open line is one of a conversation.
    is_message: Arc<AtomicBool>,
    /// Notified by Ctrl-C in a question.
    interrupted: Notify,
}

#[derive(Default)]
struct Askers {
    waiting: VecDeque<Asker>,
    /// The question whose answer is being typed.
    open_question: Option<OpenQuestion>,
    /// What was typed for a question that was closed meanwhile; the next prompt begins with it.
    kept: String,
}

struct OpenQuestion {
    id: u64,
    is_closed: bool,
}

/// A question that was asked. Dropping it closes the question.
pub(super) struct AskedQuestion {
    id: u64,
    shared: Arc<InputShared>,
    typed: oneshot::Receiver<Typed>,
}

impl AskedQuestion {
    /// Waits for the line; fails if nobody will give one.
    pub(super) async fn typed(&mut self) -> Result<Typed, oneshot::error::RecvError> {
        (&mut self.typed).await
    }
}

impl Drop for AskedQuestion {
    fn drop(&mut self) {
        self.typed.close();
        self.shared.close_question(self.id);
    }
}

impl LineInput {
    pub(super) fn new(screen: Screen) -> Self {
        Self(Arc::new(InputShared {
            screen,
            askers: Mutex::default(),
            came: Condvar::new(),
            started: AtomicBool::new(false),
            last_id: AtomicU64::new(0),
            has_prompt: AtomicBool::new(false),
            line: Arc::default(),
            is_closed: Arc::default(),
            completion: LineCompletion::default(),
            is_message: Arc::default(),
            interrupted: Notify::new(),
        }))
    }

    /// Asks for a line of a conversation. Whoever drops the receiver does not want it any more.
    pub(super) fn prompt(&self, prompt: &str) -> oneshot::Receiver<Typed> {
        self.0.has_prompt.store(true, Ordering::Relaxed);
        self.ask(AskerKind::Prompt, "", prompt).1
    }

    /// Asks a question: shows a text, and asks for a line after `prompt`.
    pub(super) fn question(&self, text: &str, prompt: &str) -> AskedQuestion {
        let (id, typed) = self.ask(AskerKind::Question, text, prompt);
        let shared = self.0.clone();
        AskedQuestion { id, shared, typed }
    }

    fn ask(&self, kind: AskerKind, text: &str, prompt: &str) -> (u64, oneshot::Receiver<Typed>) {
        let (reply, typed) = oneshot::channel();
        let shared = &self.0;
        let id = shared.last_id.fetch_add(1, Ordering::Relaxed);
        let mut asker = Asker {
            id,
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
        askers.waiting.push_back(asker);
        shared.came.notify_one();
        drop(askers);
        if !shared.started.swap(true, Ordering::Relaxed) {
            let shared = shared.clone();
            std::thread::spawn(move || read_lines(&shared));
        }
        (id, typed)
    }

    pub(super) fn completion(&self) -> &LineCompletion {
        &self.0.completion
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
        let mut for_question = None;
        if asker.kind == AskerKind::Question {
            shared.set_typed_ahead_aside(&typed_ahead::take());
            for_question = self::editor(shared).ok();
        }
        let is_own = for_question.is_some();
        let editor = for_question.as_mut().unwrap_or(&mut editor);
        if !is_own && let Ok(printer) = editor.create_external_printer() {
            shared.screen.set_printer(printer);
        }
        let kept = shared.take_kept(asker.kind);
        let typing = match asker.kind {
            AskerKind::Question => Typing::Answer,
            AskerKind::Prompt => Typing::Message,
        };
        let is_message = asker.kind == AskerKind::Prompt;
        shared.is_message.store(is_message, Ordering::Relaxed);
        shared.screen.begin(typing, &asker.text);
        if shared.was_closed(&asker) {
            shared.screen.end();
            shared.screen.write(Stream::Err, CLOSED).ok();
            continue;
        }
        super::restore::remember();
        let read = editor.readline_with_initial(&asker.prompt, (&kept, ""));
        super::restore::forget();
        let was_typed = std::mem::take(&mut *shared.line.lock());
        shared.screen.end();
        let typed = match read {
            Ok(line) => Typed::Line(line),
            Err(ReadlineError::Interrupted)
                if !was_typed.is_empty() && asker.kind == AskerKind::Prompt =>
            {
                // Ctrl-C only takes away what was typed. It fails for lines that the history does not want.
                editor.add_history_entry(&was_typed).ok();
                shared.screen.write(Stream::Err, TAKEN_AWAY).ok();
                shared.askers.lock().waiting.push_front(asker);
                continue;
            }
            Err(ReadlineError::Interrupted) => {
                shared.set_typed_ahead_aside(&was_typed);
                Typed::Interrupted
            }
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
        askers.open_question = None;
        self.is_closed.store(false, Ordering::Relaxed);
        loop {
            let waiting = &mut askers.waiting;
            waiting.retain(|asker| !asker.reply.is_closed());
            let question = waiting.iter().position(|it| it.kind == AskerKind::Question);
            if let Some(asker) = waiting.remove(question.unwrap_or(0)) {
                askers.open_question = question.map(|_| OpenQuestion {
                    id: asker.id,
                    is_closed: false,
                });
                return asker;
            }
            self.came.wait(&mut askers);
        }
    }

    /// Returns what a line begins with.
    fn take_kept(&self, kind: AskerKind) -> String {
        match kind {
            AskerKind::Question => String::new(),
            AskerKind::Prompt => std::mem::take(&mut self.askers.lock().kept),
        }
    }

    /// Keeps what was typed before a question was shown for the next prompt, and says so.
    fn set_typed_ahead_aside(&self, typed: &str) {
        if typed.trim().is_empty() {
            return;
        }
        let told = if self.has_prompt.load(Ordering::Relaxed) {
            let mut askers = self.askers.lock();
            if !askers.kept.is_empty() {
                askers.kept.push('\n');
            }
            askers.kept.push_str(typed);
            "what you typed is no answer to the question; it is in the next prompt\n"
        } else {
            "what you typed is no answer to the question and was not used\n"
        };
        // A failure cannot be reported anywhere.
        self.screen.write(Stream::Err, told).ok();
    }

    /// Returns whether a question was closed before its line was opened.
    fn was_closed(&self, asker: &Asker) -> bool {
        let askers = self.askers.lock();
        let open = askers.open_question.as_ref();
        open.is_some_and(|open| open.id == asker.id && open.is_closed)
    }

    /// Takes back a question that needs no answer any more, and says so if it is on the screen.
    fn close_question(&self, id: u64) {
        let mut askers = self.askers.lock();
        if let Some(open) = &mut askers.open_question
            && open.id == id
        {
            open.is_closed = true;
            self.is_closed.store(true, Ordering::Relaxed);
            // From now on the open line is a message, and output appears above it.
            self.screen.answer_becomes_message(CLOSED);
            return;
        }
        let waiting = &mut askers.waiting;
        let position = waiting.iter().position(|asker| asker.id == id);
        // A question that still has its text is not on the screen yet.
        if let Some(asker) = position.and_then(|position| waiting.remove(position))
            && asker.text.is_empty()
        {
            // A failure cannot be reported anywhere.
            self.screen.write(Stream::Err, CLOSED).ok();
        }
    }

    fn deliver(&self, mut asker: Asker, typed: Typed) {
        let mut askers = self.askers.lock();
        askers.open_question = None;
        if asker.kind == AskerKind::Question && typed == Typed::Interrupted {
            // The question stays open; whoever asked decides what the interrupt stops.
            self.interrupted.notify_one();
            return;
        }
        let waiting = &mut askers.waiting;
        let answered = waiting
            .iter()
            .position(|it| it.gets_next && !it.reply.is_closed());
        let is_message = asker.kind == AskerKind::Prompt || asker.reply.is_closed();
        if let (true, Typed::Line(_), Some(question)) = (is_message, &typed, answered)
            && let Some(question) = waiting.remove(question)
        {
            question.reply.send(typed).ok();
            if asker.kind == AskerKind::Prompt {
                asker.text.clear();
                waiting.push_front(asker);
            }
            return;
        }
        if let Err(typed) = asker.reply.send(typed) {
            self.keep(&mut askers, typed);
        }
    }

    /// Keeps a line that nobody wants any more, because its question was closed, for the next prompt.
    fn keep(&self, askers: &mut Askers, typed: Typed) {
        let Typed::Line(line) = typed else { return };
        if line.trim().is_empty() {
            return;
        }
        let told = if self.has_prompt.load(Ordering::Relaxed) {
            if !askers.kept.is_empty() {
                askers.kept.push('\n');
            }
            askers.kept.push_str(&line);
            "the question was closed, so your line is in the prompt: edit it there, or send it\n"
        } else {
            "the question was closed, and this run takes no messages: your line was not used\n"
        };
        self.screen.write(Stream::Err, told).ok();
    }
}

fn editor(shared: &InputShared) -> rustyline::Result<Editor<LineWatcher, MemHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .auto_add_history(false)
        .completion_type(CompletionType::List)
        .behavior(if std::io::stdout().is_terminal() {
            Behavior::Stdio
        } else {
            // The prompt must not go into the file that stdout is.
            Behavior::PreferTerm
        })
        .build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(LineWatcher {
        line: shared.line.clone(),
        is_closed: shared.is_closed.clone(),
        completion: shared.completion.clone(),
        is_message: shared.is_message.clone(),
    }));
    // A dumb terminal has none: there, output is printed as it comes.
    if let Ok(printer) = editor.create_external_printer() {
        shared.screen.set_printer(printer);
    }
    Ok(editor)
}

/// Keeps track of the line that is being typed, completes it, and shows when its question was closed.
struct LineWatcher {
    line: Arc<Mutex<String>>,
    is_closed: Arc<AtomicBool>,
    completion: LineCompletion,
    is_message: Arc<AtomicBool>,
}

impl Hinter for LineWatcher {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _context: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.line.lock());
        None
    }
}

impl Completer for LineWatcher {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if !self.is_message.load(Ordering::Relaxed) {
            return Ok((cursor, Vec::new()));
        }
        Ok(self.completion.complete(line, cursor))
    }
}

impl Highlighter for LineWatcher {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _is_default: bool,
    ) -> Cow<'b, str> {
        const CLOSED_PROMPT: &str = "(no answer is needed) > ";
        let width = prompt.chars().count();
        if self.is_closed.load(Ordering::Relaxed) && width >= CLOSED_PROMPT.len() {
            // The editor counts on the width of the prompt.
            return Cow::Owned(format!("{CLOSED_PROMPT:>width$}"));
        }
        Cow::Borrowed(prompt)
    }
}

impl Validator for LineWatcher {}

impl Helper for LineWatcher {}
