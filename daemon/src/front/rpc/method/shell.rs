//! Shell commands that clients run: `session.shell.*`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::tool::{ToolPartial, ToolResult};
use loopd_proto::id::ToolCallId;
use loopd_proto::params::shell::{
    CancelParams, ExecParams, Executing, KillParams, KillSignal, Killed, ShellExit, ShellOutput,
    UserRequested, UserRequestedParams,
};
use loopd_proto::params::task::Cancelled;
use loopd_proto::permission::ManagedPermissions;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::client::{Class, Notice, NoticeContent};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::publish::say;
use crate::redaction::{Pieces, Redaction};
use crate::session::SessionHandle;
use crate::tool::{bash, shell_output};
use loopd_exec::process::Signal;
use loopd_exec::shells::{ShellError, SignalOutcome};
use loopd_exec::terminal::{CommandEnd, CommandRun, CommandState};
use loopd_kernel::command::{CallOutcome, CallStatusReport, Command};
use loopd_kernel::policy::{Verdict, managed};
use loopd_kernel::texts;

pub(super) async fn exec(context: Context, params: ExecParams) -> Result<Executing, RpcError> {
    let session = context.session(&params.session_id)?;
    check(&params.command)?;
    let (shells, mut command_context, audience, managed, redaction) = session
        .view(|view| {
            let command_context = (view.command_context)();
            let managed = view.state.permissions.managed.clone();
            (
                view.shells.clone(),
                command_context,
                view.audience.clone(),
                managed,
                (view.redaction)(),
            )
        })
        .await?;
    check_managed(managed, &command_context.cwd, &params.command)?;
    if let Some(cwd) = params.cwd {
        command_context.cwd = command_context.cwd.join(PathBuf::from(cwd));
    }
    let (id, direct, output) = shells
        .exec(&params.command, &command_context)
        .await
        .map_err(|error| RpcError::Failed(error.to_string()))?;
    let limit = params.timeout.map(Duration::from_millis);
    let process_id = id.clone();
    context.after_reply(move || {
        let streaming = shells.clone();
        shells.spawn_for_session(async move {
            let pieces = Mutex::new(Pieces::new(redaction));
            let tell = |data: String| {
                if data.is_empty() {
                    return;
                }
                let piece = ShellOutput {
                    process_id: id.clone(),
                    stream: "stdout".to_owned(),
                    data,
                };
                let notice = Notice::new(NoticeContent::ShellOutput(&piece));
                audience.tell(Class::Event, &notice);
            };
            let masked = |data: String| tell(pieces.lock().next(&data));
            let end = streaming.stream(&id, &direct, output, limit, masked).await;
            tell(pieces.into_inner().rest());
            let exit = ShellExit {
                process_id: id.clone(),
                exit_code: end.exit_code,
            };
            audience.tell(Class::Event, &Notice::new(NoticeContent::ShellExit(&exit)));
        });
    });
    Ok(Executing { process_id })
}

pub(super) async fn kill(context: Context, params: KillParams) -> Result<Killed, RpcError> {
    let session = context.session(&params.session_id)?;
    let shells = session.view(|view| view.shells.clone()).await?;
    let signal = match params.signal.unwrap_or(KillSignal::Terminate) {
        KillSignal::Terminate => Signal::Terminate,
        KillSignal::Kill => Signal::Kill,
        KillSignal::Interrupt => Signal::Interrupt,
    };
    let outcome = shells
        .signal_client_exec(params.process_id.as_str(), signal)
        .await;
    let reason = match (outcome, signal) {
        (SignalOutcome::Gone | SignalOutcome::NotRunning, _) => None,
        (SignalOutcome::Alive, Signal::Kill | Signal::Terminate) => {
            Some("the command was killed, but the system has not removed all its processes yet")
        }
        (SignalOutcome::Alive, Signal::Hangup | Signal::Interrupt | Signal::Quit) => {
            Some("the signal was sent, but the command goes on; send SIGTERM or SIGKILL to end it")
        }
    };
    Ok(Killed {
        killed: outcome == SignalOutcome::Gone,
        reason: reason.map(str::to_owned),
    })
}

