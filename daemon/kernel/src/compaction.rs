//! Compaction: which part of the conversation a summary replaces, and when one may begin.
//!
//! A compaction reads the conversation and leaves it as it is until its end. The end is two events
//! in one transaction: what the model reads instead, and that it succeeded. What came into the
//! conversation meanwhile stays behind the summary.

pub mod request;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};

use loopd_proto::event::compaction::{Compacting, CompactionComplete, CompactionTrigger};
use loopd_proto::event::turn::UserMessage;
use loopd_proto::id::{RequestId, Seq};

use super::command::RequestFacts;
use super::context_parts::without_time;
use super::history::{Entry, Stored};
use super::state::State;

/// How many of the last messages of people are kept, and how many characters of each.
const PROMPTS: usize = 12;
const PROMPT_CHARS: usize = 6_000;

/// After so many failures in a row no compaction begins by itself.
const MOST_FAILURES: u32 = 3;

/// The compactions of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compaction {
    pub running: Option<RunningCompaction>,
    /// Whether the turn waits for the one that is running.
    pub(crate) turn_waits: bool,
    /// How many have succeeded.
    pub count: u64,
    /// The last position in the log whose entry a summary has replaced.
    pub replaced_through: Option<Seq>,
    /// How many have failed since the last one that succeeded.
    failures: u32,
    /// How the last one ended.
    pub last: Option<CompactionEnd>,
    /// The last messages of people, oldest first.
    prompts: VecDeque<Prompt>,
}

/// A compaction that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCompaction {
    pub id: RequestId,
    /// The last position in the log whose entry the summary will replace.
    pub through: Seq,
    pub trigger: CompactionTrigger,
    pub instructions: Option<String>,
}

/// How a compaction ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionEnd {
    /// The position in the log of its end.
    pub at: Seq,
    /// How many tokens the conversation had then, by our own count.
    tokens: u64,
    pub complete: CompactionComplete,
}

/// A message of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub seq: Seq,
    pub text: String,
}

impl Compaction {
    pub(crate) fn began(&mut self, began: &Compacting) {
        self.running = Some(RunningCompaction {
            id: began.id.clone(),
            through: began.through,
            trigger: began.trigger,
            instructions: began.instructions.clone(),
        });
    }

    pub(crate) fn ended(&mut self, at: Seq, tokens: u64, complete: &CompactionComplete) {
        let running = self.running.take();
        self.turn_waits = false;
        if complete.success {
            let through = running.map(|running| running.through);
            self.replaced_through = through.or(self.replaced_through);
            self.count += 1;
            self.failures = 0;
        } else {
            self.failures += 1;
        }
        self.last = Some(CompactionEnd {
            at,
            tokens,
            complete: complete.clone(),
        });
    }

    /// Notes that the whole conversation was cleared.
    pub(crate) fn cleared(&mut self, at: Seq) {
        self.replaced_through = Some(at);
        self.failures = 0;
        self.prompts.clear();
    }

    /// Goes back to what was before an event that a rewind took back. Whether a compaction is running is
    /// as it is: the rewind waited for its end.
    pub(crate) fn take_back(&mut self, before: Self) {
        *self = Self {
            running: self.running.take(),
            turn_waits: self.turn_waits,
            ..before
        };
    }

    /// Keeps what a person wrote.
    pub(crate) fn prompted(&mut self, seq: Seq, message: &UserMessage) {
        let text = message.transformed_content.as_ref();
        let text = without_time(text.unwrap_or(&message.content));
        if text.is_empty() {
            return;
        }
        if self.prompts.len() >= PROMPTS {
            self.prompts.pop_front();
        }
        let text = middle_left_out(text, PROMPT_CHARS);
        self.prompts.push_back(Prompt { seq, text });
    }

    /// Returns the last messages of people up to a position in the log, oldest first.
    pub fn prompts_through(&self, through: Seq) -> impl DoubleEndedIterator<Item = &Prompt> {
        let prompts = self.prompts.iter();
        prompts.filter(move |prompt| prompt.seq <= through)
    }
}

/// Returns the beginning and the end of a long text.
pub(crate) fn middle_left_out(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    let (head, tail) = (chars / 3 * 2, chars / 3);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!(
        "{start}\n[{} characters are left out here]\n{end}",
        count - head - tail
    )
}

