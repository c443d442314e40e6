//! What an order for an agent comes to: which agent, which model, where, and whether it may be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::event::agent::{Profile, Stance};
use loopd_proto::event::task::{Execution, WorktreeWork};
use loopd_proto::id::SessionId;

use super::{ParentSnapshot, depth, environment};
use crate::discovery::agents::{self, AgentDefinition, ModelPolicy, PermissionMode};
use crate::services::Services;
use crate::subagent::definitions::model::{Choice, Wish, choose};
use crate::subagent::definitions::{AgentSettings, AskedBy, is_same};
use crate::subagent::{Isolation, SubagentOrder, SubagentPlan, WorktreeEnd};
use loopd_exec::worktree::{Settled, Worktree};
use loopd_kernel::model::ModelInfo;

/// The agent for calls that name none.
const GENERAL: &str = "general-purpose";
/// What a fork is called where agents have their type.
const FORK: &str = "fork";

/// Finds what the order names, or says what is wrong with it in words for who gave it.
pub(super) async fn plan(
    services: &Services,
    kin: ParentSnapshot,
    order: SubagentOrder,
) -> Result<SubagentPlan, String> {
    let settings = settings(services, &kin);
    if order.prompt.trim().is_empty() {
        return Err("The prompt is empty. Say in it everything that the agent has to know: it does not see this conversation.".to_owned());
    }
    let own = depth(&kin);
    if own > settings.max_depth {
        return Err(format!(
            "Agents may be {} deep here, and this one would be the {own}th. Do the work yourself.",
            settings.max_depth
        ));
    }
    let wanted = order.agent_type.as_deref().map(str::trim);
    let wanted = wanted
        .filter(|wanted| !wanted.is_empty())
        .map(str::to_owned);
    let may_fork = settings.fork && order.call.is_some();
    match wanted {
        None if may_fork => fork(kin, order),
        Some(wanted) if may_fork && is_same(&wanted, FORK) => fork(kin, order),
        wanted => {
            let wanted = wanted.unwrap_or_else(|| GENERAL.to_owned());
            named(kin, order, &settings, wanted).await
        }
    }
}

fn settings(services: &Services, kin: &ParentSnapshot) -> AgentSettings {
    let variable = |name: &str| kin.inheritance.clients.launch.as_ref()?.variable(name);
    let settings = services.config.agents.with(variable);
    settings.of_session(kin.inheritance.options.subagents.as_ref())
}

async fn named(
    kin: ParentSnapshot,
    order: SubagentOrder,
    settings: &AgentSettings,
    wanted: String,
) -> Result<SubagentPlan, String> {
    let asked_by = match &order.call {
        Some(_) => AskedBy::Model,
        None => AskedBy::Person,
    };
    let subagents = kin
        .inheritance
        .options
        .subagents
        .clone()
        .unwrap_or_default();
    let disabled = subagents.disabled_subagents.clone().unwrap_or_default();
    let agent = kin.roster.may_start(&wanted, asked_by, &disabled);
    let agent = agent.map_err(|refusal| refusal.to_string())?.clone();
    check_rules(&kin, &agent.name)?;
    let cwd = place(&kin, &order)?;
    let isolation = isolation(&order, &agent)?;
    let choice = model(&kin, &order, settings, &agent).await?;
    // Who works for somebody waits for those who work for it.
    let waits = kin.subagent.is_some();
    let background = order.execution == Some(Execution::Background) || agent.background;
    let execution = if background && !waits {
        Execution::Background
    } else {
        Execution::Sync
    };
    let name = order.name.as_deref().map(str::trim);
    let name = name.filter(|name| !name.is_empty());
    let profile = Profile {
        agent_type: agent.name.clone(),
        display_name: name.unwrap_or(&agent.name).to_owned(),
        prompt: agent.prompt.clone(),
        tools: agent.tools.clone(),
        disallowed_tools: agent.disallowed_tools.clone(),
        max_turns: agent.max_turns,
        stance: stance(agent.permission_mode),
        fork: false,
        worktree: None,
    };
    Ok(SubagentPlan {
        profile,
        execution,
        model: Some(choice.model),
        reasoning_effort: agent.effort.clone().or(kin.state.reasoning_effort),
        isolation,
        cwd,
        preface: agent.initial_prompt.clone(),
        prefix: kin.subagent.map(|own| own.task),
        taken: kin.state.tasks,
        note: choice.note,
    })
}

