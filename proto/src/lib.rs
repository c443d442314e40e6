//! The protocol loopd speaks: plain data (serde + schemars), the method table and, behind the
//! feature `wire`, the bytes. Nothing in here knows a daemon, a socket path or a database.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

pub mod attachment;
pub mod error;
pub mod event;
pub mod id;
mod json;
pub mod method;
pub mod params;
pub mod permission;
pub mod provider;
pub mod session;
pub mod time;
#[cfg(feature = "wire")]
pub mod wire;

/// The version of the public wire protocol that `connect` and `ping` report.
pub const PROTOCOL_VERSION: u32 = 3;
