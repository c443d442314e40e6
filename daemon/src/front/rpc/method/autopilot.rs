//! The autopilot of a session: its state, and whether it is paused.

use loopd_proto::params::autopilot::{AutopilotStatus, PauseParams, Paused};
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::autopilot::{Judgement, Situation};
use loopd_kernel::command::{Answer, Command};
use loopd_kernel::state::State;

pub(super) async fn status(context: Context, params: Of) -> Result<AutopilotStatus, RpcError> {
    status_of(&context.session(&params.session_id)?).await
}

pub(super) async fn pause(context: Context, params: PauseParams) -> Result<Paused, RpcError> {
    let session = context.session(&params.session_id)?;
    let command = Command::PauseAutopilot(params.paused);
    let done = session.command(command).await?;
    Ok(Paused {
        changed: done.answer == Answer::Accepted(true),
        status: status_of(&session).await?,
    })
}

async fn status_of(session: &SessionHandle) -> Result<AutopilotStatus, RpcError> {
    Ok(session.state(describe).await?)
}

fn describe(state: &State) -> AutopilotStatus {
    let judged = Judgement::of(&Situation::of(state));
    let options = state.options.autopilot.unwrap_or_default();
    let progress = &state.autopilot;
    AutopilotStatus {
        mode: state.mode,
        active: judged.takes_completion && options.continues() && !progress.paused,
        paused: progress.paused,
        offers_task_complete: judged.offers_tool,
        continues: progress.continues,
        max_continues: options.most_continues(),
        continues_without_tool_call: progress.empty,
        request_id: progress.request.clone(),
        completion: progress.completion.clone(),
        last_stop: progress.stopped.clone(),
    }
}
