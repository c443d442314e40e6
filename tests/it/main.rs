//! Tests of the whole daemon, in one binary: in-process ones in the modules beside this file, those
//! with real processes in `real`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own environment"
)]

mod abort;
mod abort_own;
mod agent_memory;
mod agent_models;
mod agents_catalogue;
mod agents_killed;
mod agents_waiting;
mod approve_all;
mod architecture;
mod ask_rules;
mod attach;
mod auto_mode_switch;
mod autopilot;
mod budgets;
mod client_commands;
mod client_tools;
mod closed_files;
mod command_files;
mod commands;
mod context;
mod context_board;
mod correlation;
mod daemon;
mod declined_permissions;
mod denied_ways;
mod denied_writes;
mod discovery;
mod effective_permissions;
mod error_words;
mod errors;
mod event_log;
mod file_commands;
mod file_tools;
mod fleet;
mod forks;
mod full_disk;
mod golden_logs;
mod hook_files;
mod hooks;
mod incomplete;
mod instructions;
mod joiners;
mod killed_commands;
mod large_answers;
mod late_permissions;
mod launches;
mod limits;
mod lost_shells;
mod mcp;
mod members;
mod messages;
mod metadata;
mod opening;
mod options;
mod own_files;
mod pending;
mod permissions;
mod plan_mode;
mod policy;
mod properties;
mod protected_calls;
mod protected_home;
mod protected_named_by_git;
mod protected_repositories;
mod providers;
mod questions;
mod queue;
mod queue_edit;
mod queued_builtins;
mod queued_commands;
mod real;
mod reopened;
mod research;
mod rewind;
mod secrets;
mod send_and_wait;
mod session_files;
mod session_limits;
mod sessions;
mod settings;
mod settings_race;
mod settings_rules;
mod shell_policy;
mod shells;
mod silent_strangers;
mod skill_files;
mod skills;
mod slow_reader;
mod stopped_by_users;
mod stored_secrets;
mod stored_sessions;
mod strangers;
mod subagents;
mod tasks;
mod todos;
mod tool_stages;
mod trust;
mod turns;
mod typed_lines;
mod unattended;
mod uncommitted;
mod unusable_answers;
mod validator;
mod wire;
mod workspace;
mod workspace_diff;
mod worktrees;
