//! Finds hooks: commands, addresses and prompts that people want run at points of a session.
//!
//! [`load`] reads the files of all places into [`HookDefinition`]s and runs nothing. `trust` decides
//! which of them may run, and `hook` runs them.

mod agent;
mod definition;
mod entry;
mod guard_record;
mod kind;
mod load;
mod loaded_files;
mod local_http;
mod matcher;
mod mcp_names;
mod members;
mod named_files;
mod parse;
mod payload;
mod places;
mod policy;
mod tool_arguments;
mod tool_names;
mod uncovered;
mod unmatched;
mod unusable;

pub use agent::{folder_of_agent, of_agent};
pub use definition::{
    HookAction, HookCondition, HookDefinition, HookOrigin, HookPlace, HookSource, OnFailure,
};
pub use guard_record::GuardRecord;
pub use kind::{HookKind, MatchSubject, PayloadForm};
pub use load::{HookSwitch, LoadedHooks, load, load_file};
pub use local_http::{LOCAL_HTTP_VARIABLE, LocalHttp};
pub use matcher::HookMatcher;
pub use mcp_names::{claude_mcp_name, names_mcp_tool};
pub use members::repeated_member;
pub(in crate::discovery) use members::{FileText, Members};
pub use named_files::{is_unchanged, named_paths};
pub use parse::{HookFile, HookFileContent, HookText, parse};
pub use payload::claude_payload;
pub use places::{HeldFolder, HookPlaces, PROJECT_SETTINGS, UserHookPlaces};
pub use policy::PolicyFolders;
pub use tool_arguments::{own_arguments, patch_text, typed_command};
pub use tool_names::{TYPING_TOOL, claude_names, known_tools, runs_commands, shows_output};

#[cfg(test)]
#[expect(
    clippy::expect_used,
    clippy::panic,
    clippy::let_underscore_must_use,
    reason = "a failed step fails the test"
)]
mod tests;
