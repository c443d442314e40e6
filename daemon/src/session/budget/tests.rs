//! Who waits, who is woken, and what a cancelled call leaves behind.

use futures::FutureExt;
use loopd_proto::event::{Durable, Head};
use loopd_proto::id::SessionId;
use serde_json::json;

use super::*;
use loopd_kernel::apply::apply;

/// A session that may use so many tokens and has used so many.
fn session(limit: Option<u64>, used: u64) -> State {
    let mut state = State::new(SessionId::from("s"));
    let limits = limit.map(|limit| json!({ "maxTokens": limit }));
    let events = [
        json!({"type": "loopd.configured", "data": {"workingDirectory": "/", "options": {"sessionLimits": limits}}}),
        json!({"type": "loopd.usage", "data": {"model": "m", "durationMs": 1, "tokens": {"inputTokens": used,
            "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0, "reasoningTokens": 0}}}),
    ];
    for event in events {
        let event: Durable = serde_json::from_value(event).unwrap();
        let head = Head {
            id: "e".into(),
            timestamp: loopd_proto::time::Timestamp(0),
            parent_id: None,
            agent_id: None,
            ephemeral: None,
        };
        apply(&mut state, &head, &event);
    }
    state
}

fn budget(limit: u64) -> Arc<TreeBudget> {
    let budget = Arc::new(TreeBudget::default());
    budget.update(&session(Some(limit), 0));
    budget
}

fn call(input: u64, output: u64) -> CallEstimate {
    CallEstimate {
        input_tokens: input,
        output_limit: output,
        price: None,
        nano_credits: 0,
    }
}

fn now(budget: &Arc<TreeBudget>, input: u64, output: u64) -> Option<Reservation> {
    let reserved = budget.reserve(call(input, output), || ()).now_or_never();
    reserved.map(|reserved| reserved.ok().unwrap())
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_woken_when_another_settles() {
    let budget = budget(10_000);
    let first = now(&budget, 1_000, 5_000).unwrap();
    let second = now(&budget, 1_000, 2_000).unwrap();
    let mut third = Box::pin(budget.reserve(call(1_000, 5_000), || ()));
    assert!((&mut third).now_or_never().is_none(), "it waits");
    drop(second);
    let third = third.now_or_never().unwrap().ok().unwrap();
    assert_eq!(third.output_tokens, Some(3_000));
    assert_eq!(first.output_tokens, Some(5_000));
    drop((first, third));
    let book = budget.book.lock();
    assert_eq!((book.in_flight, book.reserved), (0, Spend::default()));
}

#[tokio::test]
async fn who_comes_later_does_not_overtake() {
    let budget = budget(10_000);
    let first = now(&budget, 1_000, 8_000).unwrap();
    let mut large = Box::pin(budget.reserve(call(5_000, 100), || ()));
    assert!((&mut large).now_or_never().is_none());
    let mut small = Box::pin(budget.reserve(call(10, 10), || ()));
    assert!((&mut small).now_or_never().is_none(), "it would fit");
    drop(first);
    assert!(large.now_or_never().is_some() && small.now_or_never().is_some());
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing() {
    let budget = budget(10_000);
    let first = now(&budget, 1_000, 8_000).unwrap();
    let mut waits = Box::pin(budget.reserve(call(5_000, 100), || ()));
    assert!((&mut waits).now_or_never().is_none());
    // It is granted, and dropped before it learns that.
    drop(first);
    drop(waits);
    let book = budget.book.lock();
    assert_eq!((book.in_flight, book.reserved), (0, Spend::default()));
}

#[tokio::test]
async fn the_limit_is_reached_by_what_is_settled_only() {
    let budget = budget(1_000);
    let last = now(&budget, 2_000, 8_000).unwrap();
    let mut waits = Box::pin(budget.reserve(call(1, 1), || ()));
    assert!((&mut waits).now_or_never().is_none());
    budget.update(&session(Some(1_000), 1_200));
    let refused = waits.now_or_never().unwrap().err().unwrap();
    let failure = refused.failure("m");
    assert_eq!(failure.code.as_deref(), Some("session_limits_tokens"));
    drop(last);
    // More is granted, or all of it.
    budget.update(&session(Some(9_000), 1_200));
    assert!(now(&budget, 1, 1).is_some());
    budget.update(&session(None, 1_200));
    assert!(!budget.is_limited());
    assert_eq!(now(&budget, 1, 1).unwrap().output_tokens, None);
}
