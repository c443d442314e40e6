//! Lets a session go on without the client whose hooks guard it.

use loopd_proto::params::hook_list::GuardLifted;
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};

pub(super) async fn lift(context: Context, params: Of) -> Result<GuardLifted, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session.command(Command::LiftGuards).await?;
    Ok(GuardLifted {
        lifted: done.answer == Answer::Accepted(true),
    })
}
