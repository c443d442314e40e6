//! The handlers, one file per method or small resource.

mod agent;
mod autopilot;
mod builtin;
mod builtin_work;
mod clear;
mod command_subagent;
mod commands;
mod compaction;
mod completions;
mod connect;
mod context_account;
mod daemon;
mod discover;
mod discovery_problems;
mod event_log;
mod family;
mod file_commands;
mod fleet;
mod history;
mod hook_folders;
mod hook_guard;
mod hook_list;
mod hook_test;
mod host;
mod inference;
mod launch;
mod mcp;
mod mcp_apps;
mod mcp_config;
mod mcp_oauth;
mod mcp_prompts;
mod messages;
mod metadata;
mod model;
mod options;
mod pending;
mod permission_answer;
mod permission_location;
mod permission_mode;
mod permission_path;
mod permission_policy;
mod plan;
mod policy;
mod process;
mod provider;
mod queue;
mod queued_command;
mod research;
mod rewind;
mod run_file_command;
mod server;
mod session_create;
mod session_fork;
mod session_leave;
mod session_options;
mod session_resume;
mod session_send;
mod session_skills;
mod session_stored;
mod settings;
mod shell;
mod skill_commands;
mod skills;
mod stored_delete;
mod stored_find;
mod stored_life;
mod task_agents;
mod task_info;
mod task_tree;
mod tasks;
mod todos;
mod tool_result;
mod tools;
mod trust;
mod trust_folder;
mod ui;
mod usage;
mod workspace;
mod worktree;

pub use queued_command::QueuedCommands;

use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::method as m;

use super::context::Context;
use super::error::RpcError;
use super::{Table, TableError};
use crate::session::{SessionError, SessionHandle};

impl Context {
    /// Returns the session, if the connection is attached to it.
    fn session(&self, id: &SessionId) -> Result<SessionHandle, RpcError> {
        self.connection
            .is_attached(id)
            .then(|| self.app.sessions.get(id))
            .flatten()
            .ok_or_else(|| SessionError::NotFound(id.clone()).into())
    }

    /// Returns why there is no such session: a store that cannot be read may have it.
    pub(super) async fn why_missing(&self, id: SessionId) -> RpcError {
        match self.app.services.store.record(&id).await {
            Ok(Some(_)) if !self.connection.is_attached(&id) => RpcError::NotResumed(id),
            Ok(_) => RpcError::NoSession(id),
            Err(error) => error.into(),
        }
    }

    /// Returns the session that waits for the answer to a request: this session or one of its
    /// sub-agents.
    async fn asker(&self, id: &SessionId, request: &RequestId) -> Result<SessionHandle, RpcError> {
        let session = self.session(id)?;
        let request = request.clone();
        let agent = session.view(move |view| view.tree?.who_asked(&request));
        Ok(agent.await?.unwrap_or(session))
    }
}

