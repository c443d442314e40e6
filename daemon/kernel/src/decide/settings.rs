//! Small changes: name, mode, model, permissions, agent, plan, files, directory, log lines.

pub(super) mod inherited;
pub(super) mod permissions;

use loopd_proto::event::fact::{Configured, Named, NamedBy, PermissionsSet};
use loopd_proto::event::session::{
    Empty, Failure, FileChanged, FileOperation, Info, ModeChanged, ModelChange, PlanChanged,
    TitleChanged, Warning, WorkContext,
};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::session::{Mode, SessionOptions};

use super::{guard_folders, limits, plan, vouched_hooks};
use crate::changed_shells::command_of;
use crate::command::{
    AgentChoice, AgentPick, Answer, DecideEnv, Decision, LogLevel, McpSwitch, ModelChoice, Refusal,
    Step,
};
use crate::state::{State, Turn};
use crate::texts;
use crate::tool_call::{CallStage, CallState};

/// Names the session. An automatic name does not replace one that a person gave.
pub(super) fn name(state: &State, name: String, by: NamedBy) -> Decision {
    let named_by_user = state.name.as_ref().is_some_and(|name| name.by_user);
    if by == NamedBy::Auto && named_by_user {
        return Decision::answering(Answer::Accepted(false));
    }
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::Named(Named {
            name: name.clone(),
            by,
        }))
        .tell(Ephemeral::TitleChanged(TitleChanged { title: name }));
    decision
}

/// Sets the mode. A question whether plan mode may end has its answer when it has ended.
pub(super) fn mode(
    state: &State,
    mode: Mode,
    expected: Option<Mode>,
    env: &DecideEnv<'_>,
) -> Decision {
    let changes = mode != state.mode && expected.is_none_or(|expected| expected == state.mode);
    let mut decision = Decision::answering(Answer::Accepted(changes));
    if changes {
        change_mode(state, &mut decision, mode);
        if state.mode == Mode::Plan {
            plan::overtaken(state, &mut decision, mode, env);
        }
    }
    decision
}

/// The kind of the warning that names the work which goes on when plan mode begins.
const RUNNING_IN_PLAN_MODE: &str = "plan_mode_running_work";

/// Returns the mode of the session after the steps that are decided already.
pub(super) fn mode_after(state: &State, decision: &Decision) -> Mode {
    let mut steps = decision.steps.iter().rev();
    let changed = steps.find_map(|step| match step {
        Step::Store(Durable::ModeChanged(changed)) => Some(changed.new_mode),
        Step::Store(_) | Step::Tell(_) | Step::Do(_) => None,
    });
    changed.unwrap_or(state.mode)
}

/// Switches to a mode, unless the session is in it. What runs when plan mode begins is named to
/// people.
pub(super) fn change_mode(state: &State, decision: &mut Decision, mode: Mode) {
    let previous_mode = mode_after(state, decision);
    if previous_mode == mode {
        return;
    }
    decision.store(Durable::ModeChanged(ModeChanged {
        previous_mode,
        new_mode: mode,
    }));
    let running = (mode == Mode::Plan).then(|| {
        let shells: Vec<&str> = state.changed_shells.with_jobs().collect();
        let foreground = foreground_commands(state, decision);
        texts::still_running(state.tasks.running(), foreground.into_iter(), &shells)
    });
    if let Some(message) = running.flatten() {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: RUNNING_IN_PLAN_MODE.to_owned(),
            message,
            url: None,
        }));
    }
}

/// Returns the commands of calls that have started and may be running after the steps that are decided
/// already.
fn foreground_commands<'s>(state: &'s State, decision: &Decision) -> Vec<&'s str> {
    let calls = state.turn().map(Turn::calls).unwrap_or_default();
    let started = |call: &&CallState| call.may_run() && call.stage != CallStage::Requested;
    let running = calls.iter().filter(started);
    let running = running.filter(|call| !decision.completes(&call.call.id));
    running.filter_map(|call| command_of(&call.call)).collect()
}

