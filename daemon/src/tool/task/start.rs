//! `task`: starts a sub-agent for a piece of work.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::event::task::Execution;

use super::{TASK, words};
use crate::subagent::{CancelledBy, Isolation, RunEnding, RunWait, Started, SubagentOrder, first};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_kernel::policy::grant::Grant;

/// The tool `task`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Start;

/// Whether the call waits for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::tool) enum Mode {
    Sync,
    Background,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::tool) enum Apart {
    Worktree,
}

/// The arguments of `task`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct TaskArgs {
    /// What it is about, in three to five words for the user.
    description: String,
    /// The whole task. The agent sees nothing of this conversation: name files, goals, limits and
    /// what its answer has to contain.
    prompt: String,
    /// Which agent.
    #[serde(default, alias = "subagent_type")]
    agent_type: Option<String>,
    /// A short name by which you and the user will call it, such as parser-review.
    #[serde(default)]
    name: Option<String>,
    /// A model other than the one the agent would get.
    #[serde(default)]
    model: Option<String>,
    /// sync waits for the answer; background returns at once and you are told when it is there.
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    #[schemars(skip)]
    run_in_background: Option<bool>,
    /// worktree lets it work in a copy of the git repository; what it changes there is kept and
    /// reported, an unchanged copy is removed.
    #[serde(default)]
    isolation: Option<Apart>,
    /// The folder it works in, if not yours.
    #[serde(default)]
    cwd: Option<String>,
}

impl Tool for Start {
    type Args = TaskArgs;
    const NAME: &'static str = TASK;
    const OTHER_NAMES: &'static [&'static str] = &["subagent_type"];
    const DESCRIPTION: &'static str = "Hands a piece of work to an agent with a context of its own, and gives you its answer. \
        Use it for work that would fill your context (searching, long outputs), for independent parts that can go on at the same \
        time (several calls in one message, or mode background), and for a second opinion. Do small things yourself. \
        With background, go on with other work or end your answer: you are told when the agent has answered; do not poll for it.";
    const WAITS_FOR_AGENTS: bool = true;

    async fn need(&self, _args: &TaskArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: TaskArgs, context: &ToolContext) -> Outcome {
        let execution = match (args.mode, args.run_in_background) {
            (Some(Mode::Background), _) | (None, Some(true)) => Some(Execution::Background),
            (Some(Mode::Sync), _) | (None, Some(false)) => Some(Execution::Sync),
            (None, None) => None,
        };
        // What an agent is told is stored in a log and a file of its own, so it holds no secrets either.
        let clean = |text: String| context.redaction.clean(&text).into_owned();
        let order = SubagentOrder {
            agent_type: args.agent_type,
            name: args.name.map(clean),
            description: clean(args.description),
            prompt: clean(args.prompt),
            model: args.model,
            execution,
            isolation: args.isolation.map(|Apart::Worktree| Isolation::Worktree),
            cwd: args.cwd,
            call: Some(context.call.clone()),
            todo: None,
            tools: None,
            answers_person: false,
            command: None,
            skill: None,
        };
        let started = match context.agents.start(order).await {
            Ok(started) => started,
            Err(error) => return Outcome::failure(error.to_string()),
        };
        if started.work.execution == Execution::Background {
            return words::launched(&started);
        }
        result(&started, context).await
    }
}

/// Waits for a sub-agent that was started in the foreground; returns what its call says.
pub async fn result(started: &Started, context: &ToolContext) -> Outcome {
    match wait(started, context).await {
        RunWait::Ended(ending) => {
            let outcome = words::ended(started, &ending);
            match context.agents.find(started.id.as_str()).await {
                Ok(task) => outcome.marking_delivered(&task),
                // The session has ended, so nobody reads the outcome.
                Err(_) => outcome,
            }
        }
        RunWait::Promoted => words::promoted(started),
        RunWait::Cancelled => {
            context.agents.cancel(&started.id, CancelledBy::Abort).await;
            let ending: RunEnding = started.run.end().await;
            words::interrupted(started, &ending)
        }
    }
}

/// Waits for the sub-agent. The caller's slot is lent meanwhile.
async fn wait(started: &Started, context: &ToolContext) -> RunWait {
    if let Some(lease) = &context.lease {
        lease.lend();
    }
    let waited = first(&context.cancel, &started.run).await;
    if let Some(lease) = &context.lease {
        tokio::select! {
            () = lease.resume() => {}
            () = context.cancel.cancelled() => {}
        }
    }
    waited
}
