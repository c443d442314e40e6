//! Looks up the agents that a session may start, anew with every message, and tells of files that
//! cannot be used.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use loopd_proto::session::SessionOptions;

use crate::approvals;
use crate::discovery::Host;
use crate::discovery::agents::AgentOrigin;
use crate::services::Services;
use crate::session::effects::Reporter;
use crate::subagent::definitions::{self, Roster, RosterInput};
use loopd_kernel::command::{Command, LogLevel};

/// The agents that may be started, as the last message found them.
#[derive(Clone, Default)]
pub(in crate::session) struct RosterCell(Arc<Mutex<Option<Arc<Roster>>>>);

impl RosterCell {
    /// The agents of the moment; ours alone before anybody looked.
    pub(in crate::session) fn get(&self) -> Arc<Roster> {
        let mut cell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cell.get_or_insert_with(|| Arc::new(definitions::load(&RosterInput::default())))
            .clone()
    }

    pub(in crate::session) fn set(&self, roster: Arc<Roster>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(roster);
    }
}

/// What has to be known to look.
pub(in crate::session) struct RosterRefresh {
    pub(in crate::session) cell: RosterCell,
    pub(in crate::session) options: SessionOptions,
    pub(in crate::session) cwd: PathBuf,
    pub(in crate::session) user: Option<PathBuf>,
    pub(in crate::session) plugins: Vec<PathBuf>,
    pub(in crate::session) services: Arc<Services>,
    pub(in crate::session) reporter: Reporter,
}

impl RosterRefresh {
    async fn is_trusted(&self) -> bool {
        let root = definitions::project_root(&self.cwd);
        let root = root.to_string_lossy().into_owned();
        let trusted = approvals::is_trusted(self.services.store.as_ref(), &root).await;
        trusted.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a folder is trusted could not be read; it is not");
            false
        })
    }

    /// Looks, and says what is wrong with files unless it was said before.
    pub(in crate::session) async fn call(self) {
        let host = Host {
            home: self.services.home.clone(),
            user: self.user.clone(),
        };
        let mut input = RosterInput::of_session(&self.options, &self.cwd, host, false);
        input.plugins.extend(self.plugins.iter().cloned());
        let Some(mut found) = look(input.clone()).await else {
            return;
        };
        // Most projects define no agents, and then it does not matter.
        let defined = found
            .custom()
            .any(|agent| agent.origin == AgentOrigin::Project);
        if defined && self.is_trusted().await {
            let trusted = RosterInput {
                trusted: true,
                ..input
            };
            found = look(trusted).await.unwrap_or(found);
        }
        let before = self.cell.get();
        let told: Vec<String> = before.problems().iter().map(ToString::to_string).collect();
        let found = Arc::new(found);
        self.cell.set(found.clone());
        for problem in found.problems() {
            let message = problem.to_string();
            if !told.contains(&message) {
                self.reporter
                    .report(Command::Log {
                        level: LogLevel::Warning,
                        kind: "agent_definition".to_owned(),
                        message,
                        url: None,
                        tip: None,
                        stored: false,
                    })
                    .await;
            }
        }
    }
}

async fn look(input: RosterInput) -> Option<Roster> {
    if !input.has_folders() {
        // The usual case, in which no other thread is needed.
        return Some(definitions::load(&input.without_folders()));
    }
    let read = tokio::task::spawn_blocking(move || definitions::load(&input)).await;
    if read.is_err() {
        tracing::error!("the agents could not be looked up");
    }
    read.ok()
}
