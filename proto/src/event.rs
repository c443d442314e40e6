//! Events: what happened in a session, as stored and as sent.
//!
//! Durable and ephemeral events are different types, so that nothing transient can be stored by
//! mistake and nothing durable published without being stored. Durable events named `loopd.*`
//! record facts for which the public schema has no event; they are folded like all others and
//! never sent to SDK connections.

pub mod agent;
pub mod ask;
pub mod autopilot;
pub mod budget;
pub mod compaction;
pub mod fact;
pub mod fleet;
pub mod hook;
pub mod mcp;
pub mod research;
pub mod rewind;
pub mod room;
pub mod session;
pub mod skill;
pub mod task;
pub mod todo;
pub mod tool;
pub mod turn;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::{AgentId, EventId};
use crate::time::Timestamp;

/// Declares an event enum with the wire name of each variant.
macro_rules! events {
    ($(#[$doc:meta])* $name:ident { $($wire:literal => $variant:ident($data:ty),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "data")]
        pub enum $name {
            $(#[serde(rename = $wire)] $variant($data),)*
        }

        impl $name {
            /// The event's name on the wire.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $wire,)*
                }
            }
        }
    };
}

events! {
    /// Events that are stored, folded into the state and sent. The log is the only truth.
    Durable {
        "session.start" => SessionStart(session::Start),
        "session.resume" => SessionResume(session::Resume),
        "session.shutdown" => SessionShutdown(session::Shutdown),
        "session.error" => SessionError(session::Failure),
        "session.info" => SessionInfo(session::Info),
        "session.warning" => SessionWarning(session::Warning),
        "session.model_change" => ModelChange(session::ModelChange),
        "session.mode_changed" => ModeChanged(session::ModeChanged),
        "session.plan_changed" => PlanChanged(session::PlanChanged),
        "session.workspace_file_changed" => FileChanged(session::FileChanged),
        "session.context_changed" => ContextChanged(session::WorkContext),
        "session.task_complete" => TaskComplete(autopilot::TaskComplete),
        "session.autopilot_stopped" => AutopilotStopped(autopilot::AutopilotStopped),
        "session.session_limits_changed" => LimitsChanged(budget::LimitsChanged),
        "session.compaction_start" => CompactionStart(compaction::CompactionStart),
        "session.compaction_complete" => CompactionComplete(Box<compaction::CompactionComplete>),
        "session.context_cleared" => ContextCleared(compaction::ContextCleared),
        "user.message" => UserMessage(turn::UserMessage),
        "system.message" => SystemMessage(turn::SystemMessage),
        "system.notification" => SystemNotification(task::SystemNotification),
        "assistant.turn_start" => TurnStart(turn::TurnStart),
        "assistant.message" => AssistantMessage(turn::AssistantMessage),
        "assistant.turn_end" => TurnEnd(turn::TurnEnd),
        "abort" => Abort(turn::Abort),
        "tool.execution_start" => ToolStart(tool::ToolStart),
        "tool.execution_complete" => ToolComplete(tool::ToolComplete),
        "external_tool.requested" => ExternalToolRequested(tool::ExternalToolRequested),
        "permission.requested" => PermissionRequested(ask::PermissionRequested),
        "permission.completed" => PermissionCompleted(ask::PermissionCompleted),
        "hook.end" => HookEnd(hook::HookEnd),
        "skill.invoked" => SkillInvoked(skill::SkillInvoked),
        "todo.updated" => TodosUpdated(todo::TodoList),
        "subagent.selected" => AgentSelected(session::AgentSelected),
        "subagent.deselected" => AgentDeselected(session::Empty),
        "subagent.started" => SubagentStarted(agent::SubagentStarted),
        "subagent.completed" => SubagentCompleted(agent::SubagentCompleted),
        "subagent.failed" => SubagentFailed(agent::SubagentFailed),
        "loopd.configured" => Configured(Box<fact::Configured>),
        "loopd.named" => Named(fact::Named),
        "loopd.permissions" => Permissions(fact::PermissionsSet),
        "loopd.rules_changed" => RulesChanged(fact::RulesChanged),
        "loopd.queued" => Queued(fact::Queued),
        "loopd.taken" => Taken(fact::Taken),
        "loopd.unqueued" => Unqueued(fact::Unqueued),
        "loopd.queue_moved" => QueueItemMoved(fact::QueueItemMoved),
        "loopd.queue_edited" => QueueItemEdited(fact::QueueItemEdited),
        "loopd.asked" => Asked(fact::Asked),
        "loopd.answered" => Answered(fact::Answered),
        "loopd.permission_unanswered" => PermissionUnanswered(fact::PermissionUnanswered),
        "loopd.reminded" => Reminded(fact::Reminded),
        "loopd.client_guard" => ClientGuard(hook::ClientGuard),
        "loopd.guard_folders" => GuardFolders(hook::GuardFolders),
        "loopd.vouched_hooks" => VouchedHooks(hook::VouchedHooks),
        "loopd.context_added" => ContextAdded(hook::ContextAdded),
        "loopd.hook_stopped" => HookStopped(hook::HookStopped),
        "loopd.stop_blocked" => StopBlocked(hook::StopBlocked),
        "loopd.loop_ended" => LoopEnded(fact::LoopEnded),
        "loopd.nudged" => Nudged(autopilot::Nudged),
        "loopd.autopilot_paused" => AutopilotPaused(autopilot::AutopilotPaused),
        "loopd.usage" => UsageRecorded(fact::UsageRecorded),
        "loopd.agent_spent" => AgentSpent(budget::AgentSpent),
        "loopd.time_up" => TimeUp(session::Empty),
        "loopd.clock_stopped" => ClockStopped(session::Empty),
        "loopd.provider_wait" => ProviderWait(budget::ProviderWait),
        "loopd.woken" => Woken(session::Empty),
        "loopd.making_room" => MakingRoom(room::MakingRoom),
        "loopd.pruned" => Pruned(room::Pruned),
        "loopd.files_refused" => FilesRefused(room::FilesRefused),
        "loopd.compacting" => Compacting(compaction::Compacting),
        "loopd.compacted" => Compacted(compaction::Compacted),
        "loopd.task_started" => TaskStarted(task::TaskStarted),
        "loopd.enlisted" => SubagentIdentity(Box<agent::SubagentIdentity>),
        "loopd.task_promoted" => TaskPromoted(task::TaskPromoted),
        "loopd.task_answered" => TaskAnswered(task::TaskAnswered),
        "loopd.task_continued" => TaskContinued(task::TaskContinued),
        "loopd.task_noted" => TaskNoted(task::TaskNoted),
        "loopd.task_process" => TaskProcess(task::TaskProcess),
        "loopd.task_ended" => TaskEnded(task::TaskEnded),
        "loopd.tasks_heard" => TasksDelivered(task::TasksDelivered),
        "loopd.tasks_removed" => TasksRemoved(task::TasksRemoved),
        "loopd.skills_preloaded" => SkillsPreloaded(skill::SkillsPreloaded),
        "loopd.skill_switched" => SkillSwitched(skill::SkillSwitched),
        "loopd.research_started" => ResearchStarted(research::ResearchStarted),
        "loopd.fleet_started" => FleetStarted(fleet::FleetStarted),
        "loopd.fleet_assigned" => FleetAssigned(fleet::FleetAssigned),
        "loopd.fleet_interrupted" => FleetInterrupted(fleet::FleetInterrupted),
        "loopd.fleet_settled" => FleetSettled(fleet::FleetSettled),
        "loopd.fleet_paused" => FleetPaused(session::Empty),
        "loopd.fleet_ended" => FleetEnded(fleet::FleetEnded),
        "loopd.rewind_started" => RewindStarted(rewind::RewindStarted),
        "loopd.rewound" => Rewound(rewind::Rewound),
        "loopd.rewind_failed" => RewindFailed(rewind::RewindFailed),
    }
}

