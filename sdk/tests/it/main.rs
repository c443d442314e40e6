//! The client against the real daemon, with its `offline` model, each test in a home of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read what they like"
)]

mod done;
mod home;
mod hooks;
mod lost;
mod queue;
mod sessions;
mod together;
