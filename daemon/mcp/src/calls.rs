//! The calls that run on a connection, and the reports of progress that belong to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::ProgressToken;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::port::CallRef;

/// The most reports of progress that wait for a call; further ones are dropped.
const MOST_PROGRESS: usize = 16;
/// The most reports of progress that came before anybody knew their call.
const MOST_UNCLAIMED: usize = 32;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

impl Progress {
    /// Returns the report in one line.
    pub fn text(&self) -> String {
        let amount = match self.total {
            Some(total) => format!("{}/{total}", self.done),
            None => self.done.to_string(),
        };
        match &self.message {
            Some(message) => format!("{message} ({amount})"),
            None => amount,
        }
    }
}

/// The calls that run on a connection.
#[derive(Default)]
pub(crate) struct Calls {
    inner: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    sinks: HashMap<ProgressToken, mpsc::Sender<Progress>>,
    unclaimed: VecDeque<(ProgressToken, Progress)>,
    /// What the calls belong to, each with a number of its own, and what is cancelled with each.
    labels: HashMap<u64, (CallRef, CancellationToken)>,
    next: u64,
    /// When the last call began or ended.
    used: Option<Instant>,
    /// Woken when the last call that runs has ended.
    rest: Arc<Notify>,
}

/// Takes the reports of progress of one call, as long as it lives.
pub(crate) struct CallGuard {
    calls: Arc<Calls>,
    number: u64,
    token: Option<ProgressToken>,
}

impl Calls {
    /// Notes that a call begins.
    pub(crate) fn begin(self: &Arc<Self>, label: CallRef) -> CallGuard {
        let mut running = self.inner.lock();
        running.next += 1;
        running.used = Some(Instant::now());
        let number = running.next;
        running
            .labels
            .insert(number, (label, CancellationToken::new()));
        CallGuard {
            calls: self.clone(),
            number,
            token: None,
        }
    }

    /// Returns since when no call runs; `None` if one does.
    pub(crate) fn rests_since(&self) -> Option<Instant> {
        let running = self.inner.lock();
        if running.labels.is_empty() {
            running.used
        } else {
            None
        }
    }

    /// Waits until no call runs.
    pub(crate) async fn rest(&self) {
        let rest = self.inner.lock().rest.clone();
        loop {
            let woken = rest.notified();
            tokio::pin!(woken);
            // A call that ends from now on is not missed.
            woken.as_mut().enable();
            if self.inner.lock().labels.is_empty() {
                return;
            }
            woken.await;
        }
    }

    /// Returns the call that a question of the server belongs to, the only one that runs, and what is
    /// cancelled when it ends.
    pub(crate) fn asker(&self) -> (CallRef, CancellationToken) {
        let running = self.inner.lock();
        let mut labels = running.labels.values();
        match (labels.next(), labels.next()) {
            (Some(only), None) => only.clone(),
            _ => (CallRef::default(), CancellationToken::new()),
        }
    }

    pub(crate) fn progress(&self, token: ProgressToken, progress: Progress) {
        let mut running = self.inner.lock();
        if let Some(sink) = running.sinks.get(&token) {
            // A report that does not fit is dropped: the next one says more.
            sink.try_send(progress).ok();
            return;
        }
        if running.unclaimed.len() >= MOST_UNCLAIMED {
            running.unclaimed.pop_front();
        }
        running.unclaimed.push_back((token, progress));
    }
}

impl CallGuard {
    /// Returns the reports of progress with this token, also those that have come already.
    pub(crate) fn listen(&mut self, token: ProgressToken) -> mpsc::Receiver<Progress> {
        let (sink, reports) = mpsc::channel(MOST_PROGRESS);
        let mut running = self.calls.inner.lock();
        running.unclaimed.retain(|(of, progress)| {
            let is_ours = *of == token;
            if is_ours {
                sink.try_send(progress.clone()).ok();
            }
            !is_ours
        });
        running.sinks.insert(token.clone(), sink);
        drop(running);
        self.token = Some(token);
        reports
    }
}

impl CallGuard {
    /// Returns the further reports of progress of a call that goes on after its answer; `None` if it was
    /// never listened to.
    pub(crate) fn listen_again(&mut self) -> Option<mpsc::Receiver<Progress>> {
        let token = self.token.clone()?;
        Some(self.listen(token))
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut running = self.calls.inner.lock();
        if let Some((_, ended)) = running.labels.remove(&self.number) {
            ended.cancel();
        }
        running.used = Some(Instant::now());
        if let Some(token) = &self.token {
            running.sinks.remove(token);
        }
        if running.labels.is_empty() {
            running.rest.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_comes_before_its_call_is_known_is_not_lost() {
        let calls = Arc::new(Calls::default());
        let token = || ProgressToken(rmcp::model::NumberOrString::Number(7));
        let progress = |done| Progress {
            done,
            total: Some(4.0),
            message: Some("counting".to_owned()),
        };
        calls.progress(token(), progress(1.0));
        let mut call = calls.begin(CallRef(Some("call".to_owned())));
        let mut reports = call.listen(token());
        calls.progress(token(), progress(2.5));
        assert_eq!(reports.try_recv(), Ok(progress(1.0)));
        let second = reports.try_recv();
        assert_eq!(
            second.map(|it| it.text()),
            Ok("counting (2.5/4)".to_owned())
        );
        assert_eq!(calls.asker().0, CallRef(Some("call".to_owned())));
        let ended = calls.asker().1;
        drop(call);
        assert!(calls.rests_since().is_some());
        assert_eq!(calls.asker().0, CallRef(None));
        assert!(ended.is_cancelled());
    }
}
