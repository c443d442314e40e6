//! Looks up the agents that a session may start, anew with every message, and says which files cannot
//! be used.

use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::session::SessionOptions;
use loopd_store::Store;
use parking_lot::Mutex;

use super::{ProjectTrust, Roster, RosterInput};
use crate::discovery::Host;
use crate::trust;

/// The agents that may be started, as the last message found them.
#[derive(Clone, Default)]
pub(crate) struct RosterCell(Arc<Mutex<Option<Arc<Roster>>>>);

impl RosterCell {
    /// The agents of the moment; ours alone before anybody looked.
    pub(crate) fn get(&self) -> Arc<Roster> {
        let mut cell = self.0.lock();
        cell.get_or_insert_with(|| Arc::new(super::load(&RosterInput::default())))
            .clone()
    }

    pub(crate) fn set(&self, roster: Arc<Roster>) {
        *self.0.lock() = Some(roster);
    }

    /// Returns whether nobody has looked yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Puts the agents of the moment in the place of those before; of two lookups at the same time,
    /// the second one gets those of the first.
    fn replace(&self, roster: Arc<Roster>) -> Option<Arc<Roster>> {
        self.0.lock().replace(roster)
    }
}

/// What has to be known to look.
pub(crate) struct RosterRefresh {
    pub(crate) cell: RosterCell,
    pub(crate) options: SessionOptions,
    pub(crate) cwd: PathBuf,
    /// The folder of loopd, and that of the person.
    pub(crate) home: PathBuf,
    pub(crate) user: Option<PathBuf>,
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) store: Arc<dyn Store>,
    /// The names of the built-in tools.
    pub(crate) tools: Vec<String>,
}

impl RosterRefresh {
    async fn trust(&self) -> ProjectTrust {
        let trust = ProjectTrust::read(self.store.as_ref(), &self.cwd).await;
        trust.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a folder is trusted could not be read; it is not");
            ProjectTrust::None
        })
    }

    /// Looks. Returns what is wrong with files and was not known before.
    pub(crate) async fn run(self) -> Vec<String> {
        let host = Host {
            copilot: None,
            home: self.home.clone(),
            user: self.user.clone(),
        };
        let mut input = RosterInput::of_session(&self.options, &self.cwd, host, ProjectTrust::None);
        input.plugins.extend(self.plugins.iter().cloned());
        if !input.projects.is_empty() {
            // Also if there are no agents now: a folder may be trusted with the guards of some.
            input.trust = self.trust().await;
        }
        if input.has_folders() {
            input.own_guards = trust::own_agent_guards(self.store.as_ref()).await;
        }
        let known = input.own_guards.clone();
        let Some(mut found) = look(input).await else {
            return Vec::new();
        };
        trust::remember_agent_guards(self.store.as_ref(), &known, found.own_guards()).await;
        let tools: Vec<&str> = self.tools.iter().map(String::as_str).collect();
        found.check_tools(&tools);
        let found = Arc::new(found);
        let before = self.cell.replace(found.clone());
        let told = before.iter().flat_map(|before| before.problems());
        let told: Vec<String> = told.map(ToString::to_string).collect();
        let problems = found.problems().iter().map(ToString::to_string);
        problems.filter(|problem| !told.contains(problem)).collect()
    }
}

async fn look(input: RosterInput) -> Option<Roster> {
    if !input.has_folders() {
        // The usual case, in which no other thread is needed.
        return Some(super::load(&input.without_folders()));
    }
    let read = tokio::task::spawn_blocking(move || super::load(&input)).await;
    if read.is_err() {
        tracing::error!("the agents could not be looked up");
    }
    read.ok()
}
