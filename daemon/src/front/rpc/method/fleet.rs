//! Fleets: workers that carry out the todos of a session.

use loopd_proto::params::fleet::{FleetStartParams, FleetStartResult, FleetStatus, FleetStopped};
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command, FleetOrder};
use loopd_kernel::fleet::MOST_WORKERS;

pub(super) async fn start(
    context: Context,
    params: FleetStartParams,
) -> Result<FleetStartResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let workers = match params.max_workers {
        Some(workers) if (1..=MOST_WORKERS).contains(&workers) => workers,
        Some(workers) => {
            return Err(RpcError::InvalidParams(format!(
                "maxWorkers: {workers} is not between 1 and {MOST_WORKERS}"
            )));
        }
        None => {
            let most = context.app.services.config.agents.max_concurrent;
            most.clamp(1, MOST_WORKERS)
        }
    };
    let order = FleetOrder {
        prompt: params.prompt,
        workers,
        agent_type: params.agent_type,
        sender: Some(context.caller()),
    };
    session.command(Command::StartFleet(order)).await?;
    Ok(FleetStartResult { started: true })
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
        }
    });
    Ok(status.await?)
}
