//! `loop daemon`: starts, stops and shows the daemon of this home.

mod log;
mod service;

use std::time::Duration;

use anyhow::bail;
use loopd_sdk::{Activity, Client, ConnectOptions, DaemonStatus, Error, StartPolicy};

use crate::amount::{counted, span};
use crate::app::App;
use crate::args::DaemonVerb;
use crate::outcome::Outcome;

pub(crate) async fn run(app: &App, what: DaemonVerb) -> anyhow::Result<Outcome> {
    match what {
        DaemonVerb::Start => {
            let client = app.connect().await?;
            show(app, &client.daemon_status().await?)?;
            client.close().await;
            Ok(Outcome::Done)
        }
        DaemonVerb::Status => {
            let Some(client) = connect_to_running(app).await? else {
                let hint = "not running; it starts when it is needed, or with loop daemon start";
                app.terminal.notice(hint);
                return Ok(Outcome::Failed);
            };
            show(app, &client.daemon_status().await?)?;
            client.close().await;
            Ok(Outcome::Done)
        }
        DaemonVerb::Logs { lines, path } => log::run(app, lines, path),
        DaemonVerb::Install { print } => service::install(app, print).await,
        DaemonVerb::Uninstall => service::uninstall(app),
        DaemonVerb::Stop { force } => {
            let Some(client) = connect_to_running(app).await? else {
                app.terminal.notice("not running");
                return Ok(Outcome::Done);
            };
            let status = client.daemon_status().await?;
            if status.work > 0 && !force {
                client.close().await;
                bail!(
                    "the daemon is at work ({}); wait until it is done, or cut it short with --force",
                    counted(status.work, "model call or tool", "model calls and tools")
                );
            }
            client.stop_daemon().await?;
            app.terminal
                .notice(&format!("stopped (process {})", status.pid));
            Ok(Outcome::Done)
        }
    }
}

/// Connects to a running daemon; `None` if none is running.
pub(super) async fn connect_to_running(app: &App) -> anyhow::Result<Option<Client>> {
    let options = ConnectOptions {
        start: StartPolicy::Never,
        ..app.connect_options()
    };
    match Client::connect(options).await {
        Ok(client) => Ok(Some(client)),
        Err(Error::NotRunning { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn show(app: &App, status: &DaemonStatus) -> anyhow::Result<()> {
    if app.options.json {
        let line = serde_json::to_string(status)?;
        app.terminal.print(&(line + "\n"))?;
        return Ok(());
    }
    let with = |activity| {
        let sessions = status.sessions.iter();
        sessions.filter(|live| live.activity == activity).count()
    };
    // Our own connection does not count.
    let others = status.connections.saturating_sub(1);
    let text = format!(
        "loopd {} runs as process {}, up for {}\n\
         build     {}\n\
         home      {}\n\
         clients   {others}\n\
         sessions  {} in memory: {} working, {} waiting for an answer, {} idle\n\
         work      {}\n",
        status.version,
        status.pid,
        span(Duration::from_millis(status.uptime_ms)),
        status.build,
        status.home,
        status.sessions.len(),
        with(Activity::Working),
        with(Activity::Waiting),
        with(Activity::Idle),
        counted(status.work, "model call or tool", "model calls and tools"),
    );
    app.terminal.print(&text)?;
    Ok(())
}
