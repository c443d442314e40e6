//! `loop` as a process, against the real daemon with its `offline` model, each test in a home of its
//! own. What has to come is waited for; whatever hangs is ended by the runner.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read what they like"
)]

#[cfg(unix)]
mod aborted_before;
mod agent_files;
mod agents;
mod answers;
mod attach_piped;
mod autopilot;
#[cfg(unix)]
mod chat;
mod context;
#[cfg(unix)]
mod conversation;
mod daemon;
mod doctor;
mod fleet;
mod home;
#[cfg(unix)]
mod hooks;
mod interrupt;
#[cfg(unix)]
mod kept_lines;
#[cfg(unix)]
mod kept_promises;
mod mcp;
mod model;
#[cfg(unix)]
mod modes;
mod own_environment;
#[cfg(unix)]
mod pane;
mod prompt;
#[cfg(unix)]
mod questions;
mod queue;
mod rewind;
mod run_agents;
mod run_ends;
mod sessions;
#[cfg(unix)]
mod shared_session;
mod slash;
mod tasks;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod unanswered;
mod worktrees;
