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

// The process: from arguments to the assembled daemon.
pub mod app;
pub mod args;

// The front end: connections and the requests that they carry.
pub mod front;

// Carries out the requests.
pub mod session;

pub mod turn;

// Asks and tells those who want to know what happens in a session.
pub mod hook;

// The MCP servers of sessions.
pub mod mcp;

pub mod services;

// The launch that a request belongs to, and the settings.
pub mod launch;

pub mod config;
pub mod home;

// What sessions use.
pub mod tool;

pub mod subagent;

// The skills of sessions.
pub mod skill;

pub mod hook_times;

pub mod trust;

pub mod approvals;
pub mod discovery;
pub mod logins;

pub mod publish;

pub mod client;

// Values and small parts that every module may use.
pub mod picture;
pub mod redaction;
pub mod regular_file;
pub mod token_cache;