events! {
    /// Events that are sent to the connected clients and not stored.
    Ephemeral {
        "session.idle" => SessionIdle(session::Idle),
        "session.title_changed" => TitleChanged(session::TitleChanged),
        "session.tools_updated" => ToolsUpdated(session::ToolsUpdated),
        "session.usage_info" => UsageInfo(session::UsageInfo),
        "session.info" => SessionInfo(session::Info),
        "session.warning" => SessionWarning(session::Warning),
        "session.error" => SessionError(session::Failure),
        "session.background_tasks_changed" => BackgroundTasksChanged(session::Empty),
        "session.todos_changed" => TodosChanged(session::Empty),
        "session.skills_loaded" => SkillsLoaded(skill::SkillsLoaded),
        "session.mcp_servers_loaded" => McpServersLoaded(mcp::ServersLoaded),
        "session.mcp_server_status_changed" => McpStatusChanged(mcp::StatusChanged),
        "mcp.tools.list_changed" => McpToolsChanged(mcp::ListChanged),
        "mcp.resources.list_changed" => McpResourcesChanged(mcp::ListChanged),
        "mcp.prompts.list_changed" => McpPromptsChanged(mcp::ListChanged),
        "mcp.oauth_required" => McpOauthRequired(Box<mcp::OauthRequired>),
        "mcp.oauth_completed" => McpOauthCompleted(mcp::OauthCompleted),
        "mcp_app.tool_call_complete" => McpAppCalled(mcp::AppToolCalled),
        "session.custom_agents_updated" => AgentsUpdated(session::AgentsUpdated),
        "pending_messages.modified" => PendingModified(session::Empty),
        "capabilities.changed" => CapabilitiesChanged(session::CapabilitiesChanged),
        "commands.changed" => CommandsChanged(ask::CommandsChanged),
        "command.queued" => CommandQueued(ask::CommandQueued),
        "command.execute" => CommandExecute(ask::CommandExecute),
        "command.completed" => CommandCompleted(ask::Completed),
        "assistant.idle" => AssistantIdle(turn::AssistantIdle),
        "assistant.message_start" => MessageStart(turn::MessageStart),
        "assistant.message_delta" => MessageDelta(turn::MessageDelta),
        "assistant.reasoning_delta" => ReasoningDelta(turn::ReasoningDelta),
        "assistant.streaming_delta" => StreamingDelta(turn::StreamingDelta),
        "assistant.turn_retry" => TurnRetry(turn::TurnRetry),
        "assistant.usage" => Usage(turn::Usage),
        "model.call_start" => ModelCallStart(turn::ModelCallStart),
        "model.call_failure" => ModelCallFailure(turn::ModelCallFailure),
        "tool.execution_partial_result" => ToolPartial(tool::ToolPartial),
        "tool.execution_progress" => ToolProgress(tool::ToolProgress),
        "external_tool.completed" => ExternalToolCompleted(ask::Completed),
        "user_input.requested" => UserInputRequested(ask::UserInputRequested),
        "user_input.completed" => UserInputCompleted(ask::UserInputCompleted),
        "exit_plan_mode.requested" => ExitPlanModeRequested(ask::ExitPlanModeRequested),
        "exit_plan_mode.completed" => ExitPlanModeCompleted(ask::ExitPlanModeCompleted),
        "auto_mode_switch.requested" => AutoModeSwitchRequested(ask::AutoModeSwitchRequested),
        "auto_mode_switch.completed" => AutoModeSwitchCompleted(ask::AutoModeSwitchCompleted),
        "session_limits_exhausted.requested" => LimitsExhaustedRequested(budget::LimitsExhaustedRequested),
        "session_limits_exhausted.completed" => LimitsExhaustedCompleted(budget::LimitsExhaustedCompleted),
        "elicitation.requested" => ElicitationRequested(ask::ElicitationRequested),
        "elicitation.completed" => ElicitationCompleted(ask::ElicitationCompleted),
        "hook.start" => HookStart(hook::HookStart),
        "hook.end" => HookEnd(hook::HookEnd),
        "hook.progress" => HookProgress(hook::HookProgress),
        "loopd.shell_waiting" => ShellWaiting(task::ShellWaiting),
        "loopd.autopilot_changed" => AutopilotChanged(autopilot::AutopilotPaused),
        "loopd.fleet_progress" => FleetProgress(fleet::FleetProgress),
        "session.snapshot_rewind" => SnapshotRewind(rewind::SnapshotRewind),
    }
}

