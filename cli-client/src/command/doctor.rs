//! `loop doctor`: checks everything that `loop` needs and says how to fix what is missing. Changes
//! nothing; a daemon that it had to start exits by itself.

mod database;
mod disk;
mod request;

use std::path::{Path, PathBuf};

use loopd_sdk::DaemonPaths;
use loopd_sdk::proto::home_paths;

use crate::app::App;
use crate::command::daemon::connect_to_running;
use crate::model;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

/// The result of one check.
#[derive(Debug)]
enum Finding {
    Ok(String),
    /// It works, but something should be fixed.
    Warn(String),
    Fail(String),
}

use Finding::{Fail, Ok as Fine, Warn};

pub(crate) async fn run(app: &App, request: bool) -> anyhow::Result<Outcome> {
    let mut findings = Vec::new();
    match app.connect_options().daemon_paths() {
        Err(error) => findings.push(("home", Fail(error.to_string()))),
        Ok(paths) => {
            let home = home(&paths.home);
            let has_home = !matches!(home, Fail(_));
            findings.push(("home", home));
            // Before a daemon is started to look through the data.
            let daemon = daemon(app, &paths).await;
            if has_home {
                findings.extend(disk::check(&paths.home).map(|finding| ("disk", finding)));
                findings.push(("data", database::check(app, &paths.home).await));
            }
            findings.push(("loopd", program(&paths)));
            findings.extend(daemon);
        }
    }
    findings.extend(config(app).await.map(|finding| ("config", finding)));
    findings.push(("model", model(app).await));
    if request {
        findings.push(("request", request::check(app).await));
    }
    findings.extend(
        agent_files(app)
            .await
            .into_iter()
            .map(|finding| ("files", finding)),
    );
    findings.extend(mcp_servers(app).await.map(|finding| ("mcp", finding)));
    for (name, missing) in [
        (
            "bash",
            Fail("not on PATH; the agent runs commands with it, install it".to_owned()),
        ),
        (
            "git",
            Warn("not on PATH; install it for work in repositories".to_owned()),
        ),
    ] {
        let found = on_path(app, name);
        let finding = found.map_or(missing, |path| Fine(path.display().to_string()));
        findings.push((name, finding));
    }
    let mut outcome = Outcome::Done;
    for (name, finding) in findings {
        let (style, mark, text) = match finding {
            Fine(text) => (Style::Good, "ok  ", text),
            Warn(text) => (Style::Bold, "warn", text),
            Fail(text) => {
                outcome = Outcome::Failed;
                (Style::Bad, "fail", text)
            }
        };
        if app.options.json {
            let line = serde_json::json!({"check": name, "status": mark.trim_end(), "text": text});
            app.terminal.print(&format!("{line}\n"))?;
            continue;
        }
        let mark = app.terminal.styled(style, mark);
        app.terminal.print(&format!("{mark} {name:<7} {text}\n"))?;
    }
    Ok(outcome)
}

fn home(home: &Path) -> Finding {
    let shown = home.display();
    match std::fs::metadata(home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match can_be_made(home) {
            Ok(()) => Fine(format!("{shown} (made when it is needed)")),
            Err(error) => Fail(home_paths::problem(home, &error)),
        },
        Err(error) => Fail(home_paths::problem(home, &error)),
        Ok(facts) if !facts.is_dir() => Fail(format!(
            "{shown} is not a folder; move it away or choose another with LOOPD_HOME"
        )),
        Ok(facts) if others_can_write(&facts) => Fail(format!(
            "other users can write in {shown}; run chmod 700 {shown}"
        )),
        Ok(_) => match can_be_written(home) {
            Ok(()) => Fine(shown.to_string()),
            Err(error) => Fail(home_paths::problem(home, &error)),
        },
    }
}

/// Checks that the home can be made in the folder above it that exists.
fn can_be_made(home: &Path) -> std::io::Result<()> {
    match home.ancestors().find(|folder| folder.exists()) {
        Some(folder) => can_be_written(folder),
        None => Ok(()),
    }
}