/// What is done about a request that is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// The model is called.
    None,
    /// The model is called while a compaction goes on.
    Beside(Seq),
    /// The model is called after a compaction.
    Before(Seq),
    /// The model is called after the compaction that is running.
    AfterRunning,
}

/// Returns what has to be done before a model call goes out. A compaction replaces the conversation
/// through the position that comes with it.
pub fn protection(state: &State, facts: &RequestFacts) -> Protection {
    if !facts.rules.enabled {
        return Protection::None;
    }
    let (size, rules, window) = (facts.size, facts.rules, facts.window);
    let blocking_at = rules.blocking_at(window);
    // What the conversation does not take cannot be won by a summary of it.
    let helps = size.system + size.tools < blocking_at;
    // What the last call used says nothing if most of it does not come again: arguments over their limit
    // are not kept, and old results are shortened.
    let overflowed = facts.overflowed && size.total() >= rules.background_at(window) / 2;
    let blocks = helps && (size.total() >= blocking_at || overflowed);
    if state.compaction.running.is_some() {
        return if blocks {
            Protection::AfterRunning
        } else {
            Protection::None
        };
    }
    if !blocks && size.total() < rules.background_at(window) {
        return Protection::None;
    }
    let Some(through) = state.compactable(facts.own_limit()) else {
        return Protection::None;
    };
    if state.compaction.failures >= MOST_FAILURES {
        return Protection::None;
    }
    if blocks && state.has_answered_since_compaction() {
        return Protection::Before(through);
    }
    let grown = state.compaction.last.as_ref().is_none_or(|last| {
        let least = last.tokens.saturating_add(facts.own_limit() / 10);
        state.conversation_tokens() >= least
    });
    if grown {
        Protection::Beside(through)
    } else {
        Protection::None
    }
}

impl State {
    /// Returns the last position whose entry a summary would replace; `None` if there is nothing to
    /// summarise. `limit` is the most tokens of a request, by our own count.
    ///
    /// What the model has not answered yet stays as it is, unless it is a large part of the window. A
    /// call is never separated from its result.
    pub fn compactable(&self, limit: u64) -> Option<Seq> {
        let entries = self.history.stored();
        let last = entries.iter().rposition(is_answer);
        let unread = last.map_or(0, |last| {
            if has_calls(entries, last) {
                last
            } else {
                last + 1
            }
        });
        let rest = entries.get(unread..).unwrap_or_default();
        let tokens: u64 = rest.iter().map(Stored::tokens).sum();
        let keeps = tokens <= limit / 4 || !calls_are_done(entries, last);
        let end = if keeps { unread } else { entries.len() };
        let replaced = entries.get(..end).unwrap_or_default();
        replaced.iter().find(|stored| is_answer(stored))?;
        replaced.last().map(|stored| stored.seq)
    }

    /// Returns whether the model has answered since the last compaction ended, well or not.
    pub fn has_answered_since_compaction(&self) -> bool {
        let Some(last) = &self.compaction.last else {
            return true;
        };
        let mut later = self.history.after(last.at);
        later.any(|entry| matches!(entry, Entry::Assistant(_)))
    }

    /// Returns whether the last model call used more than its model takes beside the longest answer:
    /// the tokens of its request, those from a cache among them, and of its answer.
    pub fn has_overflowed(&self, prompt_limit: u64) -> bool {
        let last = self.totals.last_call;
        let used = last.input_tokens.saturating_add(last.output_tokens);
        self.context_size.is_current() && used > prompt_limit
    }
}

fn is_answer(stored: &Stored) -> bool {
    matches!(stored.entry, Entry::Assistant(_))
}

fn has_calls(entries: &[Stored], at: usize) -> bool {
    let entry = entries.get(at).map(|stored| &stored.entry);
    matches!(entry, Some(Entry::Assistant(turn)) if !turn.calls.is_empty())
}

/// Whether every call of the last answer has its result.
fn calls_are_done(entries: &[Stored], last: Option<usize>) -> bool {
    let Some(last) = last else {
        return true;
    };
    let mut later = entries.iter().skip(last);
    let Some(Entry::Assistant(turn)) = later.next().map(|stored| &stored.entry) else {
        return true;
    };
    let done: HashSet<_> = later
        .filter_map(|stored| match &stored.entry {
            Entry::Result { call, .. } => Some(call),
            Entry::User(_) | Entry::Assistant(_) | Entry::Image { .. } => None,
        })
        .collect();
    turn.calls.iter().all(|call| done.contains(&call.id))
}
