//! Attempts and waits, on a paused clock.

use std::collections::VecDeque;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::EndpointDescription;
use crate::error::{Rejection, TimeoutPhase};
use loopd_kernel::model::{Delivery, ModelInfo};

/// A provider that fails as told and then answers, showing one delta per attempt where told.
struct Flaky {
    failures: Mutex<VecDeque<ProviderError>>,
    shows: &'static str,
    takes: Duration,
}

impl Provider for Flaky {
    fn name(&self) -> &'static str {
        "flaky"
    }

    fn call<'a>(
        &'a self,
        _request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        async move {
            tokio::time::sleep(self.takes).await;
            sink.received(1);
            if !self.shows.is_empty() {
                sink.text(self.shows);
            }
            match self.failures.lock().pop_front() {
                Some(error) => Err(error),
                None => Ok(ModelReply::default()),
            }
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        futures::future::ready(Ok(Vec::new())).boxed()
    }

    fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            provider_type: "flaky",
            wire_api: None,
            base_url: None,
            path: None,
        }
    }
}

#[derive(Default)]
struct Heard {
    text: String,
    notices: Vec<(u32, u32, u128, Shown)>,
}

impl DeltaSink for Heard {
    fn text(&mut self, delta: &str) {
        self.text.push_str(delta);
    }
    fn reasoning(&mut self, _delta: &str) {}
    fn received(&mut self, _total_bytes: u64) {}
}

impl RetrySink for Heard {
    fn retrying(&mut self, notice: &RetryNotice<'_>) {
        self.notices.push((
            notice.attempt,
            notice.attempts,
            notice.wait.as_millis(),
            notice.shown,
        ));
    }
}

struct Outcome {
    result: Result<ModelReply, ProviderError>,
    heard: Heard,
    elapsed: Duration,
}

async fn run(failures: Vec<ProviderError>, shows: &'static str, takes: Duration) -> Outcome {
    let provider = Flaky {
        failures: Mutex::new(failures.into()),
        shows,
        takes,
    };
    let request = ModelRequest {
        model: "m".to_owned(),
        messages: Vec::new(),
        tools: Vec::new(),
        delivery: Delivery::Streamed,
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
        tool_use: loopd_kernel::model::ToolUse::Free,
        headers: Vec::new(),
    };
    let mut heard = Heard::default();
    let started = Instant::now();
    let policy = RetryPolicy::default();
    // Boxed, because the agent sends it to another thread.
    let result = call_with_retries(&policy, &provider, &request, &mut heard, &mut || 0.5)
        .boxed()
        .await;
    Outcome {
        result,
        heard,
        elapsed: started.elapsed(),
    }
}

fn rejected(kind: ErrorKind, status: u16, retry_after: Option<u64>) -> ProviderError {
    ProviderError::Rejected(Box::new(Rejection {
        kind,
        status: Some(status),
        message: "no".to_owned(),
        code: None,
        retry_after: retry_after.map(Duration::from_secs),
        provider_call_id: None,
    }))
}

fn broken() -> ProviderError {
    rejected(ErrorKind::Server, 500, None)
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_is_not_seen() {
    let outcome = run(vec![broken(), broken()], "", Duration::ZERO).await;
    assert!(outcome.result.is_ok());
    assert_eq!(
        outcome.heard.notices,
        [(1, 4, 100, Shown::Nothing), (2, 4, 300, Shown::Nothing)]
    );
    assert_eq!(outcome.elapsed.as_millis(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_lasting_fault_ends_after_four_attempts_within_three_seconds() {
    let outcome = run(vec![broken(); 9], "", Duration::ZERO).await;
    assert_eq!(outcome.result, Err(broken()));
    assert_eq!(outcome.heard.notices.len(), 3);
    assert_eq!(outcome.elapsed.as_millis(), 1300);
    let ceilings: Duration = (1..4)
        .map(|attempt| RetryPolicy::default().faults.ceiling(attempt))
        .sum();
    assert!(ceilings <= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_without_a_hint_gets_longer_waits() {
    let limited = rejected(ErrorKind::RateLimit, 429, None);
    let outcome = run(vec![limited.clone(); 9], "", Duration::ZERO).await;
    assert_eq!(outcome.result, Err(limited));
    let waits: Vec<u128> = outcome
        .heard
        .notices
        .iter()
        .map(|notice| notice.2)
        .collect();
    assert_eq!(waits, [500, 1000, 2000, 4000]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_a_provider_asks_for_is_kept() {
    let outcome = run(
        vec![rejected(ErrorKind::RateLimit, 429, Some(7))],
        "",
        Duration::ZERO,
    )
    .await;
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.elapsed, Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_wait_too_long_ends_the_call_at_once_and_is_named() {
    let outcome = run(
        vec![rejected(ErrorKind::RateLimit, 429, Some(3600))],
        "",
        Duration::ZERO,
    )
    .await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimit);
    assert!(error.to_string().contains("3600 s"), "{error}");
    assert_eq!(outcome.elapsed, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn lasting_errors_are_not_repeated() {
    for error in [
        rejected(ErrorKind::Authentication, 401, None),
        rejected(ErrorKind::Quota, 402, None),
        rejected(ErrorKind::ContextLimit, 400, None),
        rejected(ErrorKind::Query, 400, None),
        ProviderError::Misconfigured {
            detail: String::new(),
        },
        ProviderError::Malformed {
            detail: String::new(),
        },
        ProviderError::TooLarge { limit: 1 },
        ProviderError::Cancelled,
    ] {
        let outcome = run(vec![error.clone()], "", Duration::ZERO).await;
        assert_eq!(outcome.result, Err(error));
        assert!(outcome.heard.notices.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_already_shown_are_taken_back() {
    let cut = ProviderError::Truncated {
        detail: String::new(),
    };
    let outcome = run(vec![cut], "half", Duration::ZERO).await;
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.heard.notices, [(1, 4, 100, Shown::Discard)]);
    assert_eq!(outcome.heard.text, "halfhalf");
}

#[tokio::test(start_paused = true)]
async fn slow_failures_end_with_the_budget() {
    let stalled = ProviderError::Timeout {
        phase: TimeoutPhase::FirstByte,
        limit: Duration::from_secs(120),
    };
    let outcome = run(vec![stalled.clone(); 9], "", Duration::from_secs(160)).await;
    assert_eq!(outcome.result, Err(stalled));
    assert_eq!(outcome.heard.notices.len(), 1);
}

#[test]
fn waits_grow_to_their_cap_and_follow_the_random_part() {
    let policy = RetryPolicy {
        faults: Schedule {
            attempts: u32::MAX,
            first_wait: Duration::from_millis(500),
            factor: 2,
            longest_wait: Duration::from_secs(8),
        },
        ..RetryPolicy::default()
    };
    let waits = |part: f64| -> Vec<u128> {
        [1, 2, 5, 6, 100]
            .map(|attempt| {
                policy
                    .wait_after(&broken(), attempt, part)
                    .unwrap()
                    .as_millis()
            })
            .to_vec()
    };
    assert_eq!(waits(1.0), [500, 1000, 8000, 8000, 8000]);
    assert_eq!(waits(0.0), [0, 0, 0, 0, 0]);
    assert_eq!(waits(7.0), waits(1.0));
    assert_eq!(RetryPolicy::never().wait_after(&broken(), 1, 1.0), None);
}
