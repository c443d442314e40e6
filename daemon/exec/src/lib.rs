//! What runs outside the daemon: processes, terminals, the shells of a session, git worktrees.
//!
//! Every process has an owner and a lifetime, kept by `process`. `terminal` is one live shell,
//! `shells` are those of a session, `worktree` makes copies of repositories for sub-agents. `clock`
//! and `keep_alive` are here because this is the lowest crate that needs them; `sys` is the one
//! module with `unsafe`. The crate decides no permission and words nothing that a model reads.

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
pub mod shells;
pub mod sys;
pub mod terminal;
pub mod worktree;
