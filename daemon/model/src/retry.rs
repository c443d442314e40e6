//! Makes a model call again when a failure is likely to pass, within bounds of number and time.
//!
//! The daemon makes every model call through it. It honours the wait that a provider asks for, tells
//! its caller about each further attempt, and is given its random numbers. It never looks into
//! requests or replies, and it never repeats a call that must fail again.

use std::time::Duration;

use tokio::time::Instant;

use loopd_kernel::model::{ModelReply, ModelRequest};

use super::error::{ErrorKind, ProviderError};
use super::{DeltaSink, Provider};

/// How often and how patiently a call is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// For broken connections, stalls and errors of the server.
    pub faults: Schedule,
    /// For rate limits that do not say how long they last.
    pub rate_limits: Schedule,
    /// The longest wait a provider may ask for; beyond it the call fails at once.
    pub longest_wait: Duration,
    /// No further attempt begins once this much time would have passed since the first.
    pub budget: Duration,
}

/// Attempts with growing waits between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// All attempts, the first included.
    pub attempts: u32,
    /// The longest wait before the second attempt; the real one is a random part of it.
    pub first_wait: Duration,
    /// By how much each wait may exceed the one before.
    pub factor: u32,
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            // At most 0.2 + 0.6 + 1.8 s: a server that stays broken is reported within three seconds.
            faults: Schedule {
                attempts: 4,
                first_wait: Duration::from_millis(200),
                factor: 3,
                longest_wait: Duration::from_secs(8),
            },
            rate_limits: Schedule {
                attempts: 5,
                first_wait: Duration::from_secs(1),
                factor: 2,
                longest_wait: Duration::from_secs(8),
            },
            longest_wait: Duration::from_secs(60),
            budget: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// A policy that never repeats a call.
    pub fn never() -> Self {
        let once = Schedule {
            attempts: 1,
            first_wait: Duration::ZERO,
            factor: 1,
            longest_wait: Duration::ZERO,
        };
        Self {
            faults: once,
            rate_limits: once,
            ..Self::default()
        }
    }

    /// Decides how long to wait after a failed attempt, or that it was the last.
    fn wait_after(&self, error: &ProviderError, attempt: u32, part: f64) -> Option<Duration> {
        let schedule = self.schedule_for(error);
        if !error.is_retryable() || attempt >= schedule.attempts {
            return None;
        }
        match error.retry_after() {
            Some(asked) if asked > self.longest_wait => None,
            Some(asked) if !asked.is_zero() => Some(asked),
            _ => Some(schedule.ceiling(attempt).mul_f64(part.clamp(0.0, 1.0))),
        }
    }

    fn schedule_for(&self, error: &ProviderError) -> &Schedule {
        if error.kind() == ErrorKind::RateLimit {
            &self.rate_limits
        } else {
            &self.faults
        }
    }
}

impl Schedule {
    /// Gives the longest wait after a failed attempt.
    fn ceiling(&self, attempt: u32) -> Duration {
        let growth = self.factor.saturating_pow(attempt.saturating_sub(1));
        self.first_wait
            .saturating_mul(growth)
            .min(self.longest_wait)
    }
}

/// What the caller learns before another attempt.
#[derive(Debug)]
pub struct RetryNotice<'a> {
    /// The attempt that failed; the first is 1.
    pub attempt: u32,
    /// How many attempts an error of this kind gets.
    pub attempts: u32,
    pub wait: Duration,
    pub error: &'a ProviderError,
    pub shown: Shown,
}

/// Whether the failed attempt had already given pieces of a reply to the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// Clients must forget the pieces of this reply: the next attempt starts from its beginning.
    Discard,
}

/// A sink that is also told about further attempts.
pub trait RetrySink: DeltaSink {
    fn retrying(&mut self, notice: &RetryNotice<'_>);
}

/// Calls a provider until it answers, gives a lasting error or the policy is used up.
///
/// `random` gives numbers from 0 to 1; dropping the future cancels the call or the wait.
pub async fn call_with_retries(
    policy: &RetryPolicy,
    provider: &dyn Provider,
    request: &ModelRequest,
    sink: &mut dyn RetrySink,
    random: &mut (dyn FnMut() -> f64 + Send),
) -> Result<ModelReply, ProviderError> {
    let started = Instant::now();
    let mut attempt = 1;
    loop {
        let mut watched = WatchedSink {
            sink: &mut *sink,
            shown: Shown::Nothing,
        };
        let error = match provider.call(request, &mut watched).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let shown = watched.shown;
        let Some(wait) = policy.wait_after(&error, attempt, random()) else {
            return Err(error);
        };
        if started.elapsed() + wait > policy.budget {
            return Err(error);
        }
        tracing::debug!(attempt, ?wait, %error, "a model call is tried again");
        let attempts = policy.schedule_for(&error).attempts;
        sink.retrying(&RetryNotice {
            attempt,
            attempts,
            wait,
            error: &error,
            shown,
        });
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
}

/// Passes everything on and remembers whether a reader has seen something.
struct WatchedSink<'a> {
    sink: &'a mut dyn RetrySink,
    shown: Shown,
}

impl DeltaSink for WatchedSink<'_> {
    fn text(&mut self, delta: &str) {
        self.shown = Shown::Discard;
        self.sink.text(delta);
    }

    fn reasoning(&mut self, delta: &str) {
        self.shown = Shown::Discard;
        self.sink.reasoning(delta);
    }

    fn received(&mut self, total_bytes: u64) {
        self.sink.received(total_bytes);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
