//! Parameters and results of the methods, one file per resource.

pub mod agent;
pub mod command;
pub mod daemon;
pub mod discovery;
pub mod event_log;
pub mod host;
pub mod inference;
pub mod launch;
pub mod metadata;
pub mod model;
pub mod pending;
pub mod permission;
pub mod process;
pub mod provider;
pub mod queue;
pub mod server;
pub mod session;
pub mod settings;
pub mod shell;
pub mod stored;
pub mod task;
pub mod tool;
pub mod ui;
pub mod usage;
pub mod workspace;
pub mod worktree;
