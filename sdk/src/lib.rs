//! The Rust client of loopd: connects to the daemon of a home or starts it, opens sessions, sends
//! messages, streams events, runs the caller's tools and answers the questions of sessions.
//!
//! The client is thin: the daemon owns the sessions and decides everything. When the connection
//! breaks, the client finds the daemon or starts it again and resumes its open sessions. Their event
//! streams go on where they stopped, without a gap or a repetition.
//!
//! ```no_run
//! # async fn example() -> Result<(), loopd_sdk::Error> {
//! use loopd_sdk::{Client, ConnectOptions, PermissionDecision, SessionConfig};
//!
//! let client = Client::connect(ConnectOptions::default()).await?;
//! let config = SessionConfig::new().on_permission(|_| async { PermissionDecision::ApproveOnce {} });
//! let session = client.create(config).await?;
//! let reply = session.send_and_wait("run echo hello").await?;
//! assert!(reply.text.contains("hello"));
//! session.destroy().await?;
//! # Ok(()) }
//! ```

mod client;
mod commands;
mod config;
mod connect_options;
mod connection;
mod context;
mod core;
mod error;
mod events;
mod feed;
mod fleet;
mod handler;
pub mod hooks;
mod queue;
mod rewind;
mod session;
mod stored;
mod tasks;
mod turn;
mod until_idle;

pub use client::Client;
pub use config::SessionConfig;
pub use connect_options::{ConnectOptions, DaemonPaths, StartPolicy, environment};
pub use error::Error;
pub use events::Events;
pub use handler::{PermissionAsked, PlanProposed, Tool, ToolInvocation, ToolOutput, UserInput};
pub use hooks::Hooks;
pub use queue::{KeepsWaiting, Stopped};
pub use rewind::Rewind;
pub use session::{Message, Session};
pub use stored::Import;
pub use turn::{CUT_WARNINGS, Reply, Turn, TurnOutcome, Wait};
pub use until_idle::UntilIdle;

/// The types of the protocol.
pub use loopd_proto as proto;
pub use loopd_proto::event::autopilot::{CompletionOutcome, StopReason, TaskComplete};
pub use loopd_proto::event::fact::ClientRef;
pub use loopd_proto::event::fleet::{FleetEnd, FleetProgress};
pub use loopd_proto::event::todo::{Todo, TodoList, TodoStatus};
pub use loopd_proto::event::{Body, Durable, Ephemeral, Event};
pub use loopd_proto::id::{AgentId, MessageId, RequestId, SessionId, TaskId};
pub use loopd_proto::params::autopilot::{AutopilotStatus, Paused};
pub use loopd_proto::params::command::{BegunWork, CommandInfo, Commands, Invoked};
pub use loopd_proto::params::completion::CompletionItem;
pub use loopd_proto::params::daemon::{Activity, DaemonStatus, DatabaseCheck, LiveSession};
pub use loopd_proto::params::discovery::{FileProblem, Skill, SkillSource};
pub use loopd_proto::params::fleet::FleetStatus;
pub use loopd_proto::params::hook_list::{
    HookActionKind, HookList, HookTestParams, HookTested, HooksAccepted, ListedHook,
    ListedHookState, TriedHook,
};
pub use loopd_proto::params::model::Choice;
pub use loopd_proto::params::pending::{ExitPlanMode, PlanAction};
pub use loopd_proto::params::process::{Process, ProcessClass, ProcessState};
pub use loopd_proto::params::queue::{Pending as PendingItems, PendingItem};
pub use loopd_proto::params::session::{Interrupted, ListFilter, Metadata, SendMode};
pub use loopd_proto::params::skill::FolderSkills;
pub use loopd_proto::params::task::{
    AgentInfo, AnswerRead, Progress, ShellInfo, Status as TaskStatus, TaskInfo, TaskNode, TaskRead,
};
pub use loopd_proto::params::trust::{TrustChanged, TrustItem, TrustItemKind, TrustShown};
pub use loopd_proto::params::ui::UserInputResponse;
pub use loopd_proto::params::usage::{LimitUsage, Metrics};
pub use loopd_proto::params::worktree::{Worktree, WorktreeContents, WorktreeUse};
pub use loopd_proto::permission::{
    AskReason, AskedBecause, PermissionDecision, PermissionRequest, PermissionRule,
};
pub use loopd_proto::session::{AutopilotOptions, LimitKind, Mode, SessionLimits, SessionOptions};

/// The version of the wire protocol this client speaks.
pub const PROTOCOL_VERSION: u32 = loopd_proto::PROTOCOL_VERSION;
