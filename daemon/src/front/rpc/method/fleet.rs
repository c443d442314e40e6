//! Fleets: workers that carry out the todos of a session.

use loopd_proto::id::MessageId;
use loopd_proto::params::fleet::{FleetStartParams, FleetStartResult, FleetStatus, FleetStopped};
use loopd_proto::params::session::Of;

use super::tasks;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{Answer, Command, FleetOrder};
use loopd_kernel::fleet::MOST_WORKERS;

/// `session.fleet.start`: replies at once, or when all work has ended.
pub(super) async fn start(
    context: Context,
    params: FleetStartParams,
) -> Result<FleetStartResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let waits = params.wait;
    begin(&context, &session, params).await?;
    let mut result = None;
    if waits {
        tasks::until_idle(&session).await?;
        result = session.state(|state| state.fleet_result.clone()).await?;
    }
    Ok(FleetStartResult {
        started: true,
        result,
    })
}

/// Starts a fleet. Returns the message in whose run the work is divided, if there is one.
pub(super) async fn begin(
    context: &Context,
    session: &SessionHandle,
    params: FleetStartParams,
) -> Result<Option<MessageId>, RpcError> {
    let prompt = params.prompt.filter(|prompt| !prompt.trim().is_empty());
    let wrong = match params.max_workers {
        Some(workers) if !(1..=MOST_WORKERS).contains(&workers) => Some(format!(
            "maxWorkers: {workers} is not between 1 and {MOST_WORKERS}"
        )),
        Some(_) | None if prompt.is_none() && !params.attachments.is_empty() => {
            Some("attachments: they go with a prompt, and there is none".to_owned())
        }
        Some(_) | None if params.billable == Some(true) => {
            Some("billable: loopd charges for no message; leave it out or say false".to_owned())
        }
        Some(_) | None => None,
    };
    if let Some(wrong) = wrong {
        return Err(RpcError::InvalidParams(wrong));
    }
    let order = FleetOrder {
        prompt,
        attachments: params.attachments,
        workers: params.max_workers,
        agent_type: params.agent_type,
        sender: Some(context.caller()),
        limits: params.limits,
    };
    let done = session.command(Command::StartFleet(order)).await?;
    Ok(match done.answer {
        Answer::Message(planned_by) => Some(planned_by),
        Answer::Done
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::Withdrawn { .. }
        | Answer::Cleared(_)
        | Answer::Permissions { .. }
        | Answer::GuardsLifted(_) => None,
    })
}

pub(super) async fn stop(context: Context, params: Of) -> Result<FleetStopped, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session.command(Command::StopFleet).await?;
    Ok(FleetStopped {
        stopped: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn status(context: Context, params: Of) -> Result<FleetStatus, RpcError> {
    let session = context.session(&params.session_id)?;
    let status = session.state(|state| {
        let fleet = state.fleet.as_ref();
        FleetStatus {
            active: fleet.is_some(),
            paused: fleet.is_some_and(|fleet| fleet.paused),
            progress: fleet.map(|fleet| fleet.progress(&state.todos.list)),
            last: state.fleet_result.clone(),
        }
    });
    Ok(status.await?)
}
