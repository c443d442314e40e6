//! The table of methods that a client may call: name, parameters, result, one line of help.
//!
//! A method is a row here, a function in the daemon's `front/rpc/method/`, and a test. The daemon
//! does not start if a row has no handler.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::params::{
    agent, autopilot, command, completion, context, daemon, discovery, event_log, fleet, history,
    hook_list, host, inference, launch, mcp, messages, metadata, model, options, pending,
    permission, process, provider, queue, research, rewind, server, session, settings, shell,
    skill, stored, task, todo, tool, trust, ui, usage, workspace, worktree,
};
use crate::session::{SessionCreateParams, SessionOpened, SessionResumeParams};

/// One row of the table, as a type.
pub trait Method {
    const NAME: &'static str;
    type Params: DeserializeOwned + Send + 'static;
    type Result: Serialize + Send + 'static;
}

/// One row of the table, as data.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub help: &'static str,
}

macro_rules! methods {
    ($(#[doc = $help:literal] $name:literal $method:ident($params:ty) -> $result:ty;)*) => {
        $(
            #[doc = $help]
            #[derive(Debug, Clone, Copy)]
            pub struct $method;

            impl Method for $method {
                const NAME: &'static str = $name;
                type Params = $params;
                type Result = $result;
            }
        )*

        /// Every method, in the order of this file.
        pub const ALL: &[Row] = &[$(Row { name: $name, help: $help.trim_ascii() },)*];
    };
}

methods! {
    /// Opens the conversation: checks the token and reports the protocol version.
    "connect" Connect(server::ConnectParams) -> server::Connected;
    /// Replies, so that a client knows that the daemon is alive.
    "ping" Ping(server::PingParams) -> server::Pong;
    /// Reports the daemon's version.
    "status.get" StatusGet(server::NoParams) -> server::Status;
    /// Reports whether this launch has a token for the Copilot API.
    "auth.getStatus" AuthGetStatus(server::NoParams) -> server::AuthStatus;
    /// Ends the sessions of this launch and flushes; later requests of the launch fail.
    "runtime.shutdown" RuntimeShutdown(server::NoParams) -> ();
    /// Lists the models that a new session of this launch can use.
    "models.list" ModelsList(server::NoParams) -> model::Models;
    /// Lists the built-in tools.
    "tools.list" ToolsList(tool::ListParams) -> tool::ToolList;

    /// Lets the caller send the model requests of its launch in the daemon's place.
    "llmInference.setProvider" InferenceSetProvider(server::NoParams) -> session::Success;
    /// Delivers the status and headers of the response to such a model request.
    "llmInference.httpResponseStart" InferenceResponseStart(inference::ResponseStart) -> inference::Accepted;
    /// Delivers a part of such a response, its end, or the error that ended it.
    "llmInference.httpResponseChunk" InferenceResponseChunk(inference::ResponseChunk) -> inference::Accepted;

    /// Registers a launch with its directory, environment and flags; this connection joins it.
    "loopd.launch" LoopdLaunch(launch::LaunchParams) -> launch::Launched;
    /// Ends the sessions of this connection's launch, as `runtime.shutdown` does.
    "loopd.launchEnd" LoopdLaunchEnd(server::NoParams) -> ();

    /// Returns the provider and model that a new session of this launch would use.
    "loopd.modelChoice" LoopdModelChoice(model::ChoiceParams) -> model::Choice;
    /// Lists the files of agents, skills, instructions, hooks and MCP servers that cannot be used, and why.
    "loopd.discoveryProblems" LoopdDiscoveryProblems(discovery::ProblemsParams) -> discovery::Problems;
    /// Returns the daemon's version, process and live sessions.
    "loopd.daemonStatus" LoopdDaemonStatus(server::NoParams) -> daemon::DaemonStatus;
    /// Looks for damage in the database, within half a minute.
    "loopd.databaseCheck" LoopdDatabaseCheck(server::NoParams) -> daemon::DatabaseCheck;
    /// Stops the daemon after the reply, as a signal would; sessions are kept.
    "loopd.daemonStop" LoopdDaemonStop(server::NoParams) -> ();
    /// Lists the commands that the daemon runs as processes, the oldest first.
    "loopd.processList" LoopdProcessList(server::NoParams) -> process::ProcessList;
    /// Lists the worktrees of agents, each with the changes that its removal would lose.
    "loopd.worktreeList" LoopdWorktreeList(server::NoParams) -> worktree::WorktreeList;
    /// Removes a worktree that no agent uses; a changed one only when forced.
    "loopd.worktreeRemove" LoopdWorktreeRemove(worktree::WorktreeRemoveParams) -> ();
    /// Lists the hooks of files for sessions of a directory, and whether each runs.
    "loopd.hooks.list" LoopdHooksList(hook_list::HookListParams) -> hook_list::HookList;
    /// Runs the hooks of a file once, with payloads of made-up values.
    "loopd.hooks.test" LoopdHooksTest(hook_list::HookTestParams) -> hook_list::HookTested;
    /// Accepts the user's own files of hooks as they are now: guards that are not there any more are given up.
    "loopd.hooks.accept" LoopdHooksAccept(hook_list::HookListParams) -> hook_list::HooksAccepted;
    /// Lets a session go on without the apps whose hooks guard it and that are gone, until they come again.
    "loopd.hooks.lift" LoopdHooksLift(hook_list::GuardLiftParams) -> hook_list::GuardLifted;
    /// Shows what the project around a folder would bring: hooks, agents, MCP servers, permissions.
    "loopd.trust.show" LoopdTrustShow(trust::TrustShowParams) -> trust::TrustShown;
    /// Trusts a project with exactly what was shown.
    "loopd.trust.set" LoopdTrustSet(trust::TrustSetParams) -> trust::TrustChanged;

    /// Returns what the autopilot of a session does, and why it stopped last.
    "loopd.autopilot.status" LoopdAutopilotStatus(session::Of) -> autopilot::AutopilotStatus;
    /// Pauses the autopilot of a session, or lets it go on.
    "loopd.autopilot.pause" LoopdAutopilotPause(autopilot::PauseParams) -> autopilot::Paused;

    /// Creates a session and attaches the caller.
    "session.create" SessionCreate(SessionCreateParams) -> SessionOpened;
    /// Attaches the caller to a session, loading it when it is not in memory.
    "session.resume" SessionResume(SessionResumeParams) -> SessionOpened;
    /// Detaches the caller; when the last client detaches, the session ends and its log stays.
    "session.destroy" SessionDestroy(session::Of) -> session::Success;
    /// Does the same as `session.destroy`, under the name that newer clients use.
    "session.detach" SessionDetach(session::Of) -> session::Success;
    /// Deletes a session and its log.
    "session.delete" SessionDelete(session::Of) -> session::Deleted;
    /// Lists the stored sessions, the most recently changed first.
    "session.list" SessionList(session::ListParams) -> session::Listed;
    /// Describes one stored session.
    "session.getMetadata" SessionGetMetadata(session::Of) -> session::Found;
    /// Returns the id of the most recently changed session.
    "session.getLastId" SessionGetLastId(server::NoParams) -> session::LastId;
    /// Returns the id of the session that this launch has in the foreground.
    "session.getForeground" SessionGetForeground(server::NoParams) -> session::LastId;
    /// Sets the session that this launch has in the foreground.
    "session.setForeground" SessionSetForeground(session::Of) -> session::Deleted;
    /// Creates a session from the history of another one, whole or up to an event.
    "sessions.fork" SessionsFork(session::ForkParams) -> session::Forked;

    /// Replies when the effects of all earlier requests of the session are on disk.
    "sessions.save" SessionsSave(session::Of) -> server::NoResult;
    /// Ends a live session for all its clients; its log stays.
    "sessions.close" SessionsClose(session::Of) -> server::NoResult;
    /// Lists the stored sessions that match a filter, the most recently changed first.
    "sessions.list" SessionsList(stored::ListStoredParams) -> session::Listed;
    /// Finds the only session whose id begins with a prefix.
    "sessions.findByPrefix" SessionsFindByPrefix(stored::PrefixParams) -> session::LastId;
    /// Finds the session that belongs to an external task.
    "sessions.findByTaskId" SessionsFindByTaskId(stored::TaskParams) -> session::LastId;
    /// Finds the most recently changed session of a directory or repository.
    "sessions.getLastForContext" SessionsGetLastForContext(stored::ContextParams) -> session::LastId;
    /// Returns the size of each session in bytes.
    "sessions.getSizes" SessionsGetSizes(server::NoParams) -> stored::Sizes;
    /// Returns which of these sessions have clients.
    "sessions.checkInUse" SessionsCheckInUse(stored::IdsParams) -> stored::InUse;
    /// Ends and deletes sessions.
    "sessions.bulkDelete" SessionsBulkDelete(stored::IdsParams) -> stored::Freed;
    /// Completes partial descriptions of sessions.
    "sessions.enrichMetadata" SessionsEnrichMetadata(stored::Described) -> stored::Described;
    /// Does nothing: clients may keep locks on sessions, this daemon needs none.
    "sessions.releaseLock" SessionsReleaseLock(session::Of) -> server::NoResult;
    /// Deletes sessions that have not changed for some days.
    "sessions.pruneOld" SessionsPruneOld(stored::PruneParams) -> stored::Pruned;

    /// Adds values that are masked in the tool output of this launch from now on.
    "secrets.addFilterValues" SecretsAddFilterValues(host::AddFilterValuesParams) -> host::Ok;
    /// Declares that the caller stores the files of this launch's sessions.
    "sessionFs.setProvider" SessionFsSetProvider(host::SessionFilesParams) -> session::Success;
    /// Replaces the list of plugins that are built into the caller.
    "plugins.builtin.set" PluginsSetBuiltIn(host::PluginsParams) -> ();

    /// Lists the hooks of files of the user, of trusted projects, of plugins and of policy.
    "hooks.discover" HooksDiscover(hook_list::HooksParams) -> hook_list::DiscoveredHooks;
    /// Finds skills on disk.
    "skills.discover" SkillsDiscover(discovery::SkillsParams) -> discovery::Skills;
    /// Lists the folders in which skills are looked for.
    "skills.getDiscoveryPaths" SkillsGetDiscoveryPaths(discovery::SkillsParams) -> discovery::Paths<discovery::SkillPath>;
    /// Sets the skills that are disabled.
    "skills.config.setDisabledSkills" SkillsSetDisabled(discovery::DisabledSkillsParams) -> ();
    /// Disables one skill, or enables it again.
    "skills.config.setSkillDisabled" SkillsSetOneDisabled(skill::SkillDisabledParams) -> ();
    /// Lists the skills for sessions in a folder, and what is wrong with files.
    "loopd.skills" LoopdSkills(skill::FolderSkillsParams) -> skill::FolderSkills;
    /// Finds custom agents on disk.
    "agents.discover" AgentsDiscover(discovery::AgentsParams) -> discovery::Agents;
    /// Lists the folders in which custom agents are looked for.
    "agents.getDiscoveryPaths" AgentsGetDiscoveryPaths(discovery::AgentsParams) -> discovery::Paths<discovery::AgentPath>;
    /// Finds instructions on disk.
    "instructions.discover" InstructionsDiscover(discovery::InstructionsParams) -> discovery::Instructions;
    /// Lists the files and folders in which instructions are looked for.
    "instructions.getDiscoveryPaths" InstructionsGetDiscoveryPaths(discovery::InstructionsParams) -> discovery::Paths<discovery::InstructionPath>;
    /// Finds the MCP servers in configuration files, without starting them.
    "mcp.discover" McpDiscover(discovery::McpParams) -> discovery::McpServers;
    /// Lists the MCP servers of the user's own configuration.
    "mcp.config.list" McpConfigList(server::NoParams) -> mcp::ConfigList;
    /// Adds an MCP server to the user's own configuration.
    "mcp.config.add" McpConfigAdd(mcp::ConfigEntryParams) -> ();
    /// Replaces an MCP server of the user's own configuration.
    "mcp.config.update" McpConfigUpdate(mcp::ConfigEntryParams) -> ();
    /// Removes an MCP server from the user's own configuration.
    "mcp.config.remove" McpConfigRemove(mcp::ConfigNameParams) -> ();
    /// Lets new sessions use these MCP servers again.
    "mcp.config.enable" McpConfigEnable(mcp::ConfigNamesParams) -> ();
    /// Lets new sessions do without these MCP servers.
    "mcp.config.disable" McpConfigDisable(mcp::ConfigNamesParams) -> ();
    /// Does nothing: the configuration is read from the disk each time it is needed.
    "mcp.config.reload" McpConfigReload(server::NoParams) -> ();

    /// Queues a user message and replies at once.
    "session.send" SessionSend(session::SendParams) -> session::Sent;
    /// Queues a user message and replies when its turn is complete; cancelling ends the wait, not the turn.
    "session.sendAndWait" SessionSendAndWait(session::SendAndWaitParams) -> session::Completed;
    /// Stops the running turn and removes the caller's waiting messages; those of others run next.
    "session.abort" SessionAbort(session::AbortParams) -> session::Aborted;
    /// Stops the running turn and leaves background work alone; can keep what waits, and spare the turns of other messages.
    "session.interruptMainTurn" SessionInterruptMainTurn(session::InterruptParams) -> session::Interrupted;
    /// Stops all work and keeps the session for a later resume.
    "session.suspend" SessionSuspend(session::Of) -> ();
    /// Ends the session for all its clients, with a reason; its log stays.
    "session.shutdown" SessionShutdown(metadata::ShutdownParams) -> ();
    /// Returns the stored events of a session.
    "session.getMessages" SessionGetMessages(session::Of) -> event_log::Events;
    /// Adds a message for users to the session's log.
    "session.log" SessionLog(settings::LogParams) -> settings::Logged;

    /// Reads events from a cursor on, and can wait for new ones.
    "session.eventLog.read" EventLogRead(event_log::ReadParams) -> event_log::ReadResult;
    /// Returns the cursor after the last event.
    "session.eventLog.tail" EventLogTail(session::Of) -> event_log::Tail;
    /// Registers interest in a kind of event.
    "session.eventLog.registerInterest" RegisterInterest(event_log::InterestParams) -> event_log::Interest;
    /// Releases a registered interest.
    "session.eventLog.releaseInterest" ReleaseInterest(event_log::ReleaseParams) -> session::Success;

    /// Lists the queued items.
    "session.queue.pendingItems" QueuePendingItems(session::Of) -> queue::Pending;
    /// Moves a queued item to another position.
    "session.queue.moveItem" QueueMoveItem(queue::MoveItemParams) -> queue::Moved;
    /// Queues a message at a position.
    "session.queue.insertAt" QueueInsertAt(queue::InsertParams) -> queue::Inserted;
    /// Removes a queued item.
    "session.queue.removeAt" QueueRemoveAt(queue::ItemParams) -> queue::Removed;
    /// Changes the text of a queued message.
    "session.queue.updateText" QueueUpdateText(queue::UpdateTextParams) -> queue::Updated;
    /// Lets a queued message join the running turn before its next model call.
    "session.queue.sendNow" QueueSendNow(queue::ItemParams) -> queue::Steered;
    /// Takes back a message that has not been changed, unless a model may have read it.
    "session.queue.withdrawMessage" QueueWithdrawMessage(queue::WithdrawParams) -> queue::Withdrawn;
    /// Removes the item that was queued last.
    "session.queue.removeMostRecent" QueueRemoveMostRecent(session::Of) -> queue::Removed;
    /// Empties the queue.
    "session.queue.clear" QueueClear(session::Of) -> ();
    /// Queues a slash command for a client to run.
    "session.commands.enqueue" CommandsEnqueue(queue::EnqueueParams) -> queue::Enqueued;
    /// Reports the result of a queued command.
    "session.commands.respondToQueuedCommand" CommandsRespond(queue::RespondParams) -> session::Success;
    /// Reports that the caller has run a command that it was asked to run.
    "session.commands.handlePendingCommand" CommandsHandlePending(command::HandlePendingParams) -> command::Reported;
    /// Lists the slash commands of the session: the daemon's own and those of its clients.
    "session.commands.list" CommandsList(command::ListParams) -> command::Commands;
    /// Runs a slash command and returns its result.
    "session.commands.invoke" CommandsInvoke(command::InvokeParams) -> command::Invoked;
    /// Returns the characters after which a client should ask for completions: none in sessions on this machine.
    "session.completions.getTriggerCharacters" CompletionsTriggers(session::Of) -> completion::TriggerCharacters;
    /// Completes the name of a slash command, or of an agent after `/agents`.
    "session.completions.request" CompletionsRequest(completion::CompletionParams) -> completion::Completions;
    /// Runs a slash command and waits for its end, in its client or in the daemon.
    "session.commands.execute" CommandsExecute(command::ExecuteParams) -> command::Executed;

    /// Returns the session's name.
    "session.name.get" NameGet(session::Of) -> settings::NameResult;
    /// Names the session.
    "session.name.set" NameSet(settings::NameParams) -> ();
    /// Names the session, unless a person has named it.
    "session.name.setAuto" NameSetAuto(settings::SummaryParams) -> settings::Applied;
    /// Returns the mode.
    "session.mode.get" ModeGet(session::Of) -> crate::session::Mode;
    /// Sets the mode.
    "session.mode.set" ModeSet(settings::ModeParams) -> settings::ModeResult;
    /// Changes options of the session; if one cannot be changed, the error names it and none is changed.
    "session.options.update" OptionsUpdate(options::OptionsParams) -> session::Success;
    /// Returns the current model.
    "session.model.getCurrent" ModelGetCurrent(session::Of) -> model::Current;
    /// Sets the model, from the next model call on.
    "session.model.switchTo" ModelSwitchTo(model::SwitchParams) -> model::Switched;
    /// Sets the reasoning effort and keeps the model.
    "session.model.setReasoningEffort" ModelSetEffort(model::EffortParams) -> model::Effort;
    /// Lists the models that this session can use.
    "session.model.list" ModelList(session::Of) -> model::SessionModels;
    /// Adds providers and models to a running session.
    "session.provider.add" ProviderAdd(provider::AddParams) -> model::Models;
    /// Returns the endpoint of the session's model calls, with its key, if the launch allows it.
    "session.provider.getEndpoint" ProviderGetEndpoint(provider::EndpointParams) -> provider::Endpoint;
    /// Reads the plan.
    "session.plan.read" PlanRead(session::Of) -> settings::Plan;
    /// Writes the plan.
    "session.plan.update" PlanUpdate(settings::PlanParams) -> ();
    /// Removes the plan.
    "session.plan.delete" PlanDelete(session::Of) -> ();
    /// Returns the todo list as rows of the table `todos`.
    "session.plan.readSqlTodos" PlanReadSqlTodos(session::Of) -> todo::TodoRows;
    /// Returns the todo list as rows of the tables `todos` and `todo_deps`.
    "session.plan.readSqlTodosWithDependencies" PlanReadSqlTodosWithDependencies(session::Of) -> todo::TodoRowsWithDependencies;
    /// Returns the todo list as the tool `todoread` does, with what depends on what.
    "loopd.todos" LoopdTodos(session::Of) -> todo::TodosListed;
    /// Has a question looked into by several research agents; the model writes a report.
    "loopd.research" LoopdResearch(research::ResearchParams) -> research::ResearchBegun;
    /// Starts workers for the todos of the session, several at a time; a prompt is divided into todos first.
    "session.fleet.start" FleetStart(fleet::FleetStartParams) -> fleet::FleetStartResult;
    /// Stops the fleet and its workers; their todos wait again.
    "loopd.fleetStop" LoopdFleetStop(session::Of) -> fleet::FleetStopped;
    /// Returns how far the fleet of the session is, and how the last one ended.
    "loopd.fleetStatus" LoopdFleetStatus(session::Of) -> fleet::FleetStatus;

    /// Describes the session: its directory, start time, mode and model.
    "session.metadata.snapshot" MetadataSnapshot(session::Of) -> metadata::Snapshot;
    /// Returns whether the session is working.
    "session.metadata.isProcessing" MetadataIsProcessing(session::Of) -> metadata::Processing;
    /// Returns whether the session has work, and whether that can be aborted.
    "session.metadata.activity" MetadataActivity(session::Of) -> metadata::Activity;
    /// Sets the working directory of the session.
    "session.metadata.setWorkingDirectory" MetadataSetDirectory(metadata::DirectoryParams) -> metadata::Directory;
    /// Records the repository and branch that the session works on.
    "session.metadata.recordContextChange" MetadataRecordContext(metadata::ContextParams) -> server::NoResult;
    /// Returns how many tokens the next request has, and how many it may have.
    "session.metadata.contextInfo" MetadataContextInfo(context::ContextInfoParams) -> context::ContextInfoResult;
    /// Returns how many tokens the messages of the session have for a model.
    "session.metadata.recomputeContextTokens" MetadataRecomputeTokens(context::RecomputeParams) -> context::Recomputed;
    /// Returns what takes how much of the next request.
    "session.metadata.getContextAttribution" MetadataContextAttribution(session::Of) -> context::AttributionResult;
    /// Lists the largest messages of the conversation.
    "session.metadata.getContextHeaviestMessages" MetadataHeaviestMessages(context::HeaviestParams) -> context::Heaviest;
    /// Summarises the session in Markdown for whoever takes over; its model is asked beside the conversation.
    "session.history.summarizeForHandoff" HistorySummarize(session::Of) -> history::Handoff;
    /// Replaces the conversation by a summary of it, and answers when that is done or has failed.
    "session.history.compact" HistoryCompact(history::CompactParams) -> history::Compacted;
    /// Clears the conversation from inside of a tool call, and begins it anew with a message; the log keeps everything.
    "session.history.clearContext" HistoryClearContext(history::ClearParams) -> history::ClearedContext;
    /// Cancels a compaction that began by itself; the conversation stays as it is.
    "session.history.cancelBackgroundCompaction" HistoryCancelCompaction(session::Of) -> history::CompactionCancelled;
    /// Aborts a compaction that a client requested; the conversation stays as it is.
    "session.history.abortManualCompaction" HistoryAbortCompaction(session::Of) -> history::CompactionAborted;
    /// Lists the session as messages with parts, a page at a time.
    "loopd.messages" LoopdMessages(messages::MessagesParams) -> messages::MessagePage;
    /// Lists the user messages that the session can go back to.
    "session.history.listRewindPoints" HistoryListRewindPoints(session::Of) -> rewind::RewindPoints;
    /// Returns what a rewind to a user message would do to files.
    "session.history.previewRewind" HistoryPreviewRewind(rewind::EventParams) -> rewind::Preview;
    /// Takes the conversation back to a user message, and the files if that is wanted.
    "session.history.rewind" HistoryRewind(rewind::RewindParams) -> rewind::RewindResult;
    /// Takes the conversation back to an event; files stay as they are.
    "session.history.truncate" HistoryTruncate(rewind::EventParams) -> rewind::Truncated;
    /// Takes the conversation, the files or both back, undoes the last rewind, or says what that would do.
    "loopd.rewind" LoopdRewind(rewind::LoopdRewindParams) -> rewind::LoopdRewound;
    /// Returns the total usage of the session.
    "session.usage.getMetrics" UsageGetMetrics(session::Of) -> usage::Metrics;
    /// Lists the instructions that the model of this session is given.
    "session.instructions.getSources" InstructionsGetSources(session::Of) -> discovery::Instructions;

    /// Describes the workspace, the directory of the session's own files.
    "session.workspaces.getWorkspace" WorkspacesGet(session::Of) -> workspace::Found;
    /// Lists the files of the workspace.
    "session.workspaces.listFiles" WorkspacesListFiles(session::Of) -> workspace::Files;
    /// Reads a file of the workspace.
    "session.workspaces.readFile" WorkspacesReadFile(workspace::FileParams) -> workspace::Content;
    /// Creates or overwrites a file of the workspace.
    "session.workspaces.createFile" WorkspacesCreateFile(workspace::CreateParams) -> ();
    /// Lists the checkpoints of the session, the oldest first.
    "session.workspaces.listCheckpoints" WorkspacesListCheckpoints(session::Of) -> workspace::Checkpoints;
    /// Reads a checkpoint; null if there is none with this number.
    "session.workspaces.readCheckpoint" WorkspacesReadCheckpoint(workspace::CheckpointParams) -> workspace::CheckpointContent;
    /// Compares the files of the working directory with the last commit, a branch, or what they were before the session.
    "session.workspaces.diff" WorkspacesDiff(workspace::DiffParams) -> workspace::DiffResult;
    /// Saves a long pasted text as a file of the workspace.
    "session.workspaces.saveLargePaste" WorkspacesSavePaste(workspace::PasteParams) -> workspace::SavedPaste;

    /// Lists the skills of the session.
    "session.skills.list" SessionSkillsList(session::Of) -> skill::SkillList;
    /// Returns the skills that were loaded in the session.
    "session.skills.getInvoked" SessionSkillsGetInvoked(session::Of) -> skill::InvokedSkills;
    /// Puts a skill into use in this session.
    "session.skills.enable" SessionSkillsEnable(skill::SkillParams) -> ();
    /// Puts a skill out of use in this session.
    "session.skills.disable" SessionSkillsDisable(skill::SkillParams) -> ();
    /// Looks for skills again and says what is wrong with their files.
    "session.skills.reload" SessionSkillsReload(session::Of) -> skill::SkillDiagnostics;
    /// Looks for skills and replies when they are known.
    "session.skills.ensureLoaded" SessionSkillsEnsureLoaded(session::Of) -> ();

    /// Lists the agents of the session.
    "session.agent.list" AgentList(agent::ListParams) -> discovery::Agents;
    /// Returns the selected agent; null for the default one.
    "session.agent.getCurrent" AgentGetCurrent(session::Of) -> agent::Selected;
    /// Selects the agent that answers from now on.
    "session.agent.select" AgentSelect(agent::SelectParams) -> agent::Selected;
    /// Selects the default agent again.
    "session.agent.deselect" AgentDeselect(session::Of) -> server::NoResult;
    /// Reloads the agents and lists them; files that cannot be used are reported as warnings.
    "session.agent.reload" AgentReload(session::Of) -> discovery::Agents;

    /// Decides a permission request.
    "session.permissions.handlePendingPermissionRequest" PermissionsHandle(permission::HandleParams) -> session::Success;
    /// Lists the open permission requests.
    "session.permissions.pendingRequests" PermissionsPending(session::Of) -> permission::Pending;
    /// Turns the approval of everything on or off.
    "session.permissions.setApproveAll" PermissionsSetApproveAll(permission::EnabledParams) -> session::Success;
    /// Returns whether people are asked before tools run.
    "session.permissions.getMode" PermissionsGetMode(session::Of) -> permission::ModeNow;
    /// Sets whether people are asked before tools run.
    "session.permissions.setMode" PermissionsSetMode(permission::SetModeParams) -> permission::ModeSet;
    /// Replaces parts of the permission policy.
    "session.permissions.configure" PermissionsConfigure(permission::ConfigureParams) -> session::Success;
    /// Adds and removes rules.
    "session.permissions.modifyRules" PermissionsModifyRules(permission::ModifyRulesParams) -> session::Success;
    /// Sets whether the caller wants permission requests.
    "session.permissions.setRequired" PermissionsSetRequired(permission::RequiredParams) -> session::Success;
    /// Reports that a permission prompt is on a user's screen.
    "session.permissions.notifyPromptShown" PermissionsNotifyPromptShown(permission::PromptShownParams) -> session::Success;
    /// Removes the approvals of this session.
    "session.permissions.resetSessionApprovals" PermissionsReset(session::Of) -> session::Success;
    /// Lists the directories that file tools may use.
    "session.permissions.paths.list" PathsList(session::Of) -> permission::Paths;
    /// Adds a directory that file tools may use.
    "session.permissions.paths.add" PathsAdd(permission::PathParams) -> session::Success;
    /// Changes the primary directory.
    "session.permissions.paths.updatePrimary" PathsUpdatePrimary(permission::PathParams) -> session::Success;
    /// Returns whether a path is in an allowed directory.
    "session.permissions.paths.isPathWithinAllowedDirectories" PathsIsAllowed(permission::PathParams) -> permission::Allowed;
    /// Returns whether a path is in the primary directory.
    "session.permissions.paths.isPathWithinWorkspace" PathsIsInWorkspace(permission::PathParams) -> permission::Allowed;
    /// Lifts or restores the limits on URLs.
    "session.permissions.urls.setUnrestrictedMode" UrlsSetUnrestricted(permission::EnabledParams) -> session::Success;
    /// Finds the location that approvals for a directory belong to.
    "session.permissions.locations.resolve" LocationsResolve(permission::LocationParams) -> permission::Location;
    /// Stores an approval for a location.
    "session.permissions.locations.addToolApproval" LocationsAddApproval(permission::AddApprovalParams) -> session::Success;
    /// Applies a location's approvals to the session.
    "session.permissions.locations.apply" LocationsApply(permission::LocationParams) -> permission::LocationApplied;
    /// Returns whether the user trusts a folder.
    "session.permissions.folderTrust.isTrusted" FolderIsTrusted(permission::PathParams) -> permission::Trusted;
    /// Trusts a folder.
    "session.permissions.folderTrust.addTrusted" FolderAddTrusted(permission::PathParams) -> session::Success;

    /// Lists the tasks of the session, running and ended.
    "session.tasks.list" TasksList(session::Of) -> task::TaskList;
    /// Updates what is known of detached commands, then replies.
    "session.tasks.refresh" TasksRefresh(session::Of) -> server::NoResult;
    /// Returns the progress of a task.
    "session.tasks.getProgress" TasksGetProgress(task::TaskOf) -> task::ProgressResult;
    /// Returns the task that the loop waits for and that could be moved to the background.
    "session.tasks.getCurrentPromotable" TasksGetCurrentPromotable(session::Of) -> task::MaybeTask;
    /// Moves a task that the loop waits for to the background.
    "session.tasks.promoteToBackground" TasksPromote(task::TaskOf) -> task::Promoted;
    /// Moves the first task that the loop waits for to the background.
    "session.tasks.promoteCurrentToBackground" TasksPromoteCurrent(session::Of) -> task::MaybeTask;
    /// Stops a task.
    "session.tasks.cancel" TasksCancel(task::TaskOf) -> task::Cancelled;
    /// Removes an ended task from the list.
    "session.tasks.remove" TasksRemove(task::TaskOf) -> task::Removed;
    /// Waits until no task is running in the background and the session is idle.
    "session.tasks.waitForPending" TasksWaitForPending(session::Of) -> server::NoResult;
    /// Waits until the session is idle: its loop, its agents and its fleet have ended. Commands may still run.
    "loopd.waitIdle" LoopdWaitIdle(session::Of) -> server::NoResult;
    /// Sends a message to an agent in the background.
    "session.tasks.sendMessage" TasksSendMessage(task::MessageParams) -> task::MessageSent;
    /// Starts an agent in the background.
    "session.tasks.startAgent" TasksStartAgent(task::StartAgentParams) -> task::AgentStarted;
    /// Stops all running agents of the session and returns their number.
    "session.cancelAllBackgroundAgents" CancelAllBackgroundAgents(session::Of) -> u64;
    /// Returns the tasks of a session and of its agents as a tree, with their usage so far.
    "loopd.taskTree" LoopdTaskTree(session::Of) -> task::TaskTree;
    /// Returns the answers of an agent, and can wait for the next one.
    "loopd.taskRead" LoopdTaskRead(task::ReadParams) -> task::TaskRead;
    /// Asks a working agent, beside its work, how far it is.
    "loopd.taskSummary" LoopdTaskSummary(task::TaskOf) -> task::TaskSummary;
    /// Registers work of a client as a task; the model is notified of its end.
    "loopd.taskRegister" LoopdTaskRegister(task::RegisterParams) -> task::Registered;
    /// Reports the progress or the end of such a task.
    "loopd.taskUpdate" LoopdTaskUpdate(task::UpdateParams) -> task::Updated;

    /// Starts a command; the caller is notified of its output and its end.
    "session.shell.exec" ShellExec(shell::ExecParams) -> shell::Executing;
    /// Signals a command of `session.shell.exec`.
    "session.shell.kill" ShellKill(shell::KillParams) -> shell::Killed;
    /// Runs a command that a person typed, and waits for its end.
    "session.shell.executeUserRequested" ShellExecuteUserRequested(shell::UserRequestedParams) -> shell::UserRequested;
    /// Stops a command of `session.shell.executeUserRequested`.
    "session.shell.cancelUserRequested" ShellCancelUserRequested(shell::CancelParams) -> task::Cancelled;

    /// Lists the tools that the model has now.
    "session.tools.getCurrentMetadata" ToolsGetCurrentMetadata(session::Of) -> tool::CurrentTools;
    /// Initialises the tools and replies when they are ready.
    "session.tools.initializeAndValidate" ToolsInitialize(session::Of) -> server::NoResult;
    /// Replaces the tools that the calling connection runs.
    "session.tools.set" ToolsSet(tool::SetParams) -> server::NoResult;
    /// Sets how sub-agents run.
    "session.tools.updateSubagentSettings" ToolsUpdateSubagents(tool::SubagentParams) -> server::NoResult;
    /// Delivers the result of a tool that ran in the caller.
    "session.tools.handlePendingToolCall" ToolsHandlePending(tool::HandleParams) -> session::Success;
    /// Asks the users of the session to fill in a form.
    "session.ui.elicitation" UiElicitation(ui::ElicitationParams) -> ui::ElicitationResult;
    /// Answers a form of `session.ui.elicitation`.
    "session.ui.handlePendingElicitation" UiHandleElicitation(ui::HandleElicitationParams) -> session::Success;
    /// Answers a question of the model.
    "session.ui.handlePendingUserInput" UiHandleUserInput(ui::HandleUserInputParams) -> session::Success;
    /// Answers a sampling request of an MCP server, which wants to use the caller's model.
    "session.ui.handlePendingSampling" UiHandleSampling(pending::SamplingParams) -> session::Success;
    /// Answers whether the daemon may switch to another model by itself.
    "session.ui.handlePendingAutoModeSwitch" UiHandleAutoModeSwitch(pending::AutoModeSwitchParams) -> session::Success;
    /// Answers whether a plan is approved.
    "session.ui.handlePendingExitPlanMode" UiHandleExitPlanMode(pending::ExitPlanModeParams) -> session::Success;
    /// Answers what to do about a limit that is used up.
    "session.ui.handlePendingSessionLimitsExhausted" UiHandleLimits(pending::LimitsExhaustedParams) -> session::Success;
    /// Lists the MCP servers of a session and starts those that were not started yet.
    "session.mcp.list" McpList(session::Of) -> mcp::ServerList;
    /// Asks a connected MCP server for its tools.
    "session.mcp.listTools" McpListTools(mcp::ServerParams) -> mcp::ServerTools;
    /// Lets a session use an MCP server again.
    "session.mcp.enable" McpEnable(mcp::ServerParams) -> ();
    /// Ends an MCP server and leaves it out of a session.
    "session.mcp.disable" McpDisable(mcp::ServerParams) -> ();
    /// Reads the configuration again and connects all MCP servers of a session anew.
    "session.mcp.reload" McpReload(session::Of) -> ();
    /// Lets a turn that waits for MCP servers go on without them.
    "session.mcp.moveLoadingToBackground" McpToBackground(session::Of) -> mcp::MovedToBackground;
    /// Starts an MCP server, also one that the caller brings along for this session.
    "session.mcp.startServer" McpStart(mcp::StartParams) -> ();
    /// Ends an MCP server and starts it again.
    "session.mcp.restartServer" McpRestart(mcp::StartParams) -> ();
    /// Ends an MCP server of a session.
    "session.mcp.stopServer" McpStop(mcp::ServerParams) -> ();
    /// Says whether an MCP server of a session is connected.
    "session.mcp.isServerRunning" McpIsRunning(mcp::ServerParams) -> mcp::Running;
    /// Says whether environment variables of MCP servers are given by value or by name.
    "session.mcp.setEnvValueMode" McpSetEnvValueMode(mcp::EnvValueModeParams) -> mcp::EnvValueModeSet;
    /// Removes the MCP server that a vendor's runtime adds by itself; this daemon adds none.
    "session.mcp.removeGitHub" McpRemoveGitHub(session::Of) -> mcp::Removed;
    /// Provides a token for an MCP server that wants one, or declines to.
    "session.mcp.oauth.handlePendingRequest" McpOauthAnswer(mcp::OauthAnswerParams) -> session::Success;
    /// Connects a remote MCP server anew, with a login if it wants one.
    "session.mcp.oauth.login" McpOauthLogin(mcp::LoginParams) -> mcp::LoginStarted;
    /// Waits until the login that an address was given for has ended, for a minute at most.
    "loopd.mcpLoginWait" LoopdMcpLoginWait(mcp::LoginWaitParams) -> mcp::LoginEnded;
    /// Forgets the login at an MCP server.
    "loopd.mcpLogout" LoopdMcpLogout(mcp::ServerParams) -> mcp::LoggedOut;
    /// Lets the model of a session answer for an MCP server.
    "session.mcp.executeSampling" McpExecuteSampling(mcp::SamplingParams) -> mcp::SamplingResult;
    /// Stops letting the model answer for an MCP server.
    "session.mcp.cancelSamplingExecution" McpCancelSampling(mcp::CancelSamplingParams) -> mcp::SamplingCancelled;
    /// Lists one page of the resources of a connected MCP server.
    "session.mcp.resources.list" McpResourcesList(mcp::PageParams) -> serde_json::Value;
    /// Lists one page of the resource templates of a connected MCP server.
    "session.mcp.resources.listTemplates" McpResourceTemplates(mcp::PageParams) -> serde_json::Value;
    /// Reads a resource of a connected MCP server.
    "session.mcp.resources.read" McpResourcesRead(mcp::ResourceParams) -> serde_json::Value;
    /// Reads a resource for the user interface of a tool.
    "session.mcp.apps.readResource" McpAppsReadResource(mcp::ResourceParams) -> serde_json::Value;
    /// Lists the tools that the user interface of a tool may call.
    "session.mcp.apps.listTools" McpAppsListTools(mcp::AppToolsParams) -> mcp::AppTools;
    /// Calls a tool for the user interface of a tool.
    "session.mcp.apps.callTool" McpAppsCallTool(mcp::AppCallParams) -> serde_json::Value;
    /// Says what user interfaces of tools are told about the app that shows them.
    "session.mcp.apps.setHostContext" McpAppsSetContext(mcp::AppContextParams) -> ();
    /// Returns what user interfaces of tools are told about the app that shows them.
    "session.mcp.apps.getHostContext" McpAppsGetContext(session::Of) -> mcp::AppContext;
    /// Says whether the user interfaces of a server's tools can be shown.
    "session.mcp.apps.diagnose" McpAppsDiagnose(mcp::ServerParams) -> mcp::AppDiagnosis;
    /// Shows what an MCP server wrote beside the protocol.
    "loopd.mcpLog" LoopdMcpLog(mcp::ServerParams) -> mcp::ServerLogLines;
    /// Starts a server of a session if needed, and says whether it can be used.
    "loopd.mcpTest" LoopdMcpTest(mcp::ServerParams) -> mcp::ServerTested;
    /// Delivers fresh headers for an MCP server that refused the old ones.
    "session.mcp.headers.handlePendingHeadersRefreshRequest" McpHandleHeaders(pending::HeadersRefreshParams) -> session::Success;
    /// Registers the caller as the direct handler of automatic model switches.
    "session.ui.registerDirectAutoModeSwitchHandler" UiRegisterDirect(session::Of) -> pending::Handle;
    /// Removes that registration.
    "session.ui.unregisterDirectAutoModeSwitchHandler" UiUnregisterDirect(pending::HandleParams) -> pending::Unregistered;
}
