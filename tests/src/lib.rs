//! The harness of the daemon's tests: a whole daemon in this process, clients that speak the raw
//! wire format, a scripted model over real HTTP, and transcripts of events.
//!
//! A test starts a [`Script`] and a [`Daemon`], and uses a [`Client`] and its [`Session`]s.
//! It ends with [`Daemon::finish`], which folds every stored log again and compares the result with
//! the live state. So every test is a replay test. The harness does not use the sdk crate, so that
//! the sdk cannot hide a bug of the daemon.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a harness fails a test by panicking, and keeps the handles of what it spawns"
)]

pub mod auth_server;
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
pub use replay::{assert_same, fold_lines};
pub use script::{Gate, Script, Turn, call};
pub use session::Session;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a future; after [`PATIENCE`] it panics and names what was waited for.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}
