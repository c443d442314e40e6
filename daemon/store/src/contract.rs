//! What every [`Store`] promises, as checks that any backend must pass.
//!
//! The tests of a backend run each of [`CHECKS`] on a fresh [`Subject`]. A check fails with a
//! sentence and never panics, so that a test can also show that a check fails.

mod failure;
mod order;
mod reading;
mod sessions;
mod values;
mod writing;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{Store, StoreError};
pub(crate) use values::{batch, event, record};

/// The longest that a check may take.
const BOUND: Duration = Duration::from_secs(60);

/// How much room a backend has for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Free,
    /// An event of a mebibyte does not fit.
    Full,
}

/// An empty store, and what a check has to see of it or do to it.
pub trait Subject: Send + Sync {
    fn store(&self) -> &dyn Store;

    /// Counts the transactions of the store, successful or not.
    fn commits(&self) -> u64;

    /// Makes at least the next large write fail for lack of room, or makes room again.
    fn set_space(&self, space: Space);

    /// Opens a second store on the same data, as after a crash of the first one; `None` when the
    /// data ends with the store.
    fn reopen(&self) -> BoxFuture<'_, Option<Arc<dyn Store>>>;
}

/// Which promise a backend broke, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self(format!("an operation that must succeed failed: {error}"))
    }
}

type Verdict = Result<(), Broken>;

/// One promise of a store.
pub struct Check {
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Subject) -> BoxFuture<'a, Verdict>,
}

impl Check {
    /// Checks a subject that nothing else has used.
    pub async fn run(&self, subject: &dyn Subject) -> Result<(), Broken> {
        let late = || Broken(format!("no answer within {} seconds", BOUND.as_secs()));
        let run = (self.run)(subject);
        let verdict = tokio::time::timeout(BOUND, run).await;
        verdict.unwrap_or_else(|_| Err(late()))
    }
}

macro_rules! checks {
    ($($file:ident: $($name:ident)*;)*) => {
        &[$($(Check {
            name: stringify!($name),
            run: |subject| $file::$name(subject).boxed(),
        }),*),*]
    };
}

/// Every promise.
pub const CHECKS: &[Check] = checks! {
    order:
        writes_are_queued_at_the_call
        a_write_is_done_when_its_future_is_dropped
        all_kinds_of_writes_keep_one_order
        writes_that_wait_share_a_commit
        what_was_acknowledged_is_read
        a_record_and_its_log_are_of_one_moment;
    writing:
        what_is_appended_is_loaded_unchanged
        a_batch_must_start_where_the_log_ends
        a_batch_that_conflicts_fails_alone
        a_batch_with_a_gap_changes_nothing
        a_batch_without_events_changes_the_record_only;
    reading:
        reading_starts_after_a_position_and_stops_at_the_limit
        records_are_listed_the_last_modified_first
        a_prefix_finds_at_most_two_sessions_of_people
        a_search_finds_the_newest_fitting_event_of_each_session
        facts_are_set_replaced_and_removed_by_scope
        the_size_of_a_session_is_the_bytes_of_its_events;
    sessions:
        deleting_removes_the_log_and_nothing_else
        truncating_removes_the_tail_only
        a_fork_starts_with_the_same_events_and_goes_its_own_way
        a_fork_that_is_refused_changes_nothing;
    failure:
        a_failed_write_changes_nothing
        a_failed_write_is_not_acknowledged
        reads_go_on_after_a_failed_write
        writes_go_on_when_there_is_room_again
        what_was_acknowledged_survives_a_crash
        closing_finishes_what_is_queued
        a_closed_store_refuses_everything;
};

fn ensure(holds: bool, promise: &str) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(Broken(promise.to_owned()))
    }
}

fn ensure_eq<T: PartialEq<U> + Debug, U: Debug>(found: T, wanted: U, what: &str) -> Verdict {
    if found == wanted {
        Ok(())
    } else {
        Err(Broken(format!("{what}: {found:?} instead of {wanted:?}")))
    }
}

/// Checks that an operation failed in the right way.
fn ensure_fails<T: Debug>(
    answer: &Result<T, StoreError>,
    is_right: impl Fn(&StoreError) -> bool,
    wanted: &str,
) -> Verdict {
    match answer {
        Err(error) if is_right(error) => Ok(()),
        other => Err(Broken(format!(
            "{wanted} is due, but the answer is {other:?}"
        ))),
    }
}

/// The texts of a session's log, in order; none when there is no such session.
async fn log(store: &dyn Store, id: &str) -> Result<Vec<String>, Broken> {
    let loaded = store.load(&id.into()).await?;
    let events = loaded.map(|(_, events)| events).unwrap_or_default();
    Ok(events.iter().map(|event| event.json.to_string()).collect())
}