/// Refuses an agent that a rule of the session denies, by its name or with all others.
fn check_rules(kin: &ParentSnapshot, agent: &str) -> Result<(), String> {
    let denied = kin.inheritance.leave.permissions.denied.iter();
    let mut denied = denied.filter(|rule| rule.kind == "agent");
    let hit = denied.any(|rule| {
        let argument = rule.argument.as_deref();
        argument.is_none_or(|argument| is_same(argument, agent))
    });
    if hit {
        return Err(format!(
            "The rules of this session deny the agent {agent}. Do the work without it."
        ));
    }
    Ok(())
}

fn stance(mode: Option<PermissionMode>) -> Stance {
    match mode {
        Some(PermissionMode::Plan) => Stance::Plan,
        Some(PermissionMode::DontAsk) => Stance::NeverAsk,
        // None of these may be more than the parent's, so all are the parent's.
        Some(
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::BypassPermissions
            | PermissionMode::Bubble,
        )
        | None => Stance::Inherit,
    }
}

fn place(kin: &ParentSnapshot, order: &SubagentOrder) -> Result<PathBuf, String> {
    let own = PathBuf::from(&kin.state.cwd);
    let Some(wanted) = &order.cwd else {
        return Ok(own);
    };
    let place = own.join(wanted);
    if place.is_dir() {
        Ok(place)
    } else {
        Err(format!("cwd: there is no folder {}.", place.display()))
    }
}

fn isolation(order: &SubagentOrder, agent: &AgentDefinition) -> Result<Option<Isolation>, String> {
    let own = agent.isolation.map(|isolation| match isolation {
        agents::Isolation::Worktree => Isolation::Worktree,
    });
    let isolation = order.isolation.or(own);
    if isolation.is_some() && order.cwd.is_some() {
        return Err(
            "cwd and isolation exclude each other: a worktree has a folder of its own.".to_owned(),
        );
    }
    Ok(isolation)
}

async fn model(
    kin: &ParentSnapshot,
    order: &SubagentOrder,
    settings: &AgentSettings,
    agent: &AgentDefinition,
) -> Result<Choice, String> {
    let session_model = match kin
        .state
        .model
        .clone()
        .or_else(|| kin.state.options.model.clone())
    {
        Some(model) => model,
        None => kin
            .route
            .default_model()
            .await
            .map_err(|failure| failure.message)?,
    };
    let subagents = kin.inheritance.options.subagents.as_ref();
    let preferred = settings.preferred(&agent.name, subagents);
    let plain = order.model.is_none() && preferred.is_none() && agent.model == ModelPolicy::Inherit;
    let available: Vec<ModelInfo> = if plain {
        Vec::new()
    } else {
        // Without a list any name is taken at its word.
        kin.route.models().await.unwrap_or_default()
    };
    let wish = Wish {
        requested: order.model.as_deref(),
        policy: &agent.model,
        preferred,
        session_model: &session_model,
        available: &available,
        settings,
    };
    choose(&wish).map_err(|refusal| refusal.to_string())
}