/// Whether clients see a durable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Sent to clients as it is stored.
    Public,
    /// Folded into the state, never sent.
    Internal,
}

impl Durable {
    /// Returns whether clients see the event, or only the daemon.
    pub fn visibility(&self) -> Visibility {
        if self.kind().starts_with("loopd.") {
            Visibility::Internal
        } else {
            Visibility::Public
        }
    }
}

impl Ephemeral {
    /// Returns whether a slow reader can do without this event, because a later one repeats it.
    pub fn is_delta(&self) -> bool {
        matches!(
            self,
            Self::MessageDelta(_)
                | Self::ReasoningDelta(_)
                | Self::StreamingDelta(_)
                | Self::ToolPartial(_)
                | Self::ToolProgress(_)
        )
    }
}

/// An event of either kind.
#[derive(Debug, Clone)]
pub enum Body {
    Durable(Durable),
    Ephemeral(Ephemeral),
    /// A kind this build does not know.
    Unknown {
        kind: String,
        data: Box<RawValue>,
    },
}

impl Body {
    /// The event's name on the wire.
    pub fn kind(&self) -> &str {
        match self {
            Self::Durable(event) => event.kind(),
            Self::Ephemeral(event) => event.kind(),
            Self::Unknown { kind, .. } => kind,
        }
    }
}

