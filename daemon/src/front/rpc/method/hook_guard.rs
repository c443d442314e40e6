//! Lets a session go on without clients whose hooks guard it.

use loopd_proto::params::hook_list::{GuardLiftParams, GuardLifted};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};
use loopd_kernel::guards::LiftScope;

pub(super) async fn lift(
    context: Context,
    params: GuardLiftParams,
) -> Result<GuardLifted, RpcError> {
    let session = context.session(&params.session_id)?;
    let scope = if params.attached {
        LiftScope::All
    } else {
        LiftScope::Gone
    };
    let done = session.command(Command::LiftGuards(scope)).await?;
    match done.answer {
        Answer::GuardsLifted(guards) => Ok(GuardLifted {
            lifted: !guards.lifted.is_empty(),
            apps: guards.lifted.apps(),
            attached: guards.stay.apps(),
        }),
        Answer::Done
        | Answer::Message(_)
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::Withdrawn { .. }
        | Answer::Cleared(_)
        | Answer::Permissions { .. } => {
            Err(RpcError::Failed("the guards were not lifted".to_owned()))
        }
    }
}
