//! The protocol loopd speaks: plain data (serde + schemars), the method table, where the daemon of a
//! home is found and, behind the feature `wire`, the bytes and how to reach it. Nothing in here
//! knows the daemon's insides or a database.

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
pub mod home_paths;
pub mod id;
mod json;
pub mod method;
pub mod params;
pub mod permission;
pub mod provider;
#[cfg(feature = "wire")]
pub mod reach;
pub mod session;
pub mod time;
#[cfg(feature = "wire")]
pub mod wire;

/// The version of the public wire protocol that `connect` and `ping` report.
pub const PROTOCOL_VERSION: u32 = 3;