/// Switches to a model. Capabilities that were stated for the earlier model are replaced.
pub(super) fn model(state: &State, choice: ModelChoice) -> Decision {
    let mut decision = Decision::default();
    if choice.capabilities != state.options.model_capabilities {
        let mut options = state.options.clone();
        options.model_capabilities = choice.capabilities;
        configure(state, &mut decision, options, state.cwd.clone());
    }
    decision.store(model_change(state, choice.model, choice.reasoning_effort));
    decision
}

/// Changes the reasoning effort and keeps the model.
pub(super) fn effort(state: &State, effort: String, default_model: String) -> Decision {
    let model = state.model.as_ref().or(state.options.model.as_ref());
    let model = model.cloned().unwrap_or(default_model);
    let mut decision = Decision::default();
    decision.store(model_change(state, model, Some(effort)));
    decision
}

fn model_change(state: &State, model: String, reasoning_effort: Option<String>) -> Durable {
    Durable::ModelChange(ModelChange {
        previous_model: state.model.clone(),
        new_model: model,
        previous_reasoning_effort: state.reasoning_effort.clone(),
        reasoning_effort,
        cause: None,
    })
}

/// Switches to the model and the effort that the options name, if they differ from the current
/// ones. Returns the model that is current afterwards.
pub(super) fn named_model(
    state: &State,
    decision: &mut Decision,
    named: &SessionOptions,
) -> Option<String> {
    let model = named.model.as_ref().or(state.model.as_ref());
    let effort = named.reasoning_effort.as_ref();
    let effort = effort.or(state.reasoning_effort.as_ref());
    let changes = model != state.model.as_ref() || effort != state.reasoning_effort.as_ref();
    if let Some(model) = model.filter(|_| changes) {
        decision.store(model_change(state, model.clone(), effort.cloned()));
    }
    model.cloned()
}

/// Sets how sub-agents run, or returns to the defaults.
pub(super) fn subagents(state: &State, subagents: Option<SubagentSettings>) -> Decision {
    let mut decision = Decision::default();
    if state.options.subagents != subagents {
        let mut options = state.options.clone();
        options.subagents = subagents;
        decision.store(Durable::Configured(Box::new(Configured {
            options,
            working_directory: state.cwd.clone(),
        })));
    }
    decision
}

/// Switches to the model and the effort that an agent wants, if it wants any.
pub(super) fn agent_model(state: &State, decision: &mut Decision, choice: &AgentChoice) {
    let model = choice.model.as_ref().or(state.model.as_ref());
    let effort = choice.effort.as_ref().or(state.reasoning_effort.as_ref());
    let changes = model != state.model.as_ref() || effort != state.reasoning_effort.as_ref();
    if let Some(model) = model.filter(|_| changes) {
        decision.store(model_change(state, model.clone(), effort.cloned()));
    }
}

pub(super) fn agent(state: &State, pick: Option<Box<AgentPick>>) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    match pick {
        Some(pick) => {
            let choice = pick.decided(state)?;
            agent_model(state, &mut decision, &choice);
            decision.store(Durable::AgentSelected(choice.into()));
        }
        None if state.agent.is_some() => {
            decision.store(Durable::AgentDeselected(Empty {}));
        }
        None => {}
    }
    Ok(decision)
}

pub(super) fn plan(operation: FileOperation) -> Decision {
    let mut decision = Decision::default();
    decision.store(Durable::PlanChanged(PlanChanged { operation }));
    decision
}

pub(super) fn file(changed: FileChanged) -> Decision {
    let mut decision = Decision::default();
    decision.store(Durable::FileChanged(changed));
    decision
}

/// Changes the options that a patch names, and nothing else.
pub(super) fn options(state: &State, patch: &OptionsPatch, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let cwd = patch.options.working_directory.as_ref();
    let cwd = cwd.unwrap_or(&state.cwd).clone();
    let options = patch.applied_to(state.options.clone());
    let session_limits = options.session_limits;
    configure(state, &mut decision, options, cwd);
    vouched_hooks::vouch(state, patch.vouched_hooks.clone(), &mut decision);
    named_model(state, &mut decision, &patch.options);
    limits::changed(state, &mut decision, session_limits, env);
    decision.answer = Answer::Accepted(!decision.steps.is_empty());
    decision
}

