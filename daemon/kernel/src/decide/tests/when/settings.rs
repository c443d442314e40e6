//! Changes of settings.

use loopd_proto::event::fact::NamedBy;
use loopd_proto::event::session::{FileChanged, FileOperation};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::session::Mode;
use serde_json::Value;

use super::life::at;
use super::{data, pick};
use crate::command::{
    Command, LogLevel, ModelChoice, PermissionChange, PermissionsPatch, RuleRemoval,
};

pub(crate) fn name_by_user(name: &str) -> Command {
    let name = name.to_owned();
    Command::SetName {
        name,
        by: NamedBy::User,
    }
}

pub(crate) fn name_by_itself(name: &str) -> Command {
    let name = name.to_owned();
    Command::SetName {
        name,
        by: NamedBy::Auto,
    }
}

pub(crate) fn set_mode(mode: Mode) -> Command {
    Command::SetMode {
        mode,
        expected: None,
    }
}

pub(crate) fn set_model(model: &str, effort: Option<&str>) -> Command {
    Command::SetModel(Box::new(ModelChoice {
        model: model.to_owned(),
        reasoning_effort: effort.map(str::to_owned),
        capabilities: None,
    }))
}

/// A client switches to a model and states its capabilities.
pub(crate) fn set_known_model(model: &str, capabilities: Value) -> Command {
    Command::SetModel(Box::new(ModelChoice {
        model: model.to_owned(),
        reasoning_effort: None,
        capabilities: Some(data(capabilities)),
    }))
}

pub(crate) fn set_effort(effort: &str) -> Command {
    Command::SetReasoningEffort {
        effort: effort.to_owned(),
        default_model: "default".to_owned(),
    }
}

/// A client changes these options.
pub(crate) fn update_options(options: Value) -> Command {
    Command::UpdateOptions(Box::new(OptionsPatch {
        options: data(options),
        ..OptionsPatch::default()
    }))
}

/// A client removes the limits.
pub(crate) fn lift_limits() -> Command {
    Command::UpdateOptions(Box::new(OptionsPatch {
        no_limits: true,
        ..OptionsPatch::default()
    }))
}

pub(crate) fn change_permissions(change: PermissionChange) -> Command {
    Command::ChangePermissions(change)
}

pub(crate) fn configure_permissions(patch: PermissionsPatch) -> Command {
    change_permissions(PermissionChange::Configure(Box::new(patch)))
}

/// Approves these rules, by their JSON.
pub(crate) fn approve(rules: Value) -> Command {
    change_permissions(PermissionChange::Approve(data(rules)))
}

/// Removes and adds approved rules, by their JSON.
pub(crate) fn modify_rules(remove: Value, add: Value) -> Command {
    change_permissions(PermissionChange::ModifyRules {
        remove: RuleRemoval::These(data(remove)),
        add: data(add),
    })
}

pub(crate) fn select_agent(name: &str) -> Command {
    Command::SelectAgent(Some(pick(name)))
}

pub(crate) fn deselect_agent() -> Command {
    Command::SelectAgent(None)
}

pub(crate) fn plan_changed(operation: FileOperation) -> Command {
    Command::PlanChanged(operation)
}

pub(crate) fn file_changed(path: &str) -> Command {
    Command::FileChanged(FileChanged {
        path: path.to_owned(),
        operation: FileOperation::Update,
    })
}

pub(crate) fn set_directory(cwd: &str) -> Command {
    Command::SetWorkingDirectory(cwd.to_owned())
}

/// The branch in this directory was read.
pub(crate) fn context_seen(cwd: &str) -> Command {
    Command::RecordContext(at(cwd))
}

pub(crate) fn set_subagents(settings: Value) -> Command {
    Command::SetSubagents(data(settings))
}

/// A log line that is stored.
pub(crate) fn log_stored(level: LogLevel) -> Command {
    log(level, true)
}

/// A log line that is only sent.
pub(crate) fn log_told(level: LogLevel) -> Command {
    log(level, false)
}

fn log(level: LogLevel, stored: bool) -> Command {
    Command::Log {
        level,
        kind: "note".to_owned(),
        message: "look".to_owned(),
        url: None,
        tip: None,
        stored,
    }
}