/// The members that every event has besides its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub id: EventId,
    pub timestamp: Timestamp,
    /// The visible durable event before this one.
    pub parent_id: Option<EventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
}

/// An event as it is on the wire.
#[derive(Debug, Clone)]
pub struct Event {
    pub head: Head,
    pub body: Body,
}

#[derive(Serialize)]
struct Line<'a, B: Serialize> {
    // The tag comes first, so that reading needs no buffering.
    #[serde(flatten)]
    body: &'a B,
    #[serde(flatten)]
    head: &'a Head,
}

/// Writes an event as one line of JSON.
pub fn write<B: Serialize>(head: &Head, body: &B) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Line { body, head })
}

impl Event {
    /// Writes the event as one line of JSON, with the members that this build knows.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        match &self.body {
            Body::Durable(event) => write(&self.head, event),
            Body::Ephemeral(event) => write(&self.head, event),
            Body::Unknown { kind, data } => write(&self.head, &Tagged { kind, data }),
        }
    }
}

/// An event of a kind that this build does not know.
#[derive(Serialize)]
struct Tagged<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    data: &'a RawValue,
}

/// Parses a durable event. An unknown kind is an error.
pub fn read_durable(line: &str) -> Result<(Head, Durable), serde_json::Error> {
    Ok((serde_json::from_str(line)?, serde_json::from_str(line)?))
}

/// Parses any event. An unknown kind is kept unchanged.
pub fn read(line: &str) -> Result<Event, serde_json::Error> {
    #[derive(Deserialize)]
    struct Unknown {
        #[serde(rename = "type")]
        kind: String,
        data: Box<RawValue>,
    }
    let head: Head = serde_json::from_str(line)?;
    let known = if head.ephemeral == Some(true) {
        serde_json::from_str(line).map(Body::Ephemeral)
    } else {
        serde_json::from_str(line).map(Body::Durable)
    };
    let body = if let Ok(body) = known {
        body
    } else {
        let Unknown { kind, data } = serde_json::from_str(line)?;
        Body::Unknown { kind, data }
    };
    Ok(Event { head, body })
}