/// Binds every handler to its row.
pub(super) fn bind_all(table: &mut Table) -> Result<(), TableError> {
    table.bind::<m::Connect, _, _>(connect::connect)?;
    table.bind::<m::Ping, _, _>(server::ping)?;
    table.bind::<m::StatusGet, _, _>(server::status)?;
    table.bind::<m::AuthGetStatus, _, _>(server::auth_status)?;
    table.bind::<m::RuntimeShutdown, _, _>(server::shutdown)?;
    table.bind::<m::ModelsList, _, _>(model::list_all)?;

    table.bind::<m::InferenceSetProvider, _, _>(inference::set_provider)?;
    table.bind::<m::InferenceResponseStart, _, _>(inference::response_start)?;
    table.bind::<m::InferenceResponseChunk, _, _>(inference::response_chunk)?;

    table.bind::<m::LoopdLaunch, _, _>(launch::launch)?;
    table.bind::<m::LoopdLaunchEnd, _, _>(server::shutdown)?;
    table.bind::<m::LoopdModelChoice, _, _>(model::choice)?;
    table.bind::<m::LoopdDiscoveryProblems, _, _>(discovery_problems::list)?;
    table.bind::<m::LoopdDaemonStatus, _, _>(daemon::status)?;
    table.bind::<m::LoopdDatabaseCheck, _, _>(daemon::check_database)?;
    table.bind::<m::LoopdDaemonStop, _, _>(daemon::stop)?;
    table.bind::<m::LoopdProcessList, _, _>(process::list)?;
    table.bind::<m::LoopdWorktreeList, _, _>(worktree::list)?;
    table.bind::<m::LoopdWorktreeRemove, _, _>(worktree::remove)?;
    table.bind::<m::HooksDiscover, _, _>(hook_list::discover)?;
    table.bind::<m::LoopdHooksList, _, _>(hook_list::list)?;
    table.bind::<m::LoopdHooksTest, _, _>(hook_test::test)?;
    table.bind::<m::LoopdHooksAccept, _, _>(hook_list::accept)?;
    table.bind::<m::LoopdHooksLift, _, _>(hook_guard::lift)?;
    table.bind::<m::LoopdTrustShow, _, _>(trust::show)?;
    table.bind::<m::LoopdTrustSet, _, _>(trust::set)?;
    table.bind::<m::LoopdAutopilotStatus, _, _>(autopilot::status)?;
    table.bind::<m::LoopdAutopilotPause, _, _>(autopilot::pause)?;

    table.bind::<m::SessionCreate, _, _>(session_create::create)?;
    table.bind::<m::SessionResume, _, _>(session_resume::resume)?;
    table.bind::<m::SessionDestroy, _, _>(session_leave::destroy)?;
    table.bind::<m::SessionDetach, _, _>(session_leave::destroy)?;
    table.bind::<m::SessionDelete, _, _>(session_leave::delete)?;
    table.bind::<m::SessionList, _, _>(session_stored::list)?;
    table.bind::<m::SessionGetMetadata, _, _>(session_stored::metadata)?;
    table.bind::<m::SessionGetLastId, _, _>(session_stored::last_id)?;
    table.bind::<m::SessionGetForeground, _, _>(session_stored::foreground)?;
    table.bind::<m::SessionSetForeground, _, _>(session_stored::set_foreground)?;
    table.bind::<m::SessionsFork, _, _>(session_fork::fork)?;

    table.bind::<m::SessionsSave, _, _>(stored_life::save)?;
    table.bind::<m::SessionsClose, _, _>(stored_life::close)?;
    table.bind::<m::SessionsReleaseLock, _, _>(stored_life::release_lock)?;
    table.bind::<m::SessionsCheckInUse, _, _>(stored_life::check_in_use)?;
    table.bind::<m::SessionsList, _, _>(stored_find::list)?;
    table.bind::<m::SessionsFindByPrefix, _, _>(stored_find::by_prefix)?;
    table.bind::<m::SessionsFindByTaskId, _, _>(stored_find::by_task)?;
    table.bind::<m::SessionsGetLastForContext, _, _>(stored_find::last_for_context)?;
    table.bind::<m::SessionsEnrichMetadata, _, _>(stored_find::enrich)?;
    table.bind::<m::SessionsGetSizes, _, _>(stored_delete::sizes)?;
    table.bind::<m::SessionsBulkDelete, _, _>(stored_delete::bulk_delete)?;
    table.bind::<m::SessionsPruneOld, _, _>(stored_delete::prune)?;

    table.bind::<m::SecretsAddFilterValues, _, _>(host::add_filter_values)?;
    table.bind::<m::SessionFsSetProvider, _, _>(host::keep_session_files)?;
    table.bind::<m::PluginsSetBuiltIn, _, _>(host::set_plugins)?;

    table.bind::<m::SkillsDiscover, _, _>(skills::discover)?;
    table.bind::<m::SkillsGetDiscoveryPaths, _, _>(skills::paths)?;
    table.bind::<m::SkillsSetDisabled, _, _>(skills::set_disabled)?;
    table.bind::<m::SkillsSetOneDisabled, _, _>(skills::set_one_disabled)?;
    table.bind::<m::LoopdSkills, _, _>(skills::of_folder)?;
    table.bind::<m::SessionSkillsList, _, _>(session_skills::list)?;
    table.bind::<m::SessionSkillsGetInvoked, _, _>(session_skills::invoked)?;
    table.bind::<m::SessionSkillsEnable, _, _>(session_skills::enable)?;
    table.bind::<m::SessionSkillsDisable, _, _>(session_skills::disable)?;
    table.bind::<m::SessionSkillsReload, _, _>(session_skills::reload)?;
    table.bind::<m::SessionSkillsEnsureLoaded, _, _>(session_skills::ensure_loaded)?;
    table.bind::<m::AgentsDiscover, _, _>(discover::agents)?;
    table.bind::<m::AgentsGetDiscoveryPaths, _, _>(discover::agent_paths)?;
    table.bind::<m::InstructionsDiscover, _, _>(discover::instructions)?;
    table.bind::<m::InstructionsGetDiscoveryPaths, _, _>(discover::instruction_paths)?;
    table.bind::<m::McpDiscover, _, _>(discover::mcp)?;

    table.bind::<m::SessionSend, _, _>(session_send::send)?;
    table.bind::<m::SessionSendAndWait, _, _>(session_send::send_and_wait)?;
    table.bind::<m::SessionAbort, _, _>(session_send::abort)?;
    table.bind::<m::SessionInterruptMainTurn, _, _>(session_send::interrupt)?;
    table.bind::<m::SessionSuspend, _, _>(session_leave::suspend)?;
    table.bind::<m::SessionShutdown, _, _>(session_leave::shutdown)?;
    table.bind::<m::SessionGetMessages, _, _>(event_log::messages)?;
    table.bind::<m::SessionLog, _, _>(settings::log)?;

    table.bind::<m::EventLogRead, _, _>(event_log::read)?;
    table.bind::<m::EventLogTail, _, _>(event_log::tail)?;
    table.bind::<m::RegisterInterest, _, _>(event_log::register)?;
    table.bind::<m::ReleaseInterest, _, _>(event_log::release)?;

    table.bind::<m::QueuePendingItems, _, _>(queue::pending)?;
    table.bind::<m::QueueMoveItem, _, _>(queue::move_item)?;
    table.bind::<m::QueueInsertAt, _, _>(queue::insert)?;
    table.bind::<m::QueueRemoveAt, _, _>(queue::remove)?;
    table.bind::<m::QueueUpdateText, _, _>(queue::update_text)?;
    table.bind::<m::QueueSendNow, _, _>(queue::send_now)?;
    table.bind::<m::QueueWithdrawMessage, _, _>(queue::withdraw)?;
    table.bind::<m::QueueRemoveMostRecent, _, _>(queue::remove_last)?;
    table.bind::<m::QueueClear, _, _>(queue::clear)?;
    table.bind::<m::CommandsEnqueue, _, _>(queue::enqueue_command)?;
    table.bind::<m::CommandsRespond, _, _>(queue::respond)?;
    table.bind::<m::CommandsHandlePending, _, _>(commands::handle_pending)?;
    table.bind::<m::CommandsList, _, _>(commands::list)?;
    table.bind::<m::CommandsInvoke, _, _>(commands::invoke)?;
    table.bind::<m::CommandsExecute, _, _>(commands::execute)?;
    table.bind::<m::CompletionsTriggers, _, _>(completions::triggers)?;
    table.bind::<m::CompletionsRequest, _, _>(completions::request)?;

    table.bind::<m::NameGet, _, _>(settings::name)?;
    table.bind::<m::NameSet, _, _>(settings::set_name)?;
    table.bind::<m::NameSetAuto, _, _>(settings::set_name_auto)?;
    table.bind::<m::ModeGet, _, _>(settings::mode)?;
    table.bind::<m::ModeSet, _, _>(settings::set_mode)?;
    table.bind::<m::OptionsUpdate, _, _>(options::update)?;
    table.bind::<m::ModelGetCurrent, _, _>(model::current)?;
    table.bind::<m::ModelSwitchTo, _, _>(model::switch)?;
    table.bind::<m::ModelSetEffort, _, _>(model::set_effort)?;
    table.bind::<m::ModelList, _, _>(model::list_of_session)?;
    table.bind::<m::ProviderAdd, _, _>(provider::add)?;
    table.bind::<m::ProviderGetEndpoint, _, _>(provider::endpoint)?;
    table.bind::<m::PlanRead, _, _>(plan::read)?;
    table.bind::<m::PlanUpdate, _, _>(plan::update)?;
    table.bind::<m::PlanDelete, _, _>(plan::delete)?;
    table.bind::<m::PlanReadSqlTodos, _, _>(todos::rows)?;
    table.bind::<m::PlanReadSqlTodosWithDependencies, _, _>(todos::rows_with_dependencies)?;
    table.bind::<m::LoopdTodos, _, _>(todos::listed)?;
    table.bind::<m::LoopdResearch, _, _>(research::start)?;
    table.bind::<m::FleetStart, _, _>(fleet::start)?;
    table.bind::<m::LoopdFleetStop, _, _>(fleet::stop)?;
    table.bind::<m::LoopdFleetStatus, _, _>(fleet::status)?;

    table.bind::<m::MetadataSnapshot, _, _>(metadata::snapshot)?;
    table.bind::<m::MetadataIsProcessing, _, _>(metadata::is_processing)?;
    table.bind::<m::MetadataActivity, _, _>(metadata::activity)?;
    table.bind::<m::MetadataSetDirectory, _, _>(metadata::set_directory)?;
    table.bind::<m::MetadataRecordContext, _, _>(metadata::record_context)?;
    table.bind::<m::MetadataContextInfo, _, _>(context_account::info)?;
    table.bind::<m::MetadataRecomputeTokens, _, _>(context_account::recompute)?;
    table.bind::<m::MetadataContextAttribution, _, _>(context_account::attribution)?;
    table.bind::<m::MetadataHeaviestMessages, _, _>(context_account::heaviest)?;
    table.bind::<m::HistorySummarize, _, _>(history::summarize)?;
    table.bind::<m::LoopdMessages, _, _>(messages::list)?;
    table.bind::<m::HistoryListRewindPoints, _, _>(rewind::points)?;
    table.bind::<m::HistoryPreviewRewind, _, _>(rewind::preview)?;
    table.bind::<m::HistoryRewind, _, _>(rewind::rewind)?;
    table.bind::<m::HistoryTruncate, _, _>(rewind::truncate)?;
    table.bind::<m::LoopdRewind, _, _>(rewind::loopd_rewind)?;
    table.bind::<m::HistoryCompact, _, _>(compaction::compact)?;
    table.bind::<m::HistoryClearContext, _, _>(clear::clear)?;
    table.bind::<m::HistoryCancelCompaction, _, _>(compaction::cancel)?;
    table.bind::<m::HistoryAbortCompaction, _, _>(compaction::abort)?;
    table.bind::<m::UsageGetMetrics, _, _>(usage::metrics)?;
    table.bind::<m::InstructionsGetSources, _, _>(discover::instructions_of_session)?;

    table.bind::<m::WorkspacesGet, _, _>(workspace::describe)?;
    table.bind::<m::WorkspacesListFiles, _, _>(workspace::list)?;
    table.bind::<m::WorkspacesReadFile, _, _>(workspace::read)?;
    table.bind::<m::WorkspacesCreateFile, _, _>(workspace::create)?;
    table.bind::<m::WorkspacesListCheckpoints, _, _>(workspace::checkpoints::list)?;
    table.bind::<m::WorkspacesReadCheckpoint, _, _>(workspace::checkpoints::read)?;
    table.bind::<m::WorkspacesDiff, _, _>(workspace::diff::diff)?;
    table.bind::<m::WorkspacesSavePaste, _, _>(workspace::save_paste)?;

    table.bind::<m::AgentList, _, _>(agent::list)?;
    table.bind::<m::AgentGetCurrent, _, _>(agent::current)?;
    table.bind::<m::AgentSelect, _, _>(agent::select)?;
    table.bind::<m::AgentDeselect, _, _>(agent::deselect)?;
    table.bind::<m::AgentReload, _, _>(agent::reload)?;

    table.bind::<m::PermissionsHandle, _, _>(permission_answer::handle)?;
    table.bind::<m::PermissionsPending, _, _>(permission_answer::pending)?;
    table.bind::<m::PermissionsNotifyPromptShown, _, _>(permission_answer::prompt_shown)?;
    table.bind::<m::PermissionsSetApproveAll, _, _>(permission_policy::approve_all)?;
    table.bind::<m::PermissionsGetMode, _, _>(permission_mode::mode)?;
    table.bind::<m::PermissionsSetMode, _, _>(permission_mode::set_mode)?;
    table.bind::<m::PermissionsConfigure, _, _>(permission_policy::configure)?;
    table.bind::<m::PermissionsModifyRules, _, _>(permission_policy::modify_rules)?;
    table.bind::<m::PermissionsSetRequired, _, _>(permission_policy::set_required)?;
    table.bind::<m::PermissionsReset, _, _>(permission_policy::reset)?;
    table.bind::<m::UrlsSetUnrestricted, _, _>(permission_policy::unrestrict_urls)?;
    table.bind::<m::PathsList, _, _>(permission_path::list)?;
    table.bind::<m::PathsAdd, _, _>(permission_path::add)?;
    table.bind::<m::PathsUpdatePrimary, _, _>(permission_path::update_primary)?;
    table.bind::<m::PathsIsAllowed, _, _>(permission_path::is_allowed)?;
    table.bind::<m::PathsIsInWorkspace, _, _>(permission_path::is_in_workspace)?;
    table.bind::<m::LocationsResolve, _, _>(permission_location::resolve)?;
    table.bind::<m::LocationsAddApproval, _, _>(permission_location::add_approval)?;
    table.bind::<m::LocationsApply, _, _>(permission_location::apply)?;
    table.bind::<m::FolderIsTrusted, _, _>(permission_location::is_trusted)?;
    table.bind::<m::FolderAddTrusted, _, _>(permission_location::add_trusted)?;

    table.bind::<m::TasksList, _, _>(tasks::list)?;
    table.bind::<m::TasksRefresh, _, _>(tasks::refresh)?;
    table.bind::<m::TasksGetProgress, _, _>(tasks::progress)?;
    table.bind::<m::TasksGetCurrentPromotable, _, _>(tasks::promotable)?;
    table.bind::<m::TasksPromote, _, _>(tasks::promote)?;
    table.bind::<m::TasksPromoteCurrent, _, _>(tasks::promote_current)?;
    table.bind::<m::TasksCancel, _, _>(tasks::cancel)?;
    table.bind::<m::TasksRemove, _, _>(tasks::remove)?;
    table.bind::<m::TasksWaitForPending, _, _>(tasks::wait_for_pending)?;
    table.bind::<m::LoopdWaitIdle, _, _>(tasks::wait_idle)?;
    table.bind::<m::TasksSendMessage, _, _>(task_agents::send_message)?;
    table.bind::<m::TasksStartAgent, _, _>(task_agents::start_agent)?;
    table.bind::<m::CancelAllBackgroundAgents, _, _>(task_agents::cancel_all)?;
    table.bind::<m::LoopdTaskTree, _, _>(task_tree::tree)?;
    table.bind::<m::LoopdTaskRead, _, _>(task_agents::read)?;
    table.bind::<m::LoopdTaskSummary, _, _>(task_agents::summary)?;
    table.bind::<m::LoopdTaskRegister, _, _>(task_agents::register)?;
    table.bind::<m::LoopdTaskUpdate, _, _>(task_agents::update)?;

    table.bind::<m::ShellExec, _, _>(shell::exec)?;
    table.bind::<m::ShellKill, _, _>(shell::kill)?;
    table.bind::<m::ShellExecuteUserRequested, _, _>(shell::execute_user_requested)?;
    table.bind::<m::ShellCancelUserRequested, _, _>(shell::cancel_user_requested)?;

    table.bind::<m::ToolsList, _, _>(tools::list)?;
    table.bind::<m::ToolsGetCurrentMetadata, _, _>(tools::current)?;
    table.bind::<m::ToolsInitialize, _, _>(tools::initialize)?;
    table.bind::<m::ToolsSet, _, _>(tools::set)?;
    table.bind::<m::ToolsUpdateSubagents, _, _>(tools::update_subagents)?;
    table.bind::<m::ToolsHandlePending, _, _>(tool_result::handle)?;
    table.bind::<m::UiElicitation, _, _>(ui::elicit)?;
    table.bind::<m::UiHandleElicitation, _, _>(ui::handle_elicitation)?;
    table.bind::<m::UiHandleUserInput, _, _>(ui::handle_user_input)?;
    table.bind::<m::UiHandleSampling, _, _>(pending::sampling)?;
    table.bind::<m::UiHandleAutoModeSwitch, _, _>(pending::auto_mode_switch)?;
    table.bind::<m::UiHandleExitPlanMode, _, _>(pending::exit_plan_mode)?;
    table.bind::<m::UiHandleLimits, _, _>(pending::limits_exhausted)?;
    table.bind::<m::McpHandleHeaders, _, _>(pending::headers_refresh)?;
    bind_mcp(table)?;
    table.bind::<m::UiRegisterDirect, _, _>(pending::register_direct)?;
    table.bind::<m::UiUnregisterDirect, _, _>(pending::unregister_direct)?;
    Ok(())
}

