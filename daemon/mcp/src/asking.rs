//! Waits that do not count while a person is asked: for a form, or for a login.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How long people may take in all.
const LONGEST: Duration = Duration::from_secs(3600);

/// The questions that are open on a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking(Arc<AtomicUsize>);

/// One question, as long as it is open.
pub(crate) struct OpenQuestion(Asking);

impl Asking {
    pub(crate) fn begin(&self) -> OpenQuestion {
        self.0.fetch_add(1, Ordering::AcqRel);
        OpenQuestion(self.clone())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open() > 0
    }

    /// Returns how many questions are open.
    pub(crate) fn open(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Waits for a future, but no longer than this without a question; `None` if it takes longer.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(future);
        let end = Instant::now() + LONGEST;
        loop {
            let waited = tokio::time::timeout_at(end.min(Instant::now() + limit), &mut future);
            if let Ok(done) = waited.await {
                return Some(done);
            }
            if !self.is_open() || Instant::now() >= end {
                return None;
            }
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_while_a_person_is_asked() {
        let asking = Asking::default();
        let limit = Duration::from_secs(1);
        let slow = tokio::time::sleep(Duration::from_secs(5));
        assert!(asking.within(limit, slow).await.is_none());
        let open = asking.begin();
        let slow = tokio::time::sleep(Duration::from_secs(5));
        assert!(asking.within(limit, slow).await.is_some());
        drop(open);
        assert!(!asking.is_open());
    }
}