pub(super) async fn execute_user_requested(
    context: Context,
    params: UserRequestedParams,
) -> Result<UserRequested, RpcError> {
    let session = context.session(&params.session_id)?;
    check(&params.command)?;
    let (shells, command_context, managed, redaction) = session
        .view(|view| {
            let managed = view.state.permissions.managed.clone();
            let redaction = (view.redaction)();
            (
                view.shells.clone(),
                (view.command_context)(),
                managed,
                redaction,
            )
        })
        .await?;
    check_managed(managed, &command_context.cwd, &params.command)?;
    let failed = |error: ShellError| RpcError::Failed(error.to_string());
    let key = params.request_id.to_string();
    let reserved = shells.reserve_for_user(&key).map_err(failed)?;
    let reserved = reserved.ok_or_else(|| {
        RpcError::InvalidParams(format!(
            "requestId: a command with the id {key} runs already"
        ))
    })?;
    let call = ToolCallId::from(context.app.services.clock.id());
    session
        .command(Command::UserCommandStarted {
            call: call.clone(),
            tool: shell_output::TOOL.to_owned(),
            arguments: serde_json::json!({ "command": params.command }),
        })
        .await?;
    let started = shells.run_for_user(&reserved, &params.command, &command_context);
    let run = match started.await {
        Ok(run) => run,
        Err(error) => {
            let outcome = CallOutcome::failure("failure", error.to_string());
            session
                .command(Command::UserCommandEnded { call, outcome })
                .await?;
            return Err(failed(error));
        }
    };
    let (finished, finishing) = oneshot::channel();
    shells.spawn_for_session(async move {
        let result = follow(&context, &session, &call, &run, redaction).await;
        drop(reserved);
        // The caller may be gone; the session has stored how the command ended.
        finished.send(result).ok();
    });
    finishing
        .await
        .map_err(|_| RpcError::Failed("the session has ended".to_owned()))
}

/// Refuses a command that managed settings deny. Users may run every other command.
fn check_managed(
    rules: Option<Box<ManagedPermissions>>,
    cwd: &Path,
    command: &str,
) -> Result<(), RpcError> {
    let Some(rules) = rules else {
        return Ok(());
    };
    let request = bash::permission(command, "Run a command of the user", None);
    match managed::against(&rules.deny, &cwd.to_string_lossy(), &request) {
        Verdict::Allow => Ok(()),
        Verdict::Deny(rules) => Err(RpcError::Failed(texts::denied_by_rules(&rules))),
        Verdict::Ask => Err(RpcError::Failed(
            "managed settings deny some commands, and this one may hide one of them".to_owned(),
        )),
    }
}

/// Publishes the output of a command while it runs, and stores how it ended.
async fn follow(
    context: &Context,
    session: &SessionHandle,
    call: &ToolCallId,
    run: &CommandRun,
    redaction: Redaction,
) -> UserRequested {
    let mut changes = run.changes();
    let mut pieces = Pieces::new(redaction.clone());
    let end = loop {
        let state = changes.borrow_and_update().state;
        if run.has_unread() {
            let partial_output = pieces.next(&shell_output::piece(run.unread()));
            show(context, session, call, partial_output).await;
        }
        if let CommandState::Ended(end) = state {
            break end;
        }
        if changes.changed().await.is_err() {
            break CommandEnd::Closed;
        }
    };
    show(context, session, call, pieces.rest()).await;
    let mut output = shell_output::whole(run.output());
    redaction.clean_in_place(&mut output);
    let (exit_code, error) = match end {
        CommandEnd::Exited(code) => (Some(code), None),
        CommandEnd::Killed(signal) => (
            Some(128 + signal),
            Some(format!("The command was killed by signal {signal}.")),
        ),
        CommandEnd::Interrupted => (None, Some("The command was cancelled.".to_owned())),
        CommandEnd::Closed => (None, Some("The command ended with its session.".to_owned())),
    };
    let success = exit_code == Some(0);
    let status = match &error {
        None => CallStatusReport::Success,
        Some(_) => CallStatusReport::Failure {
            code: "failure".to_owned(),
        },
    };
    let outcome = CallOutcome {
        status,
        result: ToolResult {
            content: match (&error, exit_code) {
                (Some(error), _) => error.clone(),
                (None, code) => shell_output::with_exit(&output, code.unwrap_or(-1)),
            },
            ..ToolResult::default()
        },
        telemetry: None,
        delivered: Vec::new(),
        skill: None,
        stops: None,
    };
    let stored = session.command(Command::UserCommandEnded {
        call: call.clone(),
        outcome,
    });
    if let Err(error) = stored.await {
        tracing::debug!(session = %session.id(), %error, "the session ended before a user's command");
    }
    UserRequested {
        tool_call_id: call.clone(),
        success,
        output,
        exit_code,
        error,
    }
}

async fn show(
    context: &Context,
    session: &SessionHandle,
    call: &ToolCallId,
    partial_output: String,
) {
    if partial_output.is_empty() {
        return;
    }
    let seen = session.view(|view| (view.audience.clone(), view.state.tip.clone()));
    let Ok((audience, tip)) = seen.await else {
        return;
    };
    let event = Ephemeral::ToolPartial(ToolPartial {
        tool_call_id: call.clone(),
        partial_output,
    });
    say(
        &context.app.services.clock,
        &audience,
        session.id(),
        tip,
        &event,
    );
}

pub(super) async fn cancel_user_requested(
    context: Context,
    params: CancelParams,
) -> Result<Cancelled, RpcError> {
    let session = context.session(&params.session_id)?;
    let shells = session.view(|view| view.shells.clone()).await?;
    let cancelled = shells.cancel_for_user(params.request_id.as_str()).await;
    Ok(Cancelled { cancelled })
}

fn check(command: &str) -> Result<(), RpcError> {
    if command.trim().is_empty() {
        return Err(RpcError::InvalidParams(
            "command: must not be empty".to_owned(),
        ));
    }
    Ok(())
}
