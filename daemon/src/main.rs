//! From arguments to an exit code.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use loopd::app::App;
use loopd::args::{Args, Verb};
use loopd::launch::{Launch, LaunchOptions};
use loopd::provider::secret::Secret;
use loopd::rpc::context::Trust;
use loopd::transport::{local_socket, stdio, tcp};
use loopd::{home, shutdown};

fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(args.log_level.filter())
        .with_ansi(false)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let outcome = runtime.block_on(run(args));
    // A blocking read of stdin may still hang; it must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that says why the daemon did not run"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("loopd: {error:#}");
    ExitCode::FAILURE
}

async fn run(args: Args) -> anyhow::Result<()> {
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let cwd = std::env::current_dir().context("the current directory cannot be read")?;
    let home = home::find(&env)?;
    if matches!(args.command, Some(Verb::Serve)) {
        return serve(&home, &env).await;
    }
    anyhow::ensure!(
        args.headless,
        "nothing to do: start it with `loopd serve`, or let an SDK start it with --headless (see loopd --help)"
    );
    let app = App::open(&home, None).await?;
    let token = (!args.stdio).then(|| connection_token(&env)).transpose()?;
    let launch = Arc::new(Launch::new(
        cwd,
        env,
        LaunchOptions {
            auth_token_env: args.auth_token_env,
            connection_token: token,
            yolo: args.yolo,
        },
    ));
    let stopped = shutdown::signal();
    if args.stdio {
        let stream = stdio::open().context("stdin and stdout cannot be used")?;
        tokio::select! {
            reason = app.serve(stream, launch.clone(), Trust::Transport) => {
                tracing::debug!(%reason, "the client is gone");
            }
            () = stopped => {}
        }
    } else {
        let listener = tcp::Tcp::bind(args.port.unwrap_or(0))
            .await
            .context("the TCP port cannot be opened")?;
        announce(&format!("loopd listening on port {}", listener.port()))?;
        tokio::select! {
            () = listener.serve(app.clone(), launch.clone()) => {}
            () = stopped => {}
        }
    }
    app.end_launch(&launch).await;
    app.close().await;
    Ok(())
}

/// The foreground daemon: one socket for everybody of this user.
async fn serve(home: &Path, env: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let own_home = env.contains_key("LOOPD_HOME") || env.contains_key("COPILOT_HOME");
    let runtime = env.get("XDG_RUNTIME_DIR").filter(|_| !own_home);
    let path = local_socket::path_for(home, runtime.map(Path::new)).await?;
    let app = App::open(home, Some(&path)).await?;
    let listener = local_socket::bind(&path)
        .with_context(|| format!("the socket {} cannot be opened", path.display()))?;
    announce(&format!("loopd listening on {}", path.display()))?;
    let environment = env.clone();
    let launch = move || Launch::new("/".into(), environment.clone(), LaunchOptions::default());
    tokio::select! {
        () = local_socket::serve(listener, app.clone(), launch) => {}
        () = shutdown::signal() => {}
    }
    app.close().await;
    // Gone with the daemon; a crash leaves it for the next one to replace.
    std::fs::remove_file(&path).ok();
    Ok(())
}

/// Tells the starter on stdout that clients may come.
fn announce(line: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush())?;
    Ok(())
}

/// The token that TCP clients have to show: as given, else 256 bits of our own.
fn connection_token(env: &BTreeMap<String, String>) -> anyhow::Result<Secret> {
    if let Some(token) = env
        .get("COPILOT_CONNECTION_TOKEN")
        .filter(|t| !t.is_empty())
    {
        return Ok(Secret::new(token.as_str()));
    }
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let mut token = String::with_capacity(64);
    for byte in bytes {
        use std::fmt::Write as _;
        write!(token, "{byte:02x}")?;
    }
    Ok(Secret::new(token))
}
