//! Plans an order for a sub-agent: its definition, its model, its folder, and whether it may start.
//!
//! The plan depends only on the order, on one snapshot of the parent and on the reachable models.

use std::path::{Path, PathBuf};

use loopd_proto::event::agent::{Profile, Stance};
use loopd_proto::event::task::Execution;
use loopd_proto::id::TaskId;
use loopd_proto::run_scope::ToolLimits;

use super::definitions::model::{Choice, Wish, choose};
use super::definitions::settings::preferred_effort;
use super::definitions::{self, AskedBy, is_same};
use super::error::PlanRefusal;
use super::memory;
use super::order::{GENERAL, Isolation, SubagentOrder, SubagentPlan};
use super::parent::{ParentSnapshot, ReachableModels};
use crate::discovery::agents::{self, AgentDefinition, AgentOrigin, ModelPolicy, PermissionMode};
use loopd_kernel::model::ModelInfo;
use loopd_kernel::texts;

/// The agent type of a fork.
const FORK: &str = "fork";

/// Resolves what the order names, or refuses the order with the reason.
pub(super) async fn plan(
    parent: &ParentSnapshot,
    models: &dyn ReachableModels,
    order: &SubagentOrder,
) -> Result<SubagentPlan, PlanRefusal> {
    let settings = &parent.settings;
    if order.prompt.trim().is_empty() {
        return Err(PlanRefusal::EmptyPrompt);
    }
    let depth = parent.child_depth();
    if depth > settings.max_depth {
        let limit = settings.max_depth;
        return Err(PlanRefusal::TooDeep { limit, depth });
    }
    let wanted = order.agent_type.as_deref().map(str::trim);
    let wanted = wanted.filter(|wanted| !wanted.is_empty());
    let may_fork = settings.fork && order.call.is_some();
    match wanted {
        None if may_fork => fork(parent, order),
        Some(wanted) if may_fork && is_same(wanted, FORK) => fork(parent, order),
        wanted => named(parent, models, order, wanted.unwrap_or(GENERAL)).await,
    }
}

/// Returns who gave an order.
pub(super) fn asked_by(order: &SubagentOrder) -> AskedBy {
    match &order.call {
        Some(_) => AskedBy::Model,
        None => AskedBy::Person,
    }
}

async fn named(
    parent: &ParentSnapshot,
    models: &dyn ReachableModels,
    order: &SubagentOrder,
    wanted: &str,
) -> Result<SubagentPlan, PlanRefusal> {
    let disabled = parent.subagents.as_ref();
    let disabled = disabled.and_then(|settings| settings.disabled_subagents.as_deref());
    let disabled = disabled.unwrap_or_default();
    let agent = parent.roster.may_start(wanted, asked_by(order), disabled)?;
    check_rules(parent, &agent.name)?;
    let cwd = folder(parent, order)?;
    let isolation = isolation(parent, order, agent)?;
    let choice = model(parent, models, order, agent).await?;
    // A sub-agent always waits for its own sub-agents, so they never run in the background.
    let waits = parent.identity.is_some();
    let background = order.execution == Some(Execution::Background) || agent.background;
    let execution = if background && !waits {
        Execution::Background
    } else {
        Execution::Sync
    };
    let memory = agent.memory.filter(|_| parent.has_memory);
    let memory = memory.and_then(|scope| {
        let root = definitions::project_root(Path::new(&parent.cwd));
        memory::folder(scope, &agent.name, &root, parent.user_home.as_deref())
    });
    let profile = Profile {
        agent_type: agent.name.clone(),
        display_name: own_name(order).unwrap_or(&agent.name).to_owned(),
        prompt: agent.prompt.clone(),
        tools: agent.tools.clone().map(|mut tools| {
            let missing = memory::TOOLS.into_iter().filter(|_| memory.is_some());
            let missing = missing.filter(|tool| !tools.iter().any(|it| it == tool));
            let missing: Vec<String> = missing.map(str::to_owned).collect();
            tools.extend(missing);
            tools
        }),
        disallowed_tools: agent.disallowed_tools.clone(),
        run_tools: order.tools.clone(),
        limits: limits(parent, order),
        max_turns: agent.max_turns,
        skills: own_skills(agent),
        task_skill: order.skill.clone(),
        stance: stance(agent.permission_mode),
        fork: false,
        worktree: None,
        copied: Vec::new(),
        memory: memory.map(|folder| folder.to_string_lossy().into_owned()),
    };
    let effort = preferred_effort(&agent.name, parent.subagents.as_ref())
        .or(agent.effort.as_ref())
        .or(parent.reasoning_effort.as_ref());
    Ok(SubagentPlan {
        profile,
        origin: Some(agent.origin),
        execution,
        model: Some(choice.model),
        reasoning_effort: effort.cloned(),
        isolation,
        cwd,
        preface: agent.initial_prompt.clone(),
        prefix: prefix(parent),
        taken: parent.taken.clone(),
        note: choice.note,
    })
}

/// Returns what the sub-agent is limited to. What a person starts does not belong to the run that happens
/// to go on meanwhile.
fn limits(parent: &ParentSnapshot, order: &SubagentOrder) -> ToolLimits {
    match asked_by(order) {
        AskedBy::Model => parent.limits_of_run.clone(),
        AskedBy::Person => parent.lasting_limits.clone(),
    }
}

/// Returns the skills of a sub-agent. A built-in one has all of the session; one that somebody defined
/// has those that its definition names, in its system message.
fn own_skills(agent: &AgentDefinition) -> Option<Vec<String>> {
    match agent.origin {
        AgentOrigin::BuiltIn => agent.skills.clone(),
        AgentOrigin::Client | AgentOrigin::Project | AgentOrigin::User | AgentOrigin::Plugin => {
            Some(agent.skills.clone().unwrap_or_default())
        }
    }
}

