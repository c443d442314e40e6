//! The progress of a sub-agent, taken from the events of its session: for clients that ask for it,
//! and for the output file.

use std::collections::VecDeque;

use loopd_kernel::texts;
use loopd_proto::event::Durable;
use loopd_proto::time::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::mpsc;

/// How many steps are kept.
const RECENT: usize = 20;
/// How many characters of one step are kept.
const STEP_CHARS: usize = 160;
/// The most lines that may wait to be written; further lines are dropped and counted.
const LINES: usize = 4_096;

/// The progress of a sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunProgress {
    pub latest_intent: Option<String>,
    pub recent: VecDeque<Activity>,
    pub tool_calls: u64,
    /// The calls that had a result, and those that were denied.
    pub succeeded: u64,
    pub denied: u64,
    pub tokens: u64,
    pub turns: u64,
}

impl RunProgress {
    /// Returns whether calls were denied and no other one had a result.
    pub fn was_denied_all(&self) -> bool {
        self.denied > 0 && self.succeeded == 0
    }
}

/// One step of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub message: String,
    pub at: Timestamp,
}

/// Observes the events that a child session stores.
#[derive(Debug)]
pub(super) struct Watcher {
    progress: Mutex<RunProgress>,
    lines: mpsc::Sender<String>,
    lost: Mutex<u64>,
}

impl Watcher {
    /// Makes a watcher, and the receiver of the lines for the output file.
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (lines, written) = mpsc::channel(LINES);
        let watcher = Self {
            progress: Mutex::default(),
            lines,
            lost: Mutex::default(),
        };
        (watcher, written)
    }

    fn progress_mut(&self) -> MutexGuard<'_, RunProgress> {
        self.progress.lock()
    }

    pub(super) fn progress(&self) -> RunProgress {
        self.progress_mut().clone()
    }

    /// Queues a line for the output file.
    pub(super) fn write(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            *self.lost.lock() += 1;
        }
    }

    /// Returns how many lines are missing in the output file.
    pub(super) fn lost(&self) -> u64 {
        *self.lost.lock()
    }

    fn step(&self, at: Timestamp, message: String, intent: Option<String>) {
        let mut progress = self.progress_mut();
        if let Some(intent) = intent {
            progress.latest_intent = Some(intent);
        }
        if progress.recent.len() >= RECENT {
            progress.recent.pop_front();
        }
        progress.recent.push_back(Activity { message, at });
    }

    /// Records an event that was stored in the child's log.
    pub(super) fn stored(&self, at: Timestamp, event: &Durable) {
        match event {
            Durable::UserMessage(message) => {
                self.write(format!("\n## Asked\n\n{}\n", message.content));
            }
            Durable::AssistantMessage(message) => {
                self.progress_mut().turns += 1;
                let said = message.content.trim();
                if !said.is_empty() {
                    let short = short(said);
                    self.step(at, short.clone(), Some(short));
                    self.write(format!("\n{said}\n"));
                }
            }
            Durable::ToolStart(start) => {
                self.progress_mut().tool_calls += 1;
                let what = describe(&start.tool_name, start.arguments.as_ref());
                self.write(format!("- {what}"));
                self.step(at, what.clone(), Some(what));
            }
            Durable::ToolComplete(complete) if complete.success => {
                self.progress_mut().succeeded += 1;
            }
            Durable::ToolComplete(complete) => {
                let code = complete.error.as_ref().and_then(|it| it.code.as_deref());
                if matches!(code, Some("denied" | texts::REJECTED_CODE)) {
                    self.progress_mut().denied += 1;
                }
                let error = complete.error.as_ref().map(|error| short(&error.message));
                let text = format!("  failed: {}", error.unwrap_or_default());
                self.write(text.clone());
                self.step(at, text.trim().to_owned(), None);
            }
            Durable::PermissionRequested(_) => {
                let text = "waits for permission".to_owned();
                self.step(at, text.clone(), Some(text));
            }
            Durable::SessionError(failure) => {
                self.write(format!("\nerror: {}\n", failure.message));
                self.step(at, short(&failure.message), None);
            }
            Durable::UsageRecorded(usage) => {
                let used = usage.tokens;
                let tokens = used.input_tokens.saturating_add(used.output_tokens);
                let mut progress = self.progress_mut();
                progress.tokens = progress.tokens.saturating_add(tokens);
            }
            _ => {}
        }
    }

    /// Records that the sub-agent waits for a slot.
    pub(super) fn queues(&self, at: Timestamp) {
        let text = "waits for a free slot".to_owned();
        self.step(at, text.clone(), Some(text));
    }

    /// Records that the sub-agent waits no longer for a slot.
    pub(super) fn begins(&self, at: Timestamp) {
        self.step(at, "begins".to_owned(), None);
        self.progress_mut().latest_intent = None;
    }
}

/// Describes a tool call in a few words: the tool and its most informative argument.
fn describe(tool: &str, arguments: Option<&Value>) -> String {
    let telling = [
        "intent",
        "description",
        "command",
        "path",
        "pattern",
        "url",
        "query",
        "name",
        "prompt",
    ];
    let argument = arguments.and_then(|arguments| {
        let mut found = telling
            .iter()
            .filter_map(|key| arguments.get(key)?.as_str());
        found.find(|text| !text.trim().is_empty())
    });
    match argument {
        Some(argument) => short(&format!("{tool}: {argument}")),
        None => tool.to_owned(),
    }
}

fn short(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    match line.char_indices().nth(STEP_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}
