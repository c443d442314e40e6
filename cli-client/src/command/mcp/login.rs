//! `loop mcp login` and `loop mcp logout`.

use std::process::{Command, Stdio};
use std::time::Duration;

use loopd_sdk::proto::method;
use loopd_sdk::proto::params::mcp::{LoginParams, LoginStatus, LoginWaitParams, ServerParams};
use loopd_sdk::proto::secret_variables::is_secret_name;
use loopd_sdk::{Client, Session};
use tokio::time::Instant;

use super::in_passing;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How long a person may take. The daemon listens for the same time.
const LOGGED_IN_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Whether a browser is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Browser {
    Open,
    Closed,
}

pub(super) async fn log_in(
    app: &App,
    client: &Client,
    name: String,
    again: bool,
    browser: Browser,
) -> anyhow::Result<Outcome> {
    let server = name.clone();
    // The daemon keeps the login; the session is needed only to find the server.
    let begun = in_passing(app, client, async |session: &Session| {
        let params = LoginParams {
            session_id: session.id().clone(),
            server_name: server,
            force_reauth: again,
            client_name: None,
            callback_success_message: None,
        };
        Ok(session.call::<method::McpOauthLogin>(&params).await?)
    })
    .await?;
    let name = sanitize(&name);
    let Some(url) = begun.authorization_url else {
        app.terminal.notice(&format!(
            "you are logged in at {name}; to log in anew: loop mcp login {name} --again"
        ));
        return Ok(Outcome::Done);
    };
    app.terminal
        .notice(&format!("visit this address to log in at {name}:"));
    app.terminal.print(&(sanitize(&url) + "\n"))?;
    if browser == Browser::Open {
        open(app, &url);
    }
    let params = LoginWaitParams {
        authorization_url: url,
    };
    let end = Instant::now() + LOGGED_IN_WITHIN;
    while Instant::now() < end {
        let ended = tokio::select! {
            ended = client.call::<method::LoopdMcpLoginWait>(&params) => ended?,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                app.terminal.notice(
                    "not waiting any more; the login can still be finished in the browser",
                );
                return Ok(Outcome::Failed);
            }
        };
        let error = sanitize(&ended.error.unwrap_or_default());
        match ended.status {
            LoginStatus::Waiting => {}
            LoginStatus::LoggedIn => {
                app.terminal.notice(&format!("you are logged in at {name}"));
                if !error.is_empty() {
                    app.terminal.notice(&format!("but {error}"));
                }
                return Ok(Outcome::Done);
            }
            LoginStatus::Failed => anyhow::bail!("the login at {name} failed: {error}"),
            LoginStatus::Unknown => {
                anyhow::bail!(
                    "the login at {name} was replaced by another one, or its daemon has ended"
                )
            }
        }
    }
    anyhow::bail!("nobody logged in at {name} in time")
}

/// Opens a browser, where there is one. The address is one argument and goes through no shell. The
/// browser sees no keys.
fn open(app: &App, url: &str) {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return;
    }
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    // Without one the person has the printed address.
    let env = app.env.iter().filter(|(name, _)| !is_secret_name(name));
    let started = Command::new(program)
        .arg(url)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(started);
}

pub(super) async fn log_out(app: &App, client: &Client, name: String) -> anyhow::Result<Outcome> {
    let server = name.clone();
    let done = in_passing(app, client, async |session: &Session| {
        let params = ServerParams {
            session_id: session.id().clone(),
            server_name: server,
        };
        Ok(session.call::<method::LoopdMcpLogout>(&params).await?)
    })
    .await?;
    let name = sanitize(&name);
    app.terminal.notice(&if done.removed {
        format!("the login at {name} is forgotten")
    } else {
        format!("there was no login at {name}")
    });
    Ok(Outcome::Done)
}
