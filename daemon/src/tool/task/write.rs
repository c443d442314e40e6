//! `write_agent`: sends a message to a sub-agent.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::subagent::{Delivered, SubagentError};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_kernel::policy::grant::Grant;

/// The tool `write_agent`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Write;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct WriteArgs {
    /// The id or the name of the agent.
    agent_id: String,
    /// What it is to do or to know. It remembers what it did before.
    message: String,
}

impl Tool for Write {
    type Args = WriteArgs;
    const NAME: &'static str = "write_agent";
    const DESCRIPTION: &'static str = "Sends a message to an agent that was started before. One that is at work reads it at its next step; \
        one that rests, failed or was stopped goes on with it in the background, knowing everything it knew, and you are told when it \
        has answered.";
    const WAITS_FOR_AGENTS: bool = true;

    async fn need(&self, args: &WriteArgs, _context: &AssessContext) -> Need {
        if args.message.trim().is_empty() {
            return Need::Refused(Outcome::failure(
                "The message is empty; say what the agent is to do.",
            ));
        }
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: WriteArgs, context: &ToolContext) -> Outcome {
        let sent = async {
            let task = context.agents.find(&args.agent_id).await?;
            let Some(work) = task.agent() else {
                return Err(SubagentError::TakesNoMessages(task.id.clone()));
            };
            let agents = &context.agents;
            let message = context.redaction.clean(&args.message).into_owned();
            let delivered = agents.write_from_run(&task.id, work, message).await?;
            Ok((task.id.clone(), delivered))
        };
        match sent.await {
            Ok((id, Delivered::AtWork)) => Outcome::success(format!(
                "The agent {id} is at work and reads the message at its next step."
            )),
            Ok((id, Delivered::Resumed)) => Outcome::success(format!(
                "The agent {id} goes on in the background with your message. You'll be notified when it has answered."
            )),
            Err(error) => Outcome::failure(error.to_string()),
        }
    }
}
