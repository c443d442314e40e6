//! Finds hooks: commands, addresses and prompts that people want run at points of a session.
//!
//! This module reads files into [`HookDefinition`]s and runs nothing. Which hooks are trusted and
//! when they run is decided elsewhere.

mod definition;
mod entry;
mod kind;
mod matcher;
mod members;
mod parse;
#[cfg(test)]
mod tests;
mod tool_names;

pub use definition::{HookAction, HookCondition, HookDefinition, HookOrigin, HookPlace, OnFailure};
pub use kind::{HookKind, MatchSubject, PayloadForm};
pub use matcher::HookMatcher;
pub use parse::{HookFile, HookFileContent, parse};
pub use tool_names::claude_names;
