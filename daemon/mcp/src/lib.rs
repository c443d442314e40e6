//! MCP servers: programs and services that offer tools, resources and prompts to agents.
//!
//! A [`Host`] holds the servers of one session and its sub-agents. A server is started when it is first
//! needed and never awaited by anybody who does not need it; until it is there, the tools that it had
//! last time are offered. `port` is what the daemon provides: processes, HTTP, and the session.

mod asking;
mod cache;
mod calls;
pub mod config;
mod connection;
mod handler;
mod host;
mod http;
mod log;
pub mod naming;
pub mod oauth;
pub mod port;
mod prompts;
mod pushed;
mod result;
mod server;
mod shared;
mod stdio;
mod tap;
mod task;
mod tools;

pub use cache::ToolCache;
pub use calls::Progress;
pub use connection::{Call, CallError};
pub use host::{Host, OfferedTool, offered};
pub use log::ServerLog;
pub use prompts::{PromptArgument, ServerPrompt, prompt_text};
pub use pushed::PushedMessage;
pub use result::{Binary, CallResult};
pub use server::{Server, ServerStatus, StatusReport};
pub use shared::SharedServers;
pub use task::{Called, FollowedTask, StartedTask, TaskHandle};
pub use tools::{ServerTool, TaskSupport, ToolKind};