/// A copy of the conversation so far goes on with the prompt.
fn fork(kin: ParentSnapshot, order: SubagentOrder) -> Result<SubagentPlan, String> {
    if kin.subagent.as_ref().is_some_and(|own| own.profile.fork) {
        return Err(
            "A fork cannot fork again: do the work that you were forked for yourself.".to_owned(),
        );
    }
    check_rules(&kin, FORK)?;
    if order.model.is_some() {
        return Err(
            "A fork has the model of the conversation it continues; leave `model` out or name an agent_type.".to_owned(),
        );
    }
    let cwd = place(&kin, &order)?;
    if order.cwd.is_some() {
        return Err("A fork works where its conversation does; leave `cwd` out.".to_owned());
    }
    let execution = match &kin.subagent {
        Some(_) => Execution::Sync,
        None => order.execution.unwrap_or(Execution::Background),
    };
    let name = order.name.as_deref().map(str::trim);
    let name = name.filter(|name| !name.is_empty());
    let place = match order.isolation {
        Some(Isolation::Worktree) => FORK_IN_WORKTREE,
        None => "",
    };
    Ok(SubagentPlan {
        profile: Profile {
            agent_type: FORK.to_owned(),
            display_name: name.unwrap_or(FORK).to_owned(),
            fork: true,
            ..Profile::default()
        },
        execution,
        model: kin.state.model,
        reasoning_effort: kin.state.reasoning_effort,
        isolation: order.isolation,
        cwd,
        preface: Some(format!("{FORK_DIRECTIVE}{place}")),
        prefix: kin.subagent.map(|own| own.task),
        taken: kin.state.tasks,
        note: None,
    })
}

/// Said to a fork before its prompt.
const FORK_DIRECTIVE: &str = "You are a fork of this conversation: you know everything above, and you work beside it on one part. \
Others work on the other parts. Do only what follows, by yourself, without asking back and without starting agents; \
change nothing that it does not ask you to change. Your last message is handed to the conversation you come from: make it a short report \
of what you did and found.";

const FORK_IN_WORKTREE: &str = " You work in a copy of the repository, in another folder than before: read files again before you \
use what you remember of them, and translate paths from above to your folder.";

/// Makes a copy of the repository for an agent.
pub(super) async fn make_worktree(
    services: &Services,
    kin: &ParentSnapshot,
    session: &SessionId,
    cwd: &Path,
) -> Result<WorktreeWork, String> {
    let made = services
        .worktrees
        .create(session, cwd, &environment(kin))
        .await;
    let made = made.map_err(|error| format!("The agent has no worktree to work in: {error}"))?;
    Ok(WorktreeWork {
        id: made.id,
        path: made.path.to_string_lossy().into_owned(),
        cwd: made.cwd.to_string_lossy().into_owned(),
        repository: made.repository.to_string_lossy().into_owned(),
        commit: made.commit,
    })
}

/// Makes the copy of an agent that works again, if it was removed for want of changes.
pub(super) async fn restore_worktree(
    services: &Services,
    kin: &ParentSnapshot,
    session: &SessionId,
    work: &WorktreeWork,
) -> Result<(), String> {
    if Path::new(&work.path).is_dir() {
        return Ok(());
    }
    let made = make_worktree(services, kin, session, Path::new(&work.repository)).await?;
    if made.path == work.path {
        Ok(())
    } else {
        Err(format!(
            "The worktree {} that it worked in is gone.",
            work.path
        ))
    }
}

/// The agent has come to rest.
pub(super) async fn settle_worktree(
    services: &Services,
    work: &WorktreeWork,
    env: &BTreeMap<String, String>,
) -> WorktreeEnd {
    let worktree = Worktree {
        id: work.id.clone(),
        path: work.path.clone().into(),
        cwd: work.cwd.clone().into(),
        repository: work.repository.clone().into(),
        commit: work.commit.clone(),
        filters_off: Vec::new(),
    };
    match services.worktrees.settle(&worktree, env).await {
        Ok(Settled::Removed) => WorktreeEnd::Removed,
        Ok(Settled::Kept {
            path,
            commit,
            changes,
        }) => WorktreeEnd::Kept(format!(
            "The agent worked in the worktree {}, which starts from commit {commit} and is kept because of its changes: {changes}",
            path.display()
        )),
        Err(error) => WorktreeEnd::Failed(format!(
            "The worktree {} is still there, because it could not be looked at: {error}",
            work.path
        )),
    }
}
