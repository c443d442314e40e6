//! Hooks of clients and of files, over the wire: what each kind may change, and that a guard that is
//! absent or fails never lets a call through.

mod absent;
mod agent_guards;
mod answers;
mod app_folders;
mod asks;
mod calls;
mod changes;
mod claude_arguments;
mod commands;
mod cost;
mod edited;
#[cfg(target_os = "linux")]
mod flipped;
mod forged;
mod guards;
mod http;
mod joined;
mod lifted;
mod mcp_matchers;
mod missing_guard;
mod moved;
mod nested;
mod of_agent;
mod opened_below;
mod own_files;
#[cfg(target_os = "linux")]
mod own_flipped;
mod payloads;
mod permission;
mod prompts;
mod stop;
mod stopped;
mod support;
mod tree;
mod tried;
mod turned_off;
mod two_clients;
mod typed;

pub(crate) use support::{HookApp, HookReply, write_hooks};
