//! Defines what a session is and how it changes, without IO, clocks or randomness.
//!
//! `decide` turns a command into steps. `apply` folds stored events into the state. `context`
//! builds the conversation for the model from the state. The crate imports `proto`, `std` and serde
//! (for its data), and nothing else of the daemon.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

pub mod answer_cut;
pub mod apply;
pub mod autopilot;
pub mod budget;
pub mod changed_shells;
pub mod command;
pub mod compaction;
pub mod context;
pub mod context_parts;
pub mod context_size;
pub mod context_window;
pub mod decide;
mod effect;
pub mod fleet;
pub mod fold;
pub mod guards;
pub mod history;
pub mod hook;
mod in_force;
mod kept_scopes;
pub mod model;
pub mod policy;
pub mod prune;
pub mod questions;
pub mod research;
pub mod rewind;
pub mod run_limits;
pub mod skills;
pub mod state;
pub mod tasks;
pub mod texts;
pub mod todos;
pub mod tokens;
pub mod tool_call;
pub mod usage;
