//! Runs the program: from arguments to an exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use loopd::app::{App, StartError};
use loopd::args::{Args, Verb};
use loopd::front::background;
use loopd::front::connection::Trust;
use loopd::front::transport::{local_socket, tcp};
use loopd::home::watch::HomeWatch;
use loopd::launch::{Launch, LaunchOptions, private_variables};
use loopd::mcp::conformance::{self, Scenario};
#[cfg(target_os = "linux")]
use loopd_exec::process;
use loopd_exec::sys;
use loopd_model::http_client::{HttpClient, HttpSettings};
use loopd_model::secret::{self, Secret};
use loopd_proto::daemon_connection::check_timeouts;
use loopd_proto::home_paths;
use loopd_relay::tcp::Tcp;
use loopd_relay::{RelayOptions, RelayTransport, announce, shutdown, stdio};
use loopd_store::lock::LockError;
use tokio::runtime::Builder;

/// How long a background daemon runs without clients and work.
const IDLE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = process::holder::run_if_asked() {
        return code;
    }
    background::prepare();
    sys::share_one_heap();
    let args = Args::parse();
    let env = take_environment(&args);
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(args.log_level.filter())
        .with_ansi(false)
        // A log that cannot be written, as on a full disk, must not end the thread that logs.
        .log_internal_errors(false)
        .init();
    match run(args, env) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a line for whoever started the program"
)]
fn say(line: &str) {
    eprintln!("loopd: {line}");
}

/// Copies the environment and takes the secrets out of the original, which other processes of this
/// user could read. Called while this is the only thread.
fn take_environment(args: &Args) -> BTreeMap<String, String> {
    if let Err(error) = sys::refuse_inspection() {
        say(&format!("other processes can look into this one: {error}"));
    }
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let env: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    let named = args.auth_token_env.as_deref();
    if named.is_some_and(|name| !env.contains_key(name)) {
        // The name is not shown: it may be the token itself, given by mistake.
        say("the variable that --auth-token-env names is not set, so there is no token");
    }
    sys::forget_variables(&private_variables(&env, named));
    env
}

fn run(mut args: Args, env: BTreeMap<String, String>) -> anyhow::Result<()> {
    let home = home_paths::home(&env)?;
    if let Some(verb) = args.command.take() {
        return run_daemon(serve_verb(verb, &home, &env));
    }
    anyhow::ensure!(
        args.headless || args.server,
        "nothing to do: start it with `loopd serve`, or let an SDK start it with --headless (see loopd --help)"
    );
    check_timeouts(&env)?;
    let cwd = std::env::current_dir().context("the current directory cannot be read")?;
    let token = (!args.stdio).then(|| connection_token(&env)).transpose()?;
    if args.private {
        return run_daemon(serve_private(args, &home, cwd, env, token));
    }
    let user = local_socket::user();
    loopd_relay::run(RelayOptions {
        socket: home_paths::socket(&home, &env, user),
        home,
        user,
        cwd,
        env,
        auth_token_env: args.auth_token_env,
        connection_token: token,
        yolo: args.yolo,
        session_idle_timeout: args.session_idle_timeout,
        transport: if args.stdio {
            RelayTransport::Stdio
        } else {
            RelayTransport::Tcp {
                port: args.port.unwrap_or(0),
            }
        },
    })
}

/// Runs the daemon on two threads.
fn run_daemon(serving: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(serving);
    // A blocking read of stdin may still hang; it must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

async fn serve_verb(verb: Verb, home: &Path, env: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let (idle_timeout, unattended_timeout, background, socket) = match verb {
        Verb::Serve {
            idle_timeout,
            unattended_timeout,
            background,
            socket,
        } => (idle_timeout, unattended_timeout, background, socket),
        Verb::McpConformance { url } => return mcp_conformance(&url, env).await,
    };
    let socket = if let Some(socket) = socket {
        socket
    } else {
        let user = local_socket::user();
        let socket = home_paths::socket(home, env, user);
        home_paths::prepare_socket(&socket, user)?;
        socket
    };
    let stay = Stay {
        idle: idle_timeout.map(Duration::from_secs),
        unattended: unattended_timeout.map(Duration::from_secs),
    };
    if background {
        serve_in_background(home, &socket, env, stay).await
    } else {
        let app = App::open(home, Some(&socket), stay.unattended).await?;
        serve(app, home, &socket, env, stay, "loopd listening on ").await
    }
}

/// Uses an MCP server as the conformance tool wants it, which says in variables what that is.
async fn mcp_conformance(url: &str, env: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let variable = |name: &str| env.get(&format!("MCP_CONFORMANCE_{name}")).cloned();
    let context = variable("CONTEXT").map(|text| serde_json::from_str(&text));
    let context = context.transpose().context("MCP_CONFORMANCE_CONTEXT")?;
    let scenario = Scenario {
        name: variable("SCENARIO").unwrap_or_default(),
        context: context.unwrap_or_default(),
        protocol_version: variable("PROTOCOL_VERSION"),
    };
    let http = HttpClient::new(HttpSettings::from_environment(env));
    let done = conformance::run(url, scenario, http).await;
    done.map_err(anyhow::Error::msg)
}

/// Runs relay and daemon in one process (`--private`).
async fn serve_private(
    args: Args,
    home: &Path,
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    token: Option<String>,
) -> anyhow::Result<()> {
    let stopped = shutdown::signal();
    let app = App::open(home, None, None).await?;
    let home_gone = home_gone(&app, home);
    let launch = Arc::new(Launch::new(
        cwd,
        env,
        LaunchOptions {
            auth_token_env: args.auth_token_env,
            connection_token: token.map(Secret::new),
            yolo: args.yolo,
            session_idle_timeout: args.session_idle_timeout.map(Duration::from_secs),
        },
    ));
    let serving = async {
        if args.stdio {
            let (input, output) = stdio::open().context("stdin and stdout cannot be used")?;
            let stream = tokio::io::join(input, output);
            let reason = app.serve(stream, launch.clone(), Trust::Transport).await;
            tracing::debug!(%reason, "the client is gone");
        } else {
            let listener = Tcp::bind(args.port.unwrap_or(0))
                .await
                .context("the TCP port cannot be opened")?;
            announce(&format!("loopd listening on port {}", listener.port()))?;
            tcp::serve(listener, app.clone(), launch.clone()).await;
        }
        anyhow::Ok(())
    };
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served?,
        () = home_gone => {
            // The client is still told why. The home is not recreated.
            tokio::select! {
                () = app.hand_over() => {}
                served = &mut serving => served?,
            }
            app.close().await;
            anyhow::bail!("the home {} was emptied, deleted or moved; start again", home.display());
        }
        () = stopped => {
            // The client still gets the last events of its sessions.
            tokio::select! {
                () = app.end_launch(&launch) => {}
                served = &mut serving => served?,
            }
        }
    }
    app.end_launch(&launch).await;
    app.close().await;
    Ok(())
}

