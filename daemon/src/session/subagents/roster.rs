//! Looks up the sub-agents that a session can start, and reports unusable definition files.

use crate::session::actor::Actor;
use crate::session::effects::Reporter;
use crate::subagent::definitions::refresh::RosterRefresh;
use loopd_kernel::command::Command;

/// A lookup that reports its warnings to the session.
pub(in crate::session) struct RosterLookup {
    refresh: RosterRefresh,
    reporter: Reporter,
}

impl RosterLookup {
    /// Looks, and reports what is wrong with files to the mailbox of the session.
    pub(in crate::session) async fn run(self) {
        let reporter = self.reporter.clone();
        for warning in self.warnings().await {
            reporter.report(warning).await;
        }
    }

    /// Looks, and returns what is wrong with files, for the actor itself: it would wait for ever for
    /// room in its own mailbox.
    pub(in crate::session) async fn warnings(self) -> impl Iterator<Item = Command> + use<> {
        let found = self.refresh.run().await.into_iter();
        found.map(|message| Command::file_warning("agent_definition", message))
    }
}

impl Actor {
    /// Looks the sub-agents up when the first client comes, so that the person at it learns of broken
    /// files before the first message. The lookup of that message repeats no warning.
    pub(in crate::session) fn warn_of_broken_agents(&mut self) {
        let options = &self.options;
        let defines = options.enable_config_discovery == Some(true)
            || options
                .custom_agents
                .as_ref()
                .is_some_and(|it| !it.is_empty());
        if !defines || !self.subagents.roster.is_empty() {
            return;
        }
        if let Some(lookup) = self.roster_lookup() {
            self.running.spawn(lookup.run());
        }
    }

    /// Returns a lookup of the sub-agents; a sub-agent has none and uses the roster of its parent.
    pub(in crate::session) fn roster_lookup(&self) -> Option<RosterLookup> {
        if self.subagents.is_child() {
            return None;
        }
        let launch = self.clients.launch();
        let home = launch.and_then(|launch| launch.variable("HOME"));
        Some(RosterLookup {
            refresh: RosterRefresh {
                cell: self.subagents.roster.clone(),
                options: self.options.clone(),
                cwd: self.state.cwd.clone().into(),
                home: self.services.home.clone(),
                user: home.map(Into::into),
                plugins: launch.map(|launch| launch.plugins()).unwrap_or_default(),
                store: self.services.store.clone(),
                tools: self
                    .services
                    .catalog
                    .names()
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect(),
            },
            reporter: self.reporter(),
        })
    }
}
