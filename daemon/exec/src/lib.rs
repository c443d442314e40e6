//! Runs programs outside the daemon: processes, terminals, the shells of a session, git worktrees.
//!
//! `process` gives every process an owner and a lifetime, `sandbox` lets one read only. `terminal` runs one live shell, `shells`
//! manages the shells of one session, and `worktree` makes git worktrees for sub-agents. `clock`
//! and `keep_alive` are here because this is the lowest crate that needs them. `sys` is the one
//! module with `unsafe`. The crate decides no permission and writes no text for the model.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

pub mod clock;
pub mod keep_alive;
pub mod process;
pub mod sandbox;
pub mod shells;
pub mod sys;
pub mod terminal;
pub mod worktree;