/// Asks the system whether this user may make files in a folder. Nothing is made.
#[cfg(unix)]
fn can_be_written(folder: &Path) -> std::io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, folder, rights, AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
fn can_be_written(folder: &Path) -> std::io::Result<()> {
    if std::fs::metadata(folder)?.permissions().readonly() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

#[cfg(unix)]
fn others_can_write(facts: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    facts.permissions().mode() & 0o022 != 0
}

#[cfg(not(unix))]
fn others_can_write(_facts: &std::fs::Metadata) -> bool {
    false
}

fn program(paths: &DaemonPaths) -> Finding {
    match &paths.program {
        Some(program) if program.is_file() => Fine(program.display().to_string()),
        Some(program) => Fail(format!(
            "{} does not exist; correct LOOPD_BIN",
            program.display()
        )),
        None => Fail(
            "not found; put loopd beside loop or on PATH, or name it with LOOPD_BIN".to_owned(),
        ),
    }
}

/// Checks lock, socket and daemon together, because the finding on each depends on the others.
async fn daemon(app: &App, paths: &DaemonPaths) -> Vec<(&'static str, Finding)> {
    let owner = owner(&paths.home);
    let socket = paths.socket.display();
    let client = match connect_to_running(app).await {
        Ok(client) => client,
        Err(error) => {
            return vec![(
                "daemon",
                Fail(format!(
                    "{error}; stop it, so that this build can start its own"
                )),
            )];
        }
    };
    let Some(client) = client else {
        let lock = match home_paths::is_held(&paths.home) {
            Ok(false) => Fine("free".to_owned()),
            Ok(true) => {
                let who = owner.map_or_else(String::new, |pid| format!(" by process {pid}"));
                Warn(format!(
                    "held{who}, which does not answer at {socket}; it may be about to end, else end it"
                ))
            }
            Err(error) => Fail(format!(
                "it cannot be looked at: {}",
                home_paths::problem(&paths.home, &error)
            )),
        };
        let idle = Fine("not running; it starts when it is needed".to_owned());
        return vec![
            ("lock", lock),
            ("socket", Fine(format!("{socket} (nobody listens)"))),
            ("daemon", idle),
        ];
    };
    let status = match client.daemon_status().await {
        Ok(status) => status,
        Err(error) => return vec![("daemon", Fail(format!("it does not answer: {error}")))],
    };
    client.close().await;
    let lock = if owner == Some(status.pid) {
        Fine(format!("held by process {}", status.pid))
    } else {
        Warn(format!(
            "process {} serves the home without being named in its lock; stop it with loop daemon stop",
            status.pid
        ))
    };
    let build = if paths.build.as_ref() == Some(&status.build) {
        Fine(format!("loopd {} runs", status.build))
    } else {
        Warn(format!(
            "another build runs ({}); it is replaced once nobody uses it, or now with loop daemon stop",
            status.build
        ))
    };
    vec![
        ("lock", lock),
        ("socket", Fine(socket.to_string())),
        ("daemon", build),
    ]
}

/// Returns the pid in the lock file.
fn owner(home: &Path) -> Option<u32> {
    let line = std::fs::read_to_string(home.join(home_paths::LOCK_FILE)).ok()?;
    let owner: serde_json::Value = serde_json::from_str(line.lines().next()?).ok()?;
    u32::try_from(owner.get("pid")?.as_u64()?).ok()
}

/// Checks `config.toml`. Only the daemon knows its keys. That no daemon can be asked is another finding.
async fn config(app: &App) -> Option<Finding> {
    let client = app.connect().await.ok()?;
    let status = client.daemon_status().await;
    client.close().await;
    let status = status.ok()?;
    let file = Path::new(&status.home).join("config.toml");
    Some(match status.config_problem {
        Some(problem) => Fail(sanitize(&problem)),
        None if file.exists() => Fine(file.display().to_string()),
        None => Fine(format!("{} does not exist; it need not", file.display())),
    })
}

/// Checks the model. Only the daemon knows which one it would choose, so one is started if needed.
async fn model(app: &App) -> Finding {
    let client = match app.connect().await {
        Ok(client) => client,
        Err(error) => return Fail(format!("no daemon could be asked: {error:#}")),
    };
    let named = app.options.model.clone();
    let chosen = client.model_choice(named.clone()).await;
    let wanted = named.as_deref().or(app.variable("LOOPD_MODEL"));
    client.close().await;
    match chosen {
        Ok(chosen) => match model::hint(&chosen, wanted) {
            Some(hint) => Warn(hint.to_owned()),
            None => Fine(model::describe(&chosen)),
        },
        Err(error) => Fail(error.to_string()),
    }
}

/// Checks the files that people left for agents here: agents, skills, instructions, MCP servers.
async fn mcp_servers(app: &App) -> Option<Finding> {
    // That no daemon can be asked is another finding.
    let client = app.connect().await.ok()?;
    let servers = super::mcp::found(app, &client).await;
    client.close().await;
    let servers = match servers {
        Ok(servers) => servers,
        Err(error) => return Some(Warn(format!("the MCP servers were not listed: {error:#}"))),
    };
    let used: Vec<&str> = servers
        .iter()
        .filter(|server| server.enabled)
        .map(|server| server.name.as_str())
        .collect();
    let off = servers.len() - used.len();
    let names = match used.len() {
        0 => "no MCP servers".to_owned(),
        _ => format!("{}; to try one: loop mcp test NAME", used.join(", ")),
    };
    let off = match off {
        0 => String::new(),
        off => format!(" ({off} disabled)"),
    };
    Some(Fine(sanitize(&format!("{names}{off}"))))
}

async fn agent_files(app: &App) -> Vec<Finding> {
    // That no daemon can be asked is another finding.
    let Ok(client) = app.connect().await else {
        return Vec::new();
    };
    let problems = client.discovery_problems().await;
    client.close().await;
    match problems {
        Err(error) => vec![Warn(format!(
            "the files for agents were not checked: {error}"
        ))],
        Ok(problems) if problems.is_empty() => {
            vec![Fine("the files for agents can be used".to_owned())]
        }
        Ok(problems) => problems
            .iter()
            .map(|problem| {
                let line = problem
                    .line
                    .map_or_else(String::new, |line| format!(", line {line}"));
                Warn(sanitize(&format!(
                    "{}{line}: {}",
                    problem.file, problem.message
                )))
            })
            .collect(),
    }
}

fn on_path(app: &App, name: &str) -> Option<PathBuf> {
    let path = app.env.get("PATH").map(String::as_str).unwrap_or_default();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path)
        .map(|folder| folder.join(&file))
        .find(|program| program.is_file())
}
