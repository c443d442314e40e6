//! Our own methods about the daemon as a process: its status, and stopping it.

use std::time::Duration;

use loopd_proto::build_id;
use loopd_proto::params::daemon::{Activity, DaemonStatus, DatabaseCheck, LiveSession};
use loopd_proto::params::server::NoParams;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::session::view::View;
use loopd_kernel::command::{Command, LogLevel};
use loopd_kernel::state::State;

/// How long a look for damage may take: a person waits for it.
const CHECK_TIME: Duration = Duration::from_secs(30);

pub(super) async fn status(context: Context, _: NoParams) -> Result<DaemonStatus, RpcError> {
    let app = &context.app;
    let reasons = app.services.keep_alive.reasons();
    let mut sessions = Vec::new();
    for id in app.sessions.ids() {
        let Some(session) = app.sessions.get(&id) else {
            continue;
        };
        // A session that ends during this request is left out: it is no longer live.
        if let Ok((activity, queued)) = session
            .view(|view| (activity(view), queued(view.state)))
            .await
        {
            sessions.push(LiveSession {
                session_id: id,
                activity,
                queued,
            });
        }
    }
    sessions.sort_by(|one, other| one.session_id.cmp(&other.session_id));
    Ok(DaemonStatus {
        version: app.services.version.to_owned(),
        build: build_id::current().to_owned(),
        pid: std::process::id(),
        home: app.services.home.to_string_lossy().into_owned(),
        started: app.started,
        uptime_ms: app.services.clock.now().millis_since(app.started),
        connections: app.clients(),
        work: reasons.work,
        sessions,
        config_problem: config_problem(&context).await,
    })
}

/// Returns what is wrong with the configuration file.
pub(super) async fn config_problem(context: &Context) -> Option<String> {
    let services = context.app.services.clone();
    let checked =
        tokio::task::spawn_blocking(move || services.config.problem_now(&services.home)).await;
    checked.ok()?
}

/// Tells the clients of a session that the settings in force are not those of the file, so that nobody
/// takes older settings for new ones.
pub(super) async fn warn_of_config(session: &SessionHandle, problem: Option<String>) {
    let Some(message) = problem else {
        return;
    };
    let warning = Command::Log {
        level: LogLevel::Warning,
        kind: "config".to_owned(),
        message,
        url: None,
        tip: None,
        stored: true,
    };
    if let Err(error) = session.command(warning).await {
        tracing::warn!(%error, "a session could not be told about config.toml");
    }
}

/// Looks for damage in the database.
pub(super) async fn check_database(
    context: Context,
    _: NoParams,
) -> Result<DatabaseCheck, RpcError> {
    let found = context.app.services.store.check(CHECK_TIME).await?;
    Ok(DatabaseCheck {
        damage: found.damage,
        complete: found.complete,
    })
}

fn activity(view: &View<'_>) -> Activity {
    let state = view.state;
    if view.unstored {
        Activity::Working
    } else if !state.is_busy() {
        Activity::Idle
    } else if state.is_working() {
        Activity::Working
    } else {
        Activity::Waiting
    }
}

fn queued(state: &State) -> usize {
    state.queue.len() + state.steering.len()
}

/// Stops the daemon as a signal does, after the reply was queued. Stored sessions are kept.
pub(super) async fn stop(context: Context, _: NoParams) -> Result<(), RpcError> {
    let ending = context.app.ending.clone();
    context.after_reply(move || ending.cancel());
    Ok(())
}
