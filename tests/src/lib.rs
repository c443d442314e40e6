//! The one harness of the daemon's tests: a whole daemon in this process, clients that speak the
//! raw wire, a scripted model over real HTTP, and a text form of what happened.
//!
//! A test starts a [`Script`] and a [`Daemon`], talks through a [`Client`] and its [`Session`]s, and
//! ends with [`Daemon::finish`], which folds every stored log again and compares it with the live
//! state: every test is a replay test. Nothing in here knows the sdk crate, so that it cannot hide a
//! bug of ours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a harness fails a test by panicking, and keeps the handles of what it spawns"
)]

pub mod binary;
pub mod client;
pub mod daemon;
pub mod dice;
pub mod held_store;
pub mod latch;
pub mod lifeline;
mod recorder;
mod replay;
pub mod script;
pub mod session;
pub mod transcript;
pub mod validator;

use std::time::Duration;

pub use client::Client;
pub use daemon::Daemon;
pub use held_store::{Commits, HeldCommit};
pub use latch::Latch;
pub use lifeline::Lifeline;
pub use recorder::ServerRequest;
pub use replay::assert_same;
pub use script::{Gate, Script, Turn, call};
pub use session::Session;

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that has to come, and says what it was when it does not.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}
