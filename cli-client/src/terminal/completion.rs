//! Completes the line that is being typed. The editor runs on a thread of its own and waits a moment;
//! a task asks the session.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use loopd_sdk::{CompletionItem, Session};
use parking_lot::Mutex;
use rustyline::completion::Pair;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long the editor waits for completions; typing goes on without them.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How many questions of the editor may wait. It asks one after the other.
const WAITING: usize = 4;

/// What the editor asks about a line. Clones share who is asked.
#[derive(Clone, Default)]
pub(super) struct LineCompletion(Arc<Mutex<Option<mpsc::Sender<Asked>>>>);

/// A line up to the cursor, and who wants its completions.
struct Asked {
    line: String,
    reply: SyncSender<Vec<CompletionItem>>,
}

/// Completes lines as long as it lives.
pub(crate) struct Completes {
    completion: LineCompletion,
    task: JoinHandle<()>,
}

impl Drop for Completes {
    fn drop(&mut self) {
        self.completion.0.lock().take();
        self.task.abort();
    }
}

impl LineCompletion {
    /// Lets a session complete lines.
    pub(super) fn by(&self, session: &Session) -> Completes {
        let (asks, mut asked) = mpsc::channel::<Asked>(WAITING);
        *self.0.lock() = Some(asks);
        let session = session.clone();
        let task = Handle::current().spawn(async move {
            while let Some(Asked { line, reply }) = asked.recv().await {
                let cursor = line.encode_utf16().count() as u64;
                // Without completions a line is typed in full; the next request tells what is wrong.
                let items = session.complete(line, cursor).await.unwrap_or_default();
                reply.try_send(items).ok();
            }
        });
        Completes {
            completion: self.clone(),
            task,
        }
    }

    /// Returns where the text begins that is replaced, and what may replace it.
    pub(super) fn complete(&self, line: &str, cursor: usize) -> (usize, Vec<Pair>) {
        let typed = line.get(..cursor).unwrap_or_default();
        let nothing = (cursor, Vec::new());
        // The daemon knows nothing to add to other lines.
        if !typed.trim_start().starts_with('/') {
            return nothing;
        }
        let asks = self.0.lock().clone();
        let (reply, items) = sync_channel(1);
        let line = typed.to_owned();
        let sent = asks.is_some_and(|asks| asks.try_send(Asked { line, reply }).is_ok());
        let items = sent
            .then(|| items.recv_timeout(LONGEST_WAIT).ok())
            .flatten();
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            return nothing;
        };
        let start = items.first().and_then(|item| item.range_start);
        let start = start.map_or(cursor, |units| byte_at(typed, units));
        let pairs = items.into_iter().map(|item| Pair {
            display: item.insert_text.trim().to_owned(),
            replacement: item.insert_text,
        });
        (start, pairs.collect())
    }
}

/// Returns the position in bytes of one that is given in UTF-16 code units.
fn byte_at(text: &str, units: u64) -> usize {
    let mut passed = 0;
    for (at, letter) in text.char_indices() {
        if passed >= units {
            return at;
        }
        passed += letter.len_utf16() as u64;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_units_of_the_protocol() {
        for (text, units, byte) in [
            ("/mod", 0, 0),
            ("é/mod", 1, 2),
            ("𝄞 /m", 3, 5),
            ("/m", 9, 2),
        ] {
            assert_eq!(byte_at(text, units), byte, "{text} {units}");
        }
    }

    #[test]
    fn without_a_session_nothing_is_completed() {
        let (start, found) = LineCompletion::default().complete("/mod", 4);
        assert_eq!((start, found.len()), (4, 0));
    }
}
