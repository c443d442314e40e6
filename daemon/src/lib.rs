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

pub mod app;
pub mod args;
pub mod background;
pub mod build_id;
pub mod config;
pub mod home;
pub mod ports;
pub mod presence;
pub mod relay;
pub mod shutdown;
mod sys;

pub mod transport;

pub mod launch;
pub mod rpc;

pub mod session;

pub mod agent;

pub mod approvals;
pub mod gate;
pub mod provider;
pub mod tool;

pub mod publish;
pub mod store;

pub mod kernel;
