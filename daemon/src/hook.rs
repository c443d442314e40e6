//! Hooks: programs, addresses and clients that are asked or told when something happens in a
//! session.
//!
//! All hooks of one event run at the same time ([`HookContext::dispatch`]), and the strictest of
//! their answers counts. A guard that fails denies; any other hook that fails is reported, and the
//! session goes on.

mod answer;
mod background;
mod cell;
mod command;
mod compaction;
mod condition;
mod context;
mod effect;
mod event;
mod file_watch;
mod guard;
mod handler_name;
mod handlers;
mod http;
mod input;
mod mcp;
mod output;
mod prompt;
mod result;
mod sample;
mod stop;
mod transcript;
mod trial;
mod vocabulary;

pub use background::{BackgroundHandle, BackgroundHooks};
pub use cell::{HookCell, HookLookup, HooksFound};
pub use compaction::CompactionHooks;
pub use context::{HookAgent, HookContext, HookOutcome};
pub use guard::GuardEnd;
pub use handlers::{FileHook, HookClient, Hooks};
pub use input::HookInput;
pub use mcp::McpCallEnd;
pub use prompt::PromptEnd;
pub use result::review_kind;
pub use stop::ErrorHandling;
pub use transcript::Transcript;
pub use trial::{HookTrial, try_out};
