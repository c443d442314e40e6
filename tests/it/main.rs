//! Tests of the whole daemon, in one binary: in-process ones in the modules beside this file, those
//! with real processes in `real`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod abort;
mod attach;
mod client_tools;
mod errors;
mod event_log;
mod permissions;
mod policy;
mod questions;
mod queue;
mod sessions;
mod settings;
mod turns;
mod wire;
