//! The permission mode: whether users are asked before tools run.

use loopd_proto::params::permission::{ApprovalMode, ModeNow, ModeSet, SetModeParams};
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command, PermissionChange};

pub(super) async fn mode(context: Context, params: Of) -> Result<ModeNow, RpcError> {
    let session = context.session(&params.session_id)?;
    let everything = session.view(|view| {
        let permissions = &view.state.permissions;
        // The launch may allow everything (`--yolo`).
        (permissions.approve_all || view.launch.is_some_and(|launch| launch.yolo))
            && !permissions.forbids_approve_all()
    });
    Ok(ModeNow {
        mode: if everything.await? {
            ApprovalMode::AllowAll
        } else {
            ApprovalMode::Manual
        },
    })
}

pub(super) async fn set_mode(context: Context, params: SetModeParams) -> Result<ModeSet, RpcError> {
    let session = context.session(&params.session_id)?;
    let everything = match params.mode {
        ApprovalMode::Manual => false,
        ApprovalMode::AllowAll => true,
        ApprovalMode::Assisted => {
            return Err(RpcError::InvalidParams(
                "mode: no model judges permission requests here; use manual or allow-all"
                    .to_owned(),
            ));
        }
    };
    let change = Command::ChangePermissions(PermissionChange::ApproveAll(everything));
    let done = session.command(change).await?;
    // A launch that allows everything still does, so the mode may differ from the one asked for.
    let mode = match done.answer {
        Answer::Permissions { mode, .. } => mode,
        Answer::Done
        | Answer::Message(_)
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::GuardsLifted(_)
        | Answer::Cleared(_)
        | Answer::Withdrawn { .. } => params.mode,
    };
    Ok(ModeSet {
        success: mode == params.mode,
        mode,
    })
}