fn bind_mcp(table: &mut Table) -> Result<(), TableError> {
    table.bind::<m::McpConfigList, _, _>(mcp_config::list)?;
    table.bind::<m::McpConfigAdd, _, _>(mcp_config::add)?;
    table.bind::<m::McpConfigUpdate, _, _>(mcp_config::update)?;
    table.bind::<m::McpConfigRemove, _, _>(mcp_config::remove)?;
    table.bind::<m::McpConfigEnable, _, _>(mcp_config::enable)?;
    table.bind::<m::McpConfigDisable, _, _>(mcp_config::disable)?;
    table.bind::<m::McpConfigReload, _, _>(mcp_config::reload)?;
    table.bind::<m::McpList, _, _>(mcp::list)?;
    table.bind::<m::McpListTools, _, _>(mcp::list_tools)?;
    table.bind::<m::McpEnable, _, _>(mcp::enable)?;
    table.bind::<m::McpDisable, _, _>(mcp::disable)?;
    table.bind::<m::McpReload, _, _>(mcp::reload)?;
    table.bind::<m::McpToBackground, _, _>(mcp::to_background)?;
    table.bind::<m::McpStart, _, _>(mcp::start)?;
    table.bind::<m::McpRestart, _, _>(mcp::restart)?;
    table.bind::<m::McpStop, _, _>(mcp::stop)?;
    table.bind::<m::McpIsRunning, _, _>(mcp::is_running)?;
    table.bind::<m::McpSetEnvValueMode, _, _>(mcp::set_env_value_mode)?;
    table.bind::<m::McpRemoveGitHub, _, _>(mcp::remove_github)?;
    table.bind::<m::LoopdMcpLog, _, _>(mcp::log)?;
    table.bind::<m::LoopdMcpTest, _, _>(mcp::test)?;
    table.bind::<m::McpOauthAnswer, _, _>(mcp_oauth::answer)?;
    table.bind::<m::McpOauthLogin, _, _>(mcp_oauth::login)?;
    table.bind::<m::LoopdMcpLoginWait, _, _>(mcp_oauth::wait)?;
    table.bind::<m::LoopdMcpLogout, _, _>(mcp_oauth::logout)?;
    table.bind::<m::McpExecuteSampling, _, _>(mcp_oauth::sample)?;
    table.bind::<m::McpCancelSampling, _, _>(mcp_oauth::cancel_sampling)?;
    table.bind::<m::McpResourcesList, _, _>(mcp_apps::list_resources)?;
    table.bind::<m::McpResourceTemplates, _, _>(mcp_apps::list_templates)?;
    table.bind::<m::McpResourcesRead, _, _>(mcp_apps::read_resource)?;
    table.bind::<m::McpAppsReadResource, _, _>(mcp_apps::read_app_resource)?;
    table.bind::<m::McpAppsListTools, _, _>(mcp_apps::list_tools)?;
    table.bind::<m::McpAppsCallTool, _, _>(mcp_apps::call_tool)?;
    table.bind::<m::McpAppsSetContext, _, _>(mcp_apps::set_context)?;
    table.bind::<m::McpAppsGetContext, _, _>(mcp_apps::get_context)?;
    table.bind::<m::McpAppsDiagnose, _, _>(mcp_apps::diagnose)
}