/// How long the daemon stays when it has nothing to do.
struct Stay {
    /// For ever, if it is not set.
    idle: Option<Duration>,
    /// How much longer while something waits for a person; the configuration says it otherwise.
    unattended: Option<Duration>,
}

/// Runs a daemon that a client started. It reports to that client through the pipe on stdout.
async fn serve_in_background(
    home: &Path,
    socket: &Path,
    env: &BTreeMap<String, String>,
    stay: Stay,
) -> anyhow::Result<()> {
    let app = match App::open(home, Some(socket), stay.unattended).await {
        Ok(app) => app,
        // After "held" the client tries again: it finds the daemon that holds the lock, or starts
        // another one.
        Err(StartError::Lock(error @ (LockError::Held { .. } | LockError::Replaced { .. }))) => {
            announce(&format!("held: {error}"))?;
            return Ok(());
        }
        Err(error) => {
            announce(&format!("error: {error}"))?;
            return Err(error.into());
        }
    };
    let stay = Stay {
        idle: stay.idle.or(Some(IDLE)),
        ..stay
    };
    let outcome = serve(app.clone(), home, socket, env, stay, "ready: ").await;
    if let Err(error) = &outcome {
        // If the home was emptied during the start, "held" makes the client try again.
        let word = if app.has_lost_home() { "held" } else { "error" };
        // The client that started the daemon may be gone by now; the log has the error as well.
        announce(&format!("{word}: {error:#}")).ok();
    }
    outcome
}

/// Serves all clients of this user on one socket.
async fn serve(
    app: Arc<App>,
    home: &Path,
    socket: &Path,
    env: &BTreeMap<String, String>,
    stay: Stay,
    ready: &str,
) -> anyhow::Result<()> {
    let stopped = shutdown::signal();
    let (listener, socket_file) = local_socket::bind(socket)
        .await
        .with_context(|| format!("the socket {} cannot be opened", socket.display()))?;
    let home_gone = home_gone(&app, home);
    announce(&format!("{ready}{}", socket.display()))?;
    let environment = env.clone();
    let launch = move || Launch::new("/".into(), environment.clone(), LaunchOptions::default());
    let became_idle = async {
        let unattended = app.services.config.unattended.0;
        match stay.idle {
            Some(idle) => app.services.keep_alive.idle_for(idle, unattended).await,
            None => std::future::pending().await,
        }
    };
    let (why, lost_home) = tokio::select! {
        () = local_socket::serve(listener, app.clone(), launch) => ("it was told to stop", false),
        () = stopped => ("a signal stopped it", false),
        () = became_idle => ("nobody was connected, and nothing ran", false),
        () = home_gone => ("its home was emptied, deleted or moved", true),
    };
    // Also without a log of everything: who looks for the daemon looks there. A closed stderr is no
    // reason to fail.
    writeln!(std::io::stderr(), "loopd: the daemon ends: {why}").ok();
    socket_file.remove().await;
    if lost_home || app.has_lost_home() {
        app.hand_over().await;
    }
    app.close().await;
    Ok(())
}

/// Begins to watch the home; the future resolves when the home is no longer the locked folder.
fn home_gone(app: &App, home: &Path) -> impl Future<Output = ()> + use<> {
    let watch = app.lock_id().map(|lock| HomeWatch::begin(home, lock));
    async {
        match watch {
            Some(watch) => watch.gone().await,
            None => std::future::pending().await,
        }
    }
}

/// Returns the token that TCP clients have to send: the one in the environment, or else 256 random
/// bits.
fn connection_token(env: &BTreeMap<String, String>) -> anyhow::Result<String> {
    if let Some(token) = env
        .get("COPILOT_CONNECTION_TOKEN")
        .filter(|t| !t.is_empty())
    {
        return Ok(token.clone());
    }
    say(
        "COPILOT_CONNECTION_TOKEN is not set, so nobody can connect; set it to what clients shall show",
    );
    Ok(secret::random_hex()?)
}
