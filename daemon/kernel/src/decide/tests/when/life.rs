//! Creating, resuming, recovering and ending a session.

use loopd_proto::event::session::WorkContext;
use loopd_proto::event::task::TaskOutcome;
use loopd_proto::permission::ManagedPermissions;
use loopd_proto::session::SessionOptions;
use serde_json::{Value, json};

use super::tasks::answer;
use super::{agent, data, pick};
use crate::command::{
    AdoptAsSubagent, Command, Create, RecoveredOutcome, Resume, Shutdown, TaskEnd,
};
use crate::decide::tests::given::identity;

/// A client creates the session with these options and permissions.
pub(crate) fn create(options: Value, permissions: Value) -> Create {
    Create {
        options: data(options),
        context: at("/work"),
        permissions: data(permissions),
        agent: None,
        version: "1".to_owned(),
        subagent: None,
        name: None,
        vouched_hooks: Vec::new(),
    }
}

impl Create {
    pub(crate) fn by_agent(mut self, name: &str) -> Command {
        self.agent = Some(agent(name));
        Command::Create(Box::new(self))
    }

    pub(crate) fn of_a_subagent(mut self) -> Command {
        self.subagent = Some(data(identity(None)));
        Command::Create(Box::new(self))
    }
}

pub(super) fn at(cwd: &str) -> WorkContext {
    data(json!({ "cwd": cwd, "branch": "main" }))
}

/// A client attaches to a session that no client had open.
pub(crate) fn resume() -> Resume {
    Resume {
        options: SessionOptions::default(),
        working_directory: None,
        context: WorkContext::default(),
        agent: None,
        managed: None,
        vouched_hooks: None,
        was_active: false,
        already_in_use: false,
        continue_pending_work: false,
        announce: true,
    }
}

impl Resume {
    /// Other clients have the session open.
    pub(crate) fn of_an_active_session(mut self) -> Self {
        (self.was_active, self.already_in_use) = (true, true);
        self
    }

    /// Open work shall continue.
    pub(crate) fn continuing(mut self) -> Self {
        self.continue_pending_work = true;
        self
    }

    /// The resume is not announced.
    pub(crate) fn silently(mut self) -> Self {
        self.announce = false;
        self
    }

    pub(crate) fn with(mut self, options: Value) -> Self {
        self.options = data(options);
        self
    }

    pub(crate) fn in_directory(mut self, cwd: &str) -> Self {
        self.working_directory = Some(cwd.to_owned());
        self
    }

    pub(crate) fn by_agent(mut self, name: &str) -> Self {
        self.agent = Some(pick(name));
        self
    }

    pub(crate) fn managed(mut self, rules: Value) -> Self {
        self.managed = Some(Box::new(data::<ManagedPermissions>(rules)));
        self
    }
}

/// A new daemon loaded the log. The logs of sub-agents say nothing new.
pub(crate) fn recover() -> Command {
    Command::Recover(Vec::new())
}

/// The log was loaded. The log of this sub-agent holds its answer.
pub(crate) fn recover_answered(task: &str) -> Command {
    Command::Recover(vec![RecoveredOutcome::Answered(task.into(), answer())])
}

/// The log was loaded. The log of this sub-agent says that it failed.
pub(crate) fn recover_failed(task: &str) -> Command {
    let end = TaskEnd::new(TaskOutcome::Failed).because("no model");
    Command::Recover(vec![RecoveredOutcome::Ended(task.into(), end)])
}

/// The log is a copy and becomes that of a sub-agent.
pub(crate) fn adopt(cwd: Option<&str>) -> Command {
    Command::AdoptAsSubagent(Box::new(AdoptAsSubagent {
        subagent: data(identity(None)),
        cwd: cwd.map(str::to_owned),
    }))
}

pub(crate) fn take_up() -> Command {
    Command::TakeUp
}

pub(crate) fn suspend() -> Command {
    Command::Suspend(Vec::new())
}

pub(crate) fn shutdown() -> Command {
    Command::Shutdown(Shutdown::default())
}

pub(crate) fn shutdown_by(error: &str) -> Command {
    let error = Some(error.to_owned());
    Command::Shutdown(Shutdown::because_of(error))
}
