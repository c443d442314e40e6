//! Tests of the whole daemon, in one binary: in-process ones in the modules beside this file, those
//! with real processes in `real`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own environment"
)]

mod abort;
mod agents_catalogue;
mod agents_killed;
mod architecture;
mod attach;
mod client_commands;
mod client_tools;
mod commands;
mod correlation;
mod daemon;
mod discovery;
mod effective_permissions;
mod errors;
mod event_log;
mod file_tools;
mod golden_logs;
mod launches;
mod metadata;
mod options;
mod pending;
mod permissions;
mod policy;
mod properties;
mod providers;
mod questions;
mod queue;
mod real;
mod reopened;
mod secrets;
mod send_and_wait;
mod session_limits;
mod sessions;
mod settings;
mod settings_race;
mod shell_policy;
mod shells;
mod slow_reader;
mod stored_sessions;
mod subagents;
mod tasks;
mod tool_stages;
mod turns;
mod uncommitted;
mod validator;
mod wire;
mod workspace;
mod worktrees;
