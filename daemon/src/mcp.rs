//! The MCP servers of sessions: which there are, and how they are run. `loopd_mcp` speaks with them.
//!
//! `lookup` finds out which servers a session has, `required` waits for those that an agent needs, `resolve` turns an entry into what is started,
//! `cell` holds the servers of a session and its sub-agents, `launcher` and `web` let them run below
//! the daemon's own processes and connections, `user_file` changes the user's own file.

mod cell;
pub mod conformance;
mod launcher;
mod lookup;
mod required;
mod resolve;
pub mod user_file;
mod web;

pub use cell::{KnownServer, McpCell, ServerState};
pub use launcher::ProcessLauncher;
pub use lookup::{AgentsAtWork, LookupMode, McpLookup, TokensOf};
pub use required::RequiredServers;
pub use resolve::{Variables, resolve};
pub use web::LaunchWeb;
