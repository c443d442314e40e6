//! The protocol of loopd: plain data (serde + schemars), the method table, the paths of a home and,
//! behind the feature `wire`, connections to a daemon. This crate knows nothing of the daemon's
//! internals or its database.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

pub mod attachment;
pub mod build_id;
#[cfg(feature = "wire")]
pub mod daemon_connection;
pub mod error;
pub mod event;
pub mod home_paths;
pub mod id;
mod json;
pub mod messages;
pub mod method;
pub mod misspelt;
pub mod params;
pub mod parse_error;
pub mod permission;
pub mod provider;
pub mod run_scope;
pub mod secret_variables;
pub mod session;
pub mod time;
pub mod visible;
#[cfg(feature = "wire")]
pub mod wire;

/// The version of the public wire protocol that `connect` and `ping` report.
pub const PROTOCOL_VERSION: u32 = 3;
