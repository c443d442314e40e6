//! The table of methods that a client may call: name, parameters, result, one line of help.
//!
//! A method is a row here, a file (or a function beside its siblings) in the daemon's
//! `rpc/method/`, and a test. A row without a handler does not start.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::params::{
    agent, command, daemon, discovery, event_log, history, host, inference, launch, metadata,
    model, options, pending, permission, process, provider, queue, server, session, settings,
    shell, stored, task, tool, ui, usage, workspace, worktree,
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
    /// Answers, so that a client knows the daemon is there.
    "ping" Ping(server::PingParams) -> server::Pong;
    /// Reports the daemon's version.
    "status.get" StatusGet(server::NoParams) -> server::Status;
    /// Reports whether this launch has a token for the Copilot API.
    "auth.getStatus" AuthGetStatus(server::NoParams) -> server::AuthStatus;
    /// Ends the sessions of this launch and flushes; later requests of the launch fail.
    "runtime.shutdown" RuntimeShutdown(server::NoParams) -> ();
    /// Lists the models that a new session of this launch could use.
    "models.list" ModelsList(server::NoParams) -> model::Models;
    /// Lists the built-in tools.
    "tools.list" ToolsList(tool::ListParams) -> tool::ToolList;

    /// Lets the caller carry the model requests of its launch.
    "llmInference.setProvider" InferenceSetProvider(server::NoParams) -> session::Success;
    /// Brings the status and headers of a response to a request that the caller carries.
    "llmInference.httpResponseStart" InferenceResponseStart(inference::ResponseStart) -> inference::Accepted;
    /// Brings a piece of such a response, its end, or why there is none.
    "llmInference.httpResponseChunk" InferenceResponseChunk(inference::ResponseChunk) -> inference::Accepted;

    /// Brings a launch's directory, environment and flags; this connection joins it.
    "loopd.launch" LoopdLaunch(launch::LaunchParams) -> launch::Launched;
    /// Ends the sessions of this connection's launch, as `runtime.shutdown` does.
    "loopd.launchEnd" LoopdLaunchEnd(server::NoParams) -> ();

    /// Tells which provider and model would answer a new session of this launch.
    "loopd.modelChoice" LoopdModelChoice(model::ChoiceParams) -> model::Choice;
    /// Tells what the daemon is and does at this moment.
    "loopd.daemonStatus" LoopdDaemonStatus(server::NoParams) -> daemon::DaemonStatus;
    /// Ends the daemon after the reply, as a signal would; sessions are kept.
    "loopd.daemonStop" LoopdDaemonStop(server::NoParams) -> ();
    /// Lists the commands that the daemon runs as processes, the oldest first.
    "loopd.processList" LoopdProcessList(server::NoParams) -> process::ProcessList;
    /// Lists the worktrees that were made for agents, with what would be lost with each.
    "loopd.worktreeList" LoopdWorktreeList(server::NoParams) -> worktree::WorktreeList;
    /// Removes a worktree that no agent uses; a changed one only when forced.
    "loopd.worktreeRemove" LoopdWorktreeRemove(worktree::WorktreeRemoveParams) -> ();

    /// Creates a session and attaches the caller.
    "session.create" SessionCreate(SessionCreateParams) -> SessionOpened;
    /// Attaches the caller to a session, loading it when it is not in memory.
    "session.resume" SessionResume(SessionResumeParams) -> SessionOpened;
    /// Detaches the caller; the last one out ends the session, whose log stays.
    "session.destroy" SessionDestroy(session::Of) -> session::Success;
    /// Does the same, under the name that newer clients use.
    "session.detach" SessionDetach(session::Of) -> session::Success;
    /// Removes a session and its log for good.
    "session.delete" SessionDelete(session::Of) -> session::Deleted;
    /// Lists the stored sessions, the one changed last first.
    "session.list" SessionList(session::ListParams) -> session::Listed;
    /// Describes one stored session.
    "session.getMetadata" SessionGetMetadata(session::Of) -> session::Found;
    /// Names the session that changed last.
    "session.getLastId" SessionGetLastId(server::NoParams) -> session::LastId;
    /// Names the session this launch shows in front.
    "session.getForeground" SessionGetForeground(server::NoParams) -> session::LastId;
    /// Chooses the session this launch shows in front.
    "session.setForeground" SessionSetForeground(session::Of) -> session::Deleted;
    /// Makes a new session from another one's history, whole or up to an event.
    "sessions.fork" SessionsFork(session::ForkParams) -> session::Forked;

    /// Answers once everything that a session was asked to do before is on disk.
    "sessions.save" SessionsSave(session::Of) -> server::NoResult;
    /// Ends a live session for everybody; its log stays.
    "sessions.close" SessionsClose(session::Of) -> server::NoResult;
    /// Lists the stored sessions that fit a filter, the one changed last first.
    "sessions.list" SessionsList(stored::ListStoredParams) -> session::Listed;
    /// Finds the one session whose id starts so.
    "sessions.findByPrefix" SessionsFindByPrefix(stored::PrefixParams) -> session::LastId;
    /// Finds the session that is bound to a task elsewhere.
    "sessions.findByTaskId" SessionsFindByTaskId(stored::TaskParams) -> session::LastId;
    /// Finds the session that changed last in a place.
    "sessions.getLastForContext" SessionsGetLastForContext(stored::ContextParams) -> session::LastId;
    /// Tells how many bytes each session takes.
    "sessions.getSizes" SessionsGetSizes(server::NoParams) -> stored::Sizes;
    /// Tells which of these sessions somebody is attached to.
    "sessions.checkInUse" SessionsCheckInUse(stored::IdsParams) -> stored::InUse;
    /// Ends and removes sessions for good.
    "sessions.bulkDelete" SessionsBulkDelete(stored::IdsParams) -> stored::Freed;
    /// Fills in what is known of sessions that the caller describes in part.
    "sessions.enrichMetadata" SessionsEnrichMetadata(stored::Described) -> stored::Described;
    /// Answers for clients that keep locks; this daemon needs none on a session.
    "sessions.releaseLock" SessionsReleaseLock(session::Of) -> server::NoResult;
    /// Removes sessions that nobody changed for some days.
    "sessions.pruneOld" SessionsPruneOld(stored::PruneParams) -> stored::Pruned;

    /// Adds values that are masked from now on in what tools of this launch say.
    "secrets.addFilterValues" SecretsAddFilterValues(host::AddFilterValuesParams) -> host::Ok;
    /// Says that the caller keeps the files of this launch's sessions.
    "sessionFs.setProvider" SessionFsSetProvider(host::SessionFilesParams) -> session::Success;
    /// Names the plugins that come with the caller; those named before are forgotten.
    "plugins.builtin.set" PluginsSetBuiltIn(host::PluginsParams) -> ();

    /// Finds skills on disk.
    "skills.discover" SkillsDiscover(discovery::SkillsParams) -> discovery::Skills;
    /// Lists the folders in which skills are looked for.
    "skills.getDiscoveryPaths" SkillsGetDiscoveryPaths(discovery::SkillsParams) -> discovery::Paths<discovery::SkillPath>;
    /// Chooses the skills that stay out of use.
    "skills.config.setDisabledSkills" SkillsSetDisabled(discovery::DisabledSkillsParams) -> ();
    /// Finds custom agents on disk.
    "agents.discover" AgentsDiscover(discovery::AgentsParams) -> discovery::Agents;
    /// Lists the folders in which custom agents are looked for.
    "agents.getDiscoveryPaths" AgentsGetDiscoveryPaths(discovery::AgentsParams) -> discovery::Paths<discovery::AgentPath>;
    /// Finds instructions on disk.
    "instructions.discover" InstructionsDiscover(discovery::InstructionsParams) -> discovery::Instructions;
    /// Lists the files and folders in which instructions are looked for.
    "instructions.getDiscoveryPaths" InstructionsGetDiscoveryPaths(discovery::InstructionsParams) -> discovery::Paths<discovery::InstructionPath>;
    /// Finds the MCP servers that configuration files name; nothing is started.
    "mcp.discover" McpDiscover(discovery::McpParams) -> discovery::McpServers;

    /// Queues a user message and answers at once.
    "session.send" SessionSend(session::SendParams) -> session::Sent;
    /// Queues a user message and answers when it was dealt with; cancelling ends the wait, never the work.
    "session.sendAndWait" SessionSendAndWait(session::SendAndWaitParams) -> session::Completed;
    /// Stops the running turn.
    "session.abort" SessionAbort(session::Of) -> session::Success;
    /// Stops work and keeps everything for a later resume.
    "session.suspend" SessionSuspend(session::Of) -> ();
    /// Ends the session for everybody, saying why; its log stays.
    "session.shutdown" SessionShutdown(metadata::ShutdownParams) -> ();
    /// Returns the stored events of a session.
    "session.getMessages" SessionGetMessages(session::Of) -> event_log::Events;
    /// Writes a line that users see into the session's log.
    "session.log" SessionLog(settings::LogParams) -> settings::Logged;

    /// Reads events from a cursor on, waiting for new ones when asked to.
    "session.eventLog.read" EventLogRead(event_log::ReadParams) -> event_log::ReadResult;
    /// Returns the cursor after the last event.
    "session.eventLog.tail" EventLogTail(session::Of) -> event_log::Tail;
    /// Says that the caller wants a kind of event.
    "session.eventLog.registerInterest" RegisterInterest(event_log::InterestParams) -> event_log::Interest;
    /// Takes that back.
    "session.eventLog.releaseInterest" ReleaseInterest(event_log::ReleaseParams) -> session::Success;

    /// Lists what waits for the loop.
    "session.queue.pendingItems" QueuePendingItems(session::Of) -> queue::Pending;
    /// Takes the item that was queued last out again.
    "session.queue.removeMostRecent" QueueRemoveMostRecent(session::Of) -> queue::Removed;
    /// Empties the queue.
    "session.queue.clear" QueueClear(session::Of) -> ();
    /// Queues a slash command for a client to run.
    "session.commands.enqueue" CommandsEnqueue(queue::EnqueueParams) -> queue::Enqueued;
    /// Reports that a queued command was dealt with.
    "session.commands.respondToQueuedCommand" CommandsRespond(queue::RespondParams) -> session::Success;
    /// Reports that a command that the caller was handed has run.
    "session.commands.handlePendingCommand" CommandsHandlePending(command::HandlePendingParams) -> session::Success;
    /// Lists the slash commands of the session: the daemon's own and those of its clients.
    "session.commands.list" CommandsList(command::ListParams) -> command::Commands;
    /// Runs a slash command and tells what it came to.
    "session.commands.invoke" CommandsInvoke(command::InvokeParams) -> command::Invoked;
    /// Runs a slash command to its end, in the client that brought it or here.
    "session.commands.execute" CommandsExecute(command::ExecuteParams) -> command::Executed;

    /// Returns the session's name.
    "session.name.get" NameGet(session::Of) -> settings::NameResult;
    /// Names the session.
    "session.name.set" NameSet(settings::NameParams) -> ();
    /// Names the session unless a person did.
    "session.name.setAuto" NameSetAuto(settings::SummaryParams) -> settings::Applied;
    /// Returns the mode.
    "session.mode.get" ModeGet(session::Of) -> crate::session::Mode;
    /// Sets the mode.
    "session.mode.set" ModeSet(settings::ModeParams) -> settings::ModeResult;
    /// Changes options of the session; what cannot be changed is refused by name, and then nothing is.
    "session.options.update" OptionsUpdate(options::OptionsParams) -> session::Success;
    /// Returns the model that answers.
    "session.model.getCurrent" ModelGetCurrent(session::Of) -> model::Current;
    /// Chooses the model that answers from the next call on.
    "session.model.switchTo" ModelSwitchTo(model::SwitchParams) -> model::Switched;
    /// Changes how hard the model thinks, and keeps the model.
    "session.model.setReasoningEffort" ModelSetEffort(model::EffortParams) -> model::Effort;
    /// Lists the models this session could use.
    "session.model.list" ModelList(session::Of) -> model::SessionModels;
    /// Adds providers and models to a running session.
    "session.provider.add" ProviderAdd(provider::AddParams) -> model::Models;
    /// Tells where the session's model calls go, key included, if the launch allows it.
    "session.provider.getEndpoint" ProviderGetEndpoint(provider::EndpointParams) -> provider::Endpoint;
    /// Reads the plan.
    "session.plan.read" PlanRead(session::Of) -> settings::Plan;
    /// Writes the plan.
    "session.plan.update" PlanUpdate(settings::PlanParams) -> ();
    /// Removes the plan.
    "session.plan.delete" PlanDelete(session::Of) -> ();

    /// Describes the session: where, since when, in which mode, with which model.
    "session.metadata.snapshot" MetadataSnapshot(session::Of) -> metadata::Snapshot;
    /// Tells whether the loop is at work.
    "session.metadata.isProcessing" MetadataIsProcessing(session::Of) -> metadata::Processing;
    /// Tells whether anything goes on, and whether it could be stopped.
    "session.metadata.activity" MetadataActivity(session::Of) -> metadata::Activity;
    /// Lets the session work in another directory.
    "session.metadata.setWorkingDirectory" MetadataSetDirectory(metadata::DirectoryParams) -> metadata::Directory;
    /// Takes note of the repository and branch that the session works on.
    "session.metadata.recordContextChange" MetadataRecordContext(metadata::ContextParams) -> server::NoResult;
    /// Tells in Markdown what a session is about and how far it got, for whoever takes over; asks no model.
    "session.history.summarizeForHandoff" HistorySummarize(session::Of) -> history::Handoff;
    /// Cancels a compaction in the background; none runs yet, so nothing is cancelled.
    "session.history.cancelBackgroundCompaction" HistoryCancelCompaction(session::Of) -> history::CompactionCancelled;
    /// Aborts a compaction that somebody asked for; none runs yet, so nothing is aborted.
    "session.history.abortManualCompaction" HistoryAbortCompaction(session::Of) -> history::CompactionAborted;
    /// Adds up what the session used.
    "session.usage.getMetrics" UsageGetMetrics(session::Of) -> usage::Metrics;
    /// Lists the instructions that the model of this session is given.
    "session.instructions.getSources" InstructionsGetSources(session::Of) -> discovery::Instructions;

    /// Describes where the session keeps its own files.
    "session.workspaces.getWorkspace" WorkspacesGet(session::Of) -> workspace::Found;
    /// Lists the session's own files.
    "session.workspaces.listFiles" WorkspacesListFiles(session::Of) -> workspace::Files;
    /// Reads one of them.
    "session.workspaces.readFile" WorkspacesReadFile(workspace::FileParams) -> workspace::Content;
    /// Writes one of them, new or not.
    "session.workspaces.createFile" WorkspacesCreateFile(workspace::CreateParams) -> ();
    /// Keeps something long that a person pasted as such a file.
    "session.workspaces.saveLargePaste" WorkspacesSavePaste(workspace::PasteParams) -> workspace::SavedPaste;

    /// Lists the agents of the session.
    "session.agent.list" AgentList(agent::ListParams) -> discovery::Agents;
    /// Returns the agent that answers, if it is not the default one.
    "session.agent.getCurrent" AgentGetCurrent(session::Of) -> agent::Selected;
    /// Lets an agent answer from now on.
    "session.agent.select" AgentSelect(agent::SelectParams) -> agent::Selected;
    /// Goes back to the default agent.
    "session.agent.deselect" AgentDeselect(session::Of) -> server::NoResult;
    /// Reads the agents anew and lists them; files that cannot be used are told as warnings.
    "session.agent.reload" AgentReload(session::Of) -> discovery::Agents;

    /// Decides about a permission that was requested.
    "session.permissions.handlePendingPermissionRequest" PermissionsHandle(permission::HandleParams) -> session::Success;
    /// Lists the permissions that are requested and not decided.
    "session.permissions.pendingRequests" PermissionsPending(session::Of) -> permission::Pending;
    /// Allows everything from now on, or no longer.
    "session.permissions.setApproveAll" PermissionsSetApproveAll(permission::EnabledParams) -> session::Success;
    /// Tells whether people are asked before tools run.
    "session.permissions.getMode" PermissionsGetMode(session::Of) -> permission::ModeNow;
    /// Lets people be asked, or not.
    "session.permissions.setMode" PermissionsSetMode(permission::SetModeParams) -> permission::ModeSet;
    /// Replaces parts of the permission policy.
    "session.permissions.configure" PermissionsConfigure(permission::ConfigureParams) -> session::Success;
    /// Adds and removes rules.
    "session.permissions.modifyRules" PermissionsModifyRules(permission::ModifyRulesParams) -> session::Success;
    /// Says whether the caller wants permission requests.
    "session.permissions.setRequired" PermissionsSetRequired(permission::RequiredParams) -> session::Success;
    /// Takes note that a prompt is on a user's screen.
    "session.permissions.notifyPromptShown" PermissionsNotifyPromptShown(permission::PromptShownParams) -> session::Success;
    /// Forgets what was approved for this session.
    "session.permissions.resetSessionApprovals" PermissionsReset(session::Of) -> session::Success;
    /// Lists the directories that file tools may use.
    "session.permissions.paths.list" PathsList(session::Of) -> permission::Paths;
    /// Adds a directory.
    "session.permissions.paths.add" PathsAdd(permission::PathParams) -> session::Success;
    /// Changes the primary directory.
    "session.permissions.paths.updatePrimary" PathsUpdatePrimary(permission::PathParams) -> session::Success;
    /// Tells whether a path is in an allowed directory.
    "session.permissions.paths.isPathWithinAllowedDirectories" PathsIsAllowed(permission::PathParams) -> permission::Allowed;
    /// Tells whether a path is in the primary directory.
    "session.permissions.paths.isPathWithinWorkspace" PathsIsInWorkspace(permission::PathParams) -> permission::Allowed;
    /// Lifts or restores the limits on URLs.
    "session.permissions.urls.setUnrestrictedMode" UrlsSetUnrestricted(permission::EnabledParams) -> session::Success;
    /// Finds the location that approvals for a directory belong to.
    "session.permissions.locations.resolve" LocationsResolve(permission::LocationParams) -> permission::Location;
    /// Remembers an approval for a location.
    "session.permissions.locations.addToolApproval" LocationsAddApproval(permission::AddApprovalParams) -> session::Success;
    /// Applies a location's approvals to the session.
    "session.permissions.locations.apply" LocationsApply(permission::LocationParams) -> permission::LocationApplied;
    /// Tells whether the user trusts a folder.
    "session.permissions.folderTrust.isTrusted" FolderIsTrusted(permission::PathParams) -> permission::Trusted;
    /// Trusts a folder.
    "session.permissions.folderTrust.addTrusted" FolderAddTrusted(permission::PathParams) -> session::Success;

    /// Lists what goes on beside the loop, and what ended.
    "session.tasks.list" TasksList(session::Of) -> task::TaskList;
    /// Looks after detached commands and answers when what is known of them is up to date.
    "session.tasks.refresh" TasksRefresh(session::Of) -> server::NoResult;
    /// Tells how a task gets on.
    "session.tasks.getProgress" TasksGetProgress(task::TaskOf) -> task::ProgressResult;
    /// Names the task that the loop waits for and that could go on in the background.
    "session.tasks.getCurrentPromotable" TasksGetCurrentPromotable(session::Of) -> task::MaybeTask;
    /// Lets a task that the loop waits for go on in the background.
    "session.tasks.promoteToBackground" TasksPromote(task::TaskOf) -> task::Promoted;
    /// Does so with the first task that the loop waits for.
    "session.tasks.promoteCurrentToBackground" TasksPromoteCurrent(session::Of) -> task::MaybeTask;
    /// Stops a task.
    "session.tasks.cancel" TasksCancel(task::TaskOf) -> task::Cancelled;
    /// Takes a task that has ended off the list.
    "session.tasks.remove" TasksRemove(task::TaskOf) -> task::Removed;
    /// Waits until nothing goes on in the background and the loop rests.
    "session.tasks.waitForPending" TasksWaitForPending(session::Of) -> server::NoResult;
    /// Sends a message to an agent in the background.
    "session.tasks.sendMessage" TasksSendMessage(task::MessageParams) -> task::MessageSent;
    /// Starts an agent in the background.
    "session.tasks.startAgent" TasksStartAgent(task::StartAgentParams) -> task::AgentStarted;
    /// Stops all agents of the session that are at work, and says how many they were.
    "session.cancelAllBackgroundAgents" CancelAllBackgroundAgents(session::Of) -> u64;
    /// Shows the tasks of a session and those below its agents, with what each took so far.
    "loopd.taskTree" LoopdTaskTree(session::Of) -> task::TaskTree;
    /// Reads what an agent has answered; waits for it if asked to.
    "loopd.taskRead" LoopdTaskRead(task::ReadParams) -> task::TaskRead;
    /// Lists work that a client does itself among the tasks; the model is told of its end.
    "loopd.taskRegister" LoopdTaskRegister(task::RegisterParams) -> task::Registered;
    /// Tells how such work gets on or how it ended.
    "loopd.taskUpdate" LoopdTaskUpdate(task::UpdateParams) -> task::Updated;

    /// Starts a command for the caller, which is told what it prints and how it ends.
    "session.shell.exec" ShellExec(shell::ExecParams) -> shell::Executing;
    /// Stops such a command.
    "session.shell.kill" ShellKill(shell::KillParams) -> shell::Killed;
    /// Runs a command that a person typed, and waits for its end.
    "session.shell.executeUserRequested" ShellExecuteUserRequested(shell::UserRequestedParams) -> shell::UserRequested;
    /// Stops such a command.
    "session.shell.cancelUserRequested" ShellCancelUserRequested(shell::CancelParams) -> task::Cancelled;

    /// Lists the tools that the model is told of now.
    "session.tools.getCurrentMetadata" ToolsGetCurrentMetadata(session::Of) -> tool::CurrentTools;
    /// Makes the tools ready and answers when they are.
    "session.tools.initializeAndValidate" ToolsInitialize(session::Of) -> server::NoResult;
    /// Replaces the tools that the calling connection runs.
    "session.tools.set" ToolsSet(tool::SetParams) -> server::NoResult;
    /// Sets how sub-agents run.
    "session.tools.updateSubagentSettings" ToolsUpdateSubagents(tool::SubagentParams) -> server::NoResult;
    /// Gives the result of a tool that ran in the caller.
    "session.tools.handlePendingToolCall" ToolsHandlePending(tool::HandleParams) -> session::Success;
    /// Asks the users of the session to fill in a form.
    "session.ui.elicitation" UiElicitation(ui::ElicitationParams) -> ui::ElicitationResult;
    /// Answers such a form.
    "session.ui.handlePendingElicitation" UiHandleElicitation(ui::HandleElicitationParams) -> session::Success;
    /// Answers a question of the model.
    "session.ui.handlePendingUserInput" UiHandleUserInput(ui::HandleUserInputParams) -> session::Success;
    /// Answers a server that wants to use the caller's model.
    "session.ui.handlePendingSampling" UiHandleSampling(pending::SamplingParams) -> session::Success;
    /// Says whether another model may be chosen by itself.
    "session.ui.handlePendingAutoModeSwitch" UiHandleAutoModeSwitch(pending::AutoModeSwitchParams) -> session::Success;
    /// Says what a person thinks of a plan.
    "session.ui.handlePendingExitPlanMode" UiHandleExitPlanMode(pending::ExitPlanModeParams) -> session::Success;
    /// Says what becomes of a limit that is used up.
    "session.ui.handlePendingSessionLimitsExhausted" UiHandleLimits(pending::LimitsExhaustedParams) -> session::Success;
    /// Brings fresh headers for a server that refused the old ones.
    "session.mcp.headers.handlePendingHeadersRefreshRequest" McpHandleHeaders(pending::HeadersRefreshParams) -> session::Success;
    /// Says that the caller answers questions about automatic modes without being asked.
    "session.ui.registerDirectAutoModeSwitchHandler" UiRegisterDirect(session::Of) -> pending::Handle;
    /// Takes that back.
    "session.ui.unregisterDirectAutoModeSwitchHandler" UiUnregisterDirect(pending::HandleParams) -> pending::Unregistered;
}
