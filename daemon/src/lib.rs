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

// Ways in, and what is asked for.
pub mod front;

// Who does it.
pub mod session;

pub mod turn;

pub mod services;

// Who asked.
pub mod launch;

pub mod config;
pub mod home;

// What it is done with.
pub mod tool;

pub mod subagent;

pub mod approvals;
pub mod discovery;

pub mod publish;

pub mod client;

// Values and small parts that everyone may use.
pub mod build_id;
pub mod redaction;
pub mod shutdown;
