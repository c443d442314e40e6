//! Runs a slash command in a sub-agent. A person waits for its answer, and the conversation gets it, too.

use loopd_proto::event::task::Execution;
use loopd_proto::id::MessageId;
use loopd_proto::params::command::{BegunWork, Invoked};
use loopd_proto::run_scope::{CommandRun, RunLimits};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::subagent::{RunEnd, RunEnding, RunFailure, SubagentOrder};
use loopd_kernel::command::Command;

/// A command that runs in a sub-agent.
pub(super) struct SubagentCommand<'a> {
    pub(super) session: &'a SessionHandle,
    /// The name of the command, without its slash.
    pub(super) name: &'a str,
    /// What the person typed.
    pub(super) shown: String,
}

/// Returns a new run of a command.
pub(super) fn begin(context: &Context, limits: Option<RunLimits>) -> CommandRun {
    let id = context.app.services.clock.id();
    CommandRun {
        id: MessageId::new(format!("command-{id}")),
        limits,
    }
}

impl SubagentCommand<'_> {
    fn failed(&self, why: impl std::fmt::Display) -> RpcError {
        RpcError::Failed(format!("/{} did not run: {why}", self.name))
    }

    /// Starts the sub-agent and waits for its answer, unless it works in the background.
    pub(super) async fn run(self, order: SubagentOrder) -> Result<Invoked, RpcError> {
        let name = self.name;
        let (agents, shells) = self
            .session
            .view(|view| (view.agents.clone(), view.shells.clone()))
            .await?;
        let started = agents.start(order).await;
        let started = started.map_err(|error| self.failed(error))?;
        let id = started.id.clone();
        if started.work.execution == Execution::Background {
            return Ok(Invoked::Completed {
                message: Some(format!(
                    "/{name} works in the background as `{id}`; the model is told of its answer"
                )),
                message_id: None,
                begun: Some(BegunWork::Agent),
            });
        }
        let (session, run, shown) = (
            self.session.clone(),
            started.run.clone(),
            self.shown.clone(),
        );
        let (reply, answered) = tokio::sync::oneshot::channel();
        // The conversation gets the answer also if the person does not wait for it.
        shells.spawn_for_session(async move {
            let ending = run.end().await;
            let noted = Command::HooksNoted {
                context: vec![told_to_model(&shown, &ending)],
                ended: Vec::new(),
            };
            if let Err(error) = session.command(noted).await {
                tracing::debug!(session = %session.id(), %error, "the answer of a command is not in the conversation");
            }
            // The send fails if nobody waits any more.
            reply.send(ending).ok();
        });
        let ending = answered
            .await
            .map_err(|_| self.failed("the session has ended"))?;
        match ending.end {
            RunEnd::Answered => Ok(Invoked::Text {
                text: ending.response.unwrap_or_default(),
                markdown: true,
                incomplete: ending.unfinished,
                begun: (!ending.left.is_empty()).then_some(BegunWork::Agent),
            }),
            RunEnd::Failed(RunFailure::Limit(why)) => Err(RpcError::LimitReached(format!(
                "/{name} was stopped: {why}"
            ))),
            RunEnd::Failed(why) => Err(RpcError::Failed(format!("/{name} failed: {why}"))),
            RunEnd::Cancelled => Err(RpcError::Failed(format!("/{name} was stopped"))),
        }
    }
}

/// Tells the model of the conversation what a command answered that ran beside it.
fn told_to_model(command: &str, ending: &RunEnding) -> String {
    let end = match &ending.end {
        RunEnd::Answered => "answered".to_owned(),
        RunEnd::Failed(why) => format!("failed ({why}); it said"),
        RunEnd::Cancelled => "was stopped; it said".to_owned(),
    };
    let said = ending.response.as_deref().unwrap_or("nothing");
    format!("The user ran {command}, which worked in a sub-agent and {end}:\n\n{said}")
}