/// Returns the name that the order gives the sub-agent.
fn own_name(order: &SubagentOrder) -> Option<&str> {
    let name = order.name.as_deref().map(str::trim);
    name.filter(|name| !name.is_empty())
}

fn prefix(parent: &ParentSnapshot) -> Option<TaskId> {
    parent.identity.as_ref().map(|own| own.task.clone())
}

/// Refuses a sub-agent that a rule of the session denies, by its name or together with all others.
fn check_rules(parent: &ParentSnapshot, agent: &str) -> Result<(), PlanRefusal> {
    let mut denied = parent.denied.iter().filter(|rule| rule.kind == "agent");
    let hit = denied.any(|rule| {
        let argument = rule.argument.as_deref();
        argument.is_none_or(|argument| is_same(argument, agent))
    });
    if hit {
        return Err(PlanRefusal::Denied(agent.to_owned()));
    }
    Ok(())
}

fn stance(mode: Option<PermissionMode>) -> Stance {
    match mode {
        Some(PermissionMode::Plan) => Stance::Plan,
        Some(PermissionMode::DontAsk) => Stance::NeverAsk,
        // None of these modes may allow more than the parent's permissions, so all of them inherit.
        Some(
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::BypassPermissions
            | PermissionMode::Bubble,
        )
        | None => Stance::Inherit,
    }
}

fn folder(parent: &ParentSnapshot, order: &SubagentOrder) -> Result<PathBuf, PlanRefusal> {
    let own = PathBuf::from(&parent.cwd);
    let Some(wanted) = &order.cwd else {
        return Ok(own);
    };
    let folder = own.join(wanted);
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(PlanRefusal::NoFolder(folder))
    }
}

fn isolation(
    parent: &ParentSnapshot,
    order: &SubagentOrder,
    agent: &AgentDefinition,
) -> Result<Option<Isolation>, PlanRefusal> {
    let own = agent.isolation.map(|isolation| match isolation {
        agents::Isolation::Worktree => Isolation::Worktree,
    });
    let isolation = order.isolation.or(own);
    if isolation.is_some() && parent.planning.is_on() {
        return Err(PlanRefusal::WorktreeWhilePlanning(texts::plan_mode(
            parent.planning,
        )));
    }
    if isolation.is_some() && order.cwd.is_some() {
        return Err(PlanRefusal::FolderAndWorktree);
    }
    Ok(isolation)
}

async fn model(
    parent: &ParentSnapshot,
    models: &dyn ReachableModels,
    order: &SubagentOrder,
    agent: &AgentDefinition,
) -> Result<Choice, PlanRefusal> {
    let session_model = match &parent.model {
        Some(model) => model.clone(),
        None => default_model(models).await?,
    };
    let settings = &parent.settings;
    let preferred = settings.preferred(&agent.name, parent.subagents.as_ref());
    let plain = order.model.is_none() && preferred.is_none() && agent.model == ModelPolicy::Inherit;
    let available: Vec<ModelInfo> = if plain {
        Vec::new()
    } else {
        // Without a list of models every name is accepted.
        models.list().await
    };
    let wish = Wish {
        requested: order.model.as_deref(),
        policy: &agent.model,
        preferred,
        session_model: &session_model,
        available: &available,
        settings,
    };
    Ok(choose(&wish)?)
}

async fn default_model(models: &dyn ReachableModels) -> Result<String, PlanRefusal> {
    let model = models.default_model().await;
    model.map_err(|failure| PlanRefusal::NoDefaultModel(Box::new(failure)))
}

/// Plans a fork: a copy of the conversation so far, which continues with the prompt.
fn fork(parent: &ParentSnapshot, order: &SubagentOrder) -> Result<SubagentPlan, PlanRefusal> {
    let own = parent.identity.as_ref();
    if own.is_some_and(|own| own.profile.fork) {
        return Err(PlanRefusal::ForkOfFork);
    }
    check_rules(parent, FORK)?;
    if order.model.is_some() {
        return Err(PlanRefusal::ForkWithModel);
    }
    let cwd = folder(parent, order)?;
    if order.cwd.is_some() {
        return Err(PlanRefusal::ForkElsewhere);
    }
    let execution = match own {
        Some(_) => Execution::Sync,
        None => order.execution.unwrap_or(Execution::Background),
    };
    let elsewhere = match order.isolation {
        Some(Isolation::Worktree) => FORK_IN_WORKTREE,
        None => "",
    };
    Ok(SubagentPlan {
        profile: Profile {
            agent_type: FORK.to_owned(),
            display_name: own_name(order).unwrap_or(FORK).to_owned(),
            limits: limits(parent, order),
            fork: true,
            ..Profile::default()
        },
        origin: None,
        execution,
        model: parent.model.clone(),
        reasoning_effort: parent.reasoning_effort.clone(),
        isolation: order.isolation,
        cwd,
        preface: Some(format!("{FORK_DIRECTIVE}{elsewhere}")),
        prefix: prefix(parent),
        taken: parent.taken.clone(),
        note: None,
    })
}

/// The text before the prompt of a fork.
const FORK_DIRECTIVE: &str = "You are a fork of this conversation: you know everything above, and you work beside it on one part. \
Others work on the other parts. Do only what follows, by yourself, without asking back and without starting agents; \
change nothing that it does not ask you to change. Your last message is handed to the conversation you come from: make it a short report \
of what you did and found.";

const FORK_IN_WORKTREE: &str = " You work in a copy of the repository, in another folder than before: read files again before you \
use what you remember of them, and translate paths from above to your folder.";