/// Lets the session use an MCP server or do without it.
pub(super) fn mcp_server(state: &State, name: String, switch: McpSwitch) -> Decision {
    let mut decision = Decision::default();
    let mut options = state.options.clone();
    let off = options.disabled_mcp_servers.get_or_insert_default();
    off.retain(|it| *it != name);
    match switch {
        McpSwitch::On => {}
        McpSwitch::Off => off.push(name),
    }
    configure(state, &mut decision, options, state.cwd.clone());
    decision.answer = Answer::Accepted(!decision.steps.is_empty());
    decision
}

/// Moves the session to another directory, which becomes its primary one.
pub(super) fn working_directory(state: &State, cwd: String) -> Decision {
    let mut decision = Decision::default();
    let mut options = state.options.clone();
    if cwd != state.cwd {
        options.working_directory = Some(cwd.clone());
    }
    configure(state, &mut decision, options, cwd);
    if state.permissions.primary_directory.is_some() {
        let mut permissions = state.permissions.clone();
        permissions.primary_directory = None;
        decision.store(Durable::Permissions(PermissionsSet { permissions }));
    }
    decision.answer = Answer::Accepted(!decision.steps.is_empty());
    decision
}

/// Tells people that the hooks of files, among them guards, do not run any more.
pub(super) fn tell_hooks_off(state: &State, options: &SessionOptions, decision: &mut Decision) {
    if state.options.wants_file_hooks() && !options.wants_file_hooks() {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "hooks_off".to_owned(),
            message: texts::HOOKS_OFF.to_owned(),
            url: None,
        }));
    }
}

/// Stores the options and the directory if they changed.
pub(super) fn configure(
    state: &State,
    decision: &mut Decision,
    options: SessionOptions,
    cwd: String,
) {
    if cwd == state.cwd && options == state.options {
        return;
    }
    tell_hooks_off(state, &options, decision);
    guard_folders::tell_kept(state, &cwd, decision);
    decision.store(Durable::Configured(Box::new(Configured {
        options,
        working_directory: cwd.clone(),
    })));
    if cwd != state.cwd {
        decision.store(Durable::ContextChanged(WorkContext {
            cwd,
            ..WorkContext::default()
        }));
    }
}

/// Records facts about the working directory. Facts about another directory are rejected.
pub(super) fn context(state: &State, context: WorkContext) -> Decision {
    let fits = context.cwd == state.cwd;
    let mut decision = Decision::answering(Answer::Accepted(fits));
    if fits {
        decision.store(Durable::ContextChanged(context));
    }
    decision
}

pub(super) fn log(
    level: LogLevel,
    kind: String,
    message: String,
    url: Option<String>,
    tip: Option<String>,
    stored: bool,
) -> Decision {
    let mut decision = Decision::default();
    match level {
        LogLevel::Info => {
            let info = Info {
                info_type: kind,
                message,
                url,
                tip,
            };
            if stored {
                decision.store(Durable::SessionInfo(info));
            } else {
                decision.tell(Ephemeral::SessionInfo(info));
            }
        }
        LogLevel::Warning => {
            let warning = Warning {
                warning_type: kind,
                message,
                url,
            };
            if stored {
                decision.store(Durable::SessionWarning(warning));
            } else {
                decision.tell(Ephemeral::SessionWarning(warning));
            }
        }
        LogLevel::Error => {
            let failure = Failure {
                error_type: kind,
                message,
                url,
                ..Failure::default()
            };
            if stored {
                decision.store(Durable::SessionError(failure));
            } else {
                decision.tell(Ephemeral::SessionError(failure));
            }
        }
    }
    decision
}

#[cfg(test)]
mod tests;
