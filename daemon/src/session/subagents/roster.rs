//! Looks up the sub-agents that a session can start, and reports unusable definition files.

use crate::session::actor::Actor;
use crate::session::effects::Reporter;
use crate::subagent::definitions::refresh::RosterRefresh;
use loopd_kernel::command::{Command, LogLevel};

/// A lookup that reports its warnings to the session.
pub(in crate::session) struct RosterLookup {
    refresh: RosterRefresh,
    reporter: Reporter,
}

impl RosterLookup {
    pub(in crate::session) async fn run(self) {
        for message in self.refresh.run().await {
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

impl Actor {
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
            },
            reporter: self.reporter(),
        })
    }
}
