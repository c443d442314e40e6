//! Runs a slash command in a sub-agent. A person waits for its answer, and the conversation gets it, too.

use loopd_proto::event::task::Execution;
use loopd_proto::id::MessageId;
use loopd_proto::params::command::{BegunWork, Invoked};
use loopd_proto::run_scope::{CommandRun, RunLimits};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::subagent::{RunEnd, RunFailure, SubagentOrder};

/// A command that runs in a sub-agent.
pub(super) struct SubagentCommand<'a> {
    pub(super) session: &'a SessionHandle,
    /// The name of the command, without its slash.
    pub(super) name: &'a str,
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
        let agents = self.session.view(|view| view.agents.clone()).await?;
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
        // The conversation gets the answer in one with the end of the task, also if nobody waits here.
        let ending = started.run.end().await;
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
