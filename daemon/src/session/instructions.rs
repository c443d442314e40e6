//! The instructions of a session: where they are looked up, and which follow when files were used.

use std::path::{Path, PathBuf};

use loopd_proto::event::fact::PendingMessage;
use loopd_proto::id::ToolCallId;
use loopd_proto::permission::PermissionRequest;

use super::actor::Actor;
use super::effects::Reporter;
use crate::approvals;
use crate::discovery::Host;
use crate::discovery::instructions::session_places;
use crate::discovery::project_folders::project_folders;
use crate::turn::instructions::{InstructionCell, InstructionLookup};
use loopd_kernel::command::Command;
use loopd_kernel::texts::instructions as texts;

/// The type of warnings about files of instructions.
const FILE_WARNING: &str = "instruction_file";
/// The most tokens of all instructions, and which part of what a model takes they may be.
const MOST_TOKENS: u64 = 32_000;
const SHARE_OF_WINDOW: u64 = 4;
/// The most files of one call whose surroundings are looked at.
const MOST_FILES: usize = 20;
/// The variable that names more folders of instructions, separated by commas.
const FOLDERS_VARIABLE: &str = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS";

/// The instructions of one session.
#[derive(Default)]
pub(super) struct SessionInstructions {
    cell: InstructionCell,
}

/// Finds instructions near the files that a call used.
pub(super) struct NearbyInstructions {
    lookup: InstructionLookup,
    call: ToolCallId,
    used: Vec<PathBuf>,
}

impl Actor {
    /// Returns what finds the instructions of the session. The files of the project and those of the
    /// user for loopd and Copilot always count, unless the client wants none; those of the user for
    /// other programs count if the session discovers configuration.
    pub(super) fn instruction_lookup(&self) -> InstructionLookup {
        let options = &self.state.options;
        let cwd = PathBuf::from(&self.state.cwd);
        let launch = self.clients.launch();
        let mut named: Vec<PathBuf> = Vec::new();
        let mut folders = Vec::new();
        let mut host = None;
        let mut root = None;
        if options.skip_custom_instructions != Some(true) {
            let project = PathBuf::from(approvals::locate(&cwd).key);
            folders = project_folders(&cwd, &project);
            root = Some(project);
            let own = Host {
                home: self.services.home.clone(),
                ..Host::default()
            };
            host = Some(launch.map_or(own, |launch| {
                let mut host = Host::of(launch.env(), &self.services.home);
                if options.enable_config_discovery != Some(true) {
                    host.user = None;
                }
                host
            }));
            let more = launch.and_then(|launch| launch.variable(FOLDERS_VARIABLE));
            let more = more.into_iter().flat_map(|it| it.split(','));
            let more = more.map(str::trim).filter(|it| !it.is_empty());
            named.extend(more.map(|folder| cwd.join(folder)));
        }
        let given = options.instruction_directories.iter().flatten();
        named.extend(given.map(|folder| cwd.join(folder)));
        let place = root.as_deref().unwrap_or(&cwd);
        InstructionLookup {
            cell: self.instructions.cell.clone(),
            places: session_places(host.as_ref(), place, &folders, &named),
            root,
            disabled: options
                .disabled_instruction_sources
                .clone()
                .unwrap_or_default(),
            organization: options.organization_custom_instructions.clone(),
            on_demand: options.enable_on_demand_instruction_discovery != Some(false),
            permissions: self.effective_permissions().permissions,
            most_tokens: MOST_TOKENS.min(self.context_limit() / SHARE_OF_WINDOW),
            cwd,
        }
    }

    /// Returns the files whose instructions the conversation has, if messages may bring more.
    pub(super) fn given_instructions(&self, messages: &[PendingMessage]) -> Vec<String> {
        let mut attachments = messages.iter().flat_map(|message| &message.attachments);
        if attachments.any(|attachment| attachment.path().is_some()) {
            texts::given_files(&self.state)
        } else {
            Vec::new()
        }
    }

    /// Returns what finds instructions near the files that a call may use; `None` if there can be none.
    pub(super) fn instructions_near(
        &self,
        call: &ToolCallId,
        request: Option<&PermissionRequest>,
    ) -> Option<NearbyInstructions> {
        let options = &self.state.options;
        if options.enable_on_demand_instruction_discovery == Some(false) {
            return None;
        }
        let used = used_files(request?, Path::new(&self.state.cwd));
        if used.is_empty() {
            return None;
        }
        let lookup = self.instruction_lookup();
        lookup.may_be_near(&used).then(|| NearbyInstructions {
            lookup,
            call: call.clone(),
            used,
        })
    }

    /// Reads the files again whose instructions the conversation has, as a text for the conversation
    /// after a compaction: what follows must not depend on what a summary made of them. The
    /// instructions of the system message are read again with the next message. `None` if there are none.
    pub(super) fn instructions_again(
        &self,
    ) -> impl Future<Output = Option<String>> + Send + 'static + use<> {
        let given = texts::given_files(&self.state);
        let lookup = self.instruction_lookup();
        async move {
            if given.is_empty() {
                return None;
            }
            let files = given.iter().map(PathBuf::from).collect::<Vec<_>>();
            let reading = tokio::task::spawn_blocking(move || lookup.again(&files));
            let files = reading.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the instructions could not be read again");
                Vec::new()
            });
            (!files.is_empty()).then(|| texts::following(&files))
        }
    }
}

impl NearbyInstructions {
    /// Looks, and reports what was found before the result of the call is reported.
    pub(super) async fn report(self, reporter: &Reporter) {
        let Self { lookup, call, used } = self;
        let reading = tokio::task::spawn_blocking(move || lookup.near(&used)).await;
        let (files, warnings) = match reading {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(%error, "the instructions could not be looked for");
                return;
            }
        };
        report_warnings(warnings, reporter).await;
        if !files.is_empty() {
            let found = Command::InstructionsFound { call, files };
            reporter.report(found).await;
        }
    }
}

/// Tells people what is wrong with files of instructions.
pub(super) async fn report_warnings(warnings: Vec<String>, reporter: &Reporter) {
    for warning in warnings {
        let warning = Command::file_warning(FILE_WARNING, warning);
        reporter.report(warning).await;
    }
}

/// Returns the files that a permitted call reads or changes.
fn used_files(request: &PermissionRequest, cwd: &Path) -> Vec<PathBuf> {
    let paths: Vec<&String> = match request {
        PermissionRequest::Read { path, .. } => vec![path],
        PermissionRequest::Write {
            file_name,
            other_files,
            ..
        } => std::iter::once(file_name).chain(other_files).collect(),
        PermissionRequest::Shell { resolved_paths, .. } => resolved_paths.values().collect(),
        PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
        | PermissionRequest::Hook { .. } => Vec::new(),
    };
    let paths = paths.into_iter().take(MOST_FILES);
    paths.map(|path| cwd.join(path)).collect()
}
