//! loopd: one background daemon that owns AI agent sessions.
//!
//! The modules are listed in the order in which data meets them; each may use only those below it
//! (see ARCHITECTURE.md).

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

// The process: from arguments to parts put together.
pub mod app;
pub mod args;
pub mod background;
pub mod relay;

// Ways in.
pub mod transport;

// What is asked for.
pub mod rpc;

// Who does it.
pub mod session;

pub mod agent;
pub mod services;

// Who asked.
pub mod connection;
pub mod launch;

pub mod config;
pub mod home;

// Whom work can be handed to.
pub mod roster;

// What it is done with.
pub mod approvals;
pub mod discovery;
pub mod gate;
pub mod provider;
pub mod tool;

// The agents of sessions.
pub mod agents;

// The commands of sessions.
pub mod jobs;

pub mod shell;

pub mod worktree;

pub mod process;
pub mod publish;

// Values and small parts that everyone may use.
pub mod build_id;
pub mod ports;
pub mod presence;
pub mod redaction;
pub mod shutdown;
pub mod sys;

// The functional core.
pub mod kernel;
