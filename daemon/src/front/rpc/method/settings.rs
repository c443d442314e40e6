//! Name, mode and log lines of a session.

use loopd_proto::event::fact::NamedBy;
use loopd_proto::params::session::Of;
use loopd_proto::params::settings::{
    Applied, LogLevel as Level, LogParams, Logged, ModeParams, ModeResult, NameParams, NameResult,
    SummaryParams,
};
use loopd_proto::session::Mode;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use loopd_kernel::command::{Answer, Command, LogLevel};
use loopd_kernel::policy::planning::Planning;

pub(super) async fn name(context: Context, params: Of) -> Result<NameResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = session
        .state(|state| state.name.as_ref().map(|name| name.text.clone()))
        .await?;
    Ok(NameResult { name })
}

pub(super) async fn set_name(context: Context, params: NameParams) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let name = checked_name(&params.name)?;
    let by = NamedBy::User;
    session.command(Command::SetName { name, by }).await?;
    Ok(())
}

/// Checks the name that a client gives a session.
pub(super) fn checked_name(name: &str) -> Result<String, RpcError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(RpcError::InvalidParams(
            "name: must not be empty".to_owned(),
        ));
    }
    limit::name("name", name)?;
    Ok(name.to_owned())
}

pub(super) async fn set_name_auto(
    context: Context,
    params: SummaryParams,
) -> Result<Applied, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = params.summary.trim().to_owned();
    if name.is_empty() {
        return Ok(Applied { applied: false });
    }
    limit::name("summary", &name)?;
    let by = NamedBy::Auto;
    let done = session.command(Command::SetName { name, by }).await?;
    Ok(Applied {
        applied: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn mode(context: Context, params: Of) -> Result<Mode, RpcError> {
    let session = context.session(&params.session_id)?;
    let mode = session.view(|view| match view.planning {
        // A session above is in plan mode, or its agent only plans.
        Planning::Parent => Mode::Plan,
        Planning::No | Planning::Mode | Planning::Agent => view.state.mode,
    });
    Ok(mode.await?)
}

pub(super) async fn set_mode(context: Context, params: ModeParams) -> Result<ModeResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::SetMode {
            mode: params.mode,
            expected: params.expected_mode,
        })
        .await?;
    let changed = done.answer == Answer::Accepted(true);
    Ok(ModeResult {
        status: if changed { "applied" } else { "unchanged" }.to_owned(),
        model_changed: false,
    })
}

pub(super) async fn log(context: Context, params: LogParams) -> Result<Logged, RpcError> {
    let session = context.session(&params.session_id)?;
    limit::log_line(&params.message)?;
    let done = session
        .command(Command::Log {
            level: match params.level {
                Level::Info => LogLevel::Info,
                Level::Warning => LogLevel::Warning,
                Level::Error => LogLevel::Error,
            },
            kind: params.kind.unwrap_or_else(|| "notification".to_owned()),
            message: params.message,
            url: params.url,
            tip: params.tip,
            stored: !params.ephemeral,
        })
        .await?;
    match done.event {
        Some(event_id) => Ok(Logged { event_id }),
        None => Err(RpcError::Failed("the line was not logged".to_owned())),
    }
}
