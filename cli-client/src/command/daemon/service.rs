//! `loop daemon install` and `uninstall`: a unit of systemd for this user, or a launchd agent.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use loopd_sdk::DaemonPaths;
use loopd_sdk::proto::home_paths;

use super::connect_to_running;
use crate::amount::counted;
use crate::app::App;
use crate::outcome::Outcome;

/// Says in the file who wrote it, so that no other file is replaced or removed.
const MARK: &str = "Written by `loop daemon install`; `loop daemon uninstall` removes it.";
const UNIT: &str = "loopd.service";
const LABEL: &str = "loopd";

/// What starts programs of this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
}

/// Of this machine.
const MANAGER: Manager = if cfg!(target_os = "macos") {
    Manager::Launchd
} else {
    Manager::Systemd
};

/// What the file says.
struct Service {
    program: PathBuf,
    home: PathBuf,
    socket: PathBuf,
    log: PathBuf,
}

pub(super) async fn install(app: &App, print: bool) -> anyhow::Result<Outcome> {
    let DaemonPaths {
        home,
        socket,
        program,
        ..
    } = app.connect_options().daemon_paths()?;
    let Some(program) = program else {
        bail!(
            "the daemon's program was not found; put loopd beside loop or on PATH, or name it with LOOPD_BIN"
        );
    };
    let service = Service {
        program: std::path::absolute(program)?,
        log: home_paths::log_file(&home),
        home,
        socket,
    };
    let text = service.text(MANAGER);
    if print {
        app.terminal.print(&text)?;
        return Ok(Outcome::Done);
    }
    let path = file(app, MANAGER)?;
    refuse_foreign(&path)?;
    stop_running(app).await?;
    home_paths::create_private(&service.home)
        .with_context(|| format!("{} cannot be made", service.home.display()))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    app.terminal.notice(&format!("wrote {}", path.display()));
    let outcome = run_all(app, &start_commands(MANAGER, &path));
    app.terminal.notice("to undo it: loop daemon uninstall");
    Ok(outcome)
}

pub(super) fn uninstall(app: &App) -> anyhow::Result<Outcome> {
    let path = file(app, MANAGER)?;
    if !path.exists() {
        app.terminal.notice(&format!(
            "{} does not exist; nothing was installed",
            path.display()
        ));
        return Ok(Outcome::Done);
    }
    refuse_foreign(&path)?;
    let stopped = run_all(app, &stop_commands(MANAGER, &path));
    fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    app.terminal.notice(&format!("removed {}", path.display()));
    let reloaded = run_all(app, &reload_commands(MANAGER));
    app.terminal
        .notice("the daemon starts when it is needed, as before; sessions are kept");
    Ok(match (stopped, reloaded) {
        (Outcome::Done, Outcome::Done) => Outcome::Done,
        _ => Outcome::Failed,
    })
}

/// Returns where the file is for this user.
fn file(app: &App, manager: Manager) -> anyhow::Result<PathBuf> {
    let home = || {
        let home = app.variable("HOME").map(PathBuf::from);
        home.context("HOME is not set; set it to your home directory")
    };
    Ok(match manager {
        Manager::Systemd => {
            let config = match app.variable("XDG_CONFIG_HOME") {
                Some(config) => PathBuf::from(config),
                None => home()?.join(".config"),
            };
            config.join("systemd/user").join(UNIT)
        }
        Manager::Launchd => home()?
            .join("Library/LaunchAgents")
            .join(format!("{LABEL}.plist")),
    })
}

fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.contains(MARK) => Ok(()),
        Ok(_) => bail!(
            "{} exists and was not written by loop; move it away first",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => bail!("{} cannot be read: {error}", path.display()),
    }
}

/// Stops a daemon that was started when it was needed: a home has one daemon only.
async fn stop_running(app: &App) -> anyhow::Result<()> {
    let Some(client) = connect_to_running(app).await? else {
        return Ok(());
    };
    let status = client.daemon_status().await?;
    if status.work > 0 {
        client.close().await;
        bail!(
            "the daemon is at work ({}); wait until it is done, or cut it short with loop daemon stop --force, and \
             install then",
            counted(status.work, "model call or tool", "model calls and tools")
        );
    }
    client.stop_daemon().await?;
    app.terminal.notice(&format!(
        "stopped the daemon that ran (process {})",
        status.pid
    ));
    Ok(())
}

type CommandLine = Vec<String>;

fn command(words: &[&str]) -> CommandLine {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn start_commands(manager: Manager, path: &Path) -> Vec<CommandLine> {
    match manager {
        Manager::Systemd => vec![
            command(&["systemctl", "--user", "daemon-reload"]),
            command(&["systemctl", "--user", "enable", "--now", UNIT]),
        ],
        Manager::Launchd => {
            let path = path.to_string_lossy();
            vec![command(&["launchctl", "bootstrap", &domain(), &path])]
        }
    }
}

fn stop_commands(manager: Manager, path: &Path) -> Vec<CommandLine> {
    match manager {
        Manager::Systemd => vec![command(&["systemctl", "--user", "disable", "--now", UNIT])],
        Manager::Launchd => {
            let path = path.to_string_lossy();
            vec![command(&["launchctl", "bootout", &domain(), &path])]
        }
    }
}

fn reload_commands(manager: Manager) -> Vec<CommandLine> {
    match manager {
        Manager::Systemd => vec![command(&["systemctl", "--user", "daemon-reload"])],
        Manager::Launchd => Vec::new(),
    }
}

/// Returns how launchd calls the session of this user.
fn domain() -> String {
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw();
    #[cfg(not(unix))]
    let user = 0;
    format!("gui/{user}")
}

/// Runs commands one after the other, and says which ran. After one that fails the others are only named.
fn run_all(app: &App, commands: &[CommandLine]) -> Outcome {
    let mut failed = None;
    let mut left = Vec::new();
    for words in commands {
        let line = words.join(" ");
        if failed.is_some() {
            left.push(line);
            continue;
        }
        match run_one(app, words) {
            Ok(()) => app.terminal.notice(&format!("ran {line}")),
            Err(why) => {
                failed = Some(why);
                left.push(line);
            }
        }
    }
    let Some(why) = failed else {
        return Outcome::Done;
    };
    app.terminal.notice(&format!("{why}; what is left to do:"));
    for line in left {
        app.terminal.notice(&format!("  {line}"));
    }
    Outcome::Failed
}

fn run_one(app: &App, words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    let mut command = Command::new(program);
    let command = command
        .args(arguments)
        .env_clear()
        .envs(&app.env)
        .stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let said = if said.is_empty() {
                "it said nothing"
            } else {
                said
            };
            Err(format!(
                "{} failed ({}): {}",
                words.join(" "),
                output.status,
                crate::terminal::sanitize(said)
            ))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!(
            "{program} was not found, so nothing was started or stopped"
        )),
        Err(error) => Err(format!("{program} cannot be run: {error}")),
    }
}

impl Service {
    fn text(&self, manager: Manager) -> String {
        match manager {
            Manager::Systemd => self.unit(),
            Manager::Launchd => self.agent(),
        }
    }

    fn unit(&self) -> String {
        let quoted = |path: &Path| {
            let path = path.to_string_lossy();
            let path = path.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{}\"", path.replace('%', "%%"))
        };
        // A dollar sign begins the name of a variable in this line only.
        let program = quoted(&self.program).replace('$', "$$");
        let socket = quoted(&self.socket).replace('$', "$$");
        let home = quoted(Path::new(&format!("LOOPD_HOME={}", self.home.display())));
        let log = self.log.to_string_lossy().replace('%', "%%");
        format!(
            "# {MARK}\n\
             [Unit]\n\
             Description=loopd, the daemon that owns AI agent sessions\n\
             \n\
             [Service]\n\
             ExecStart={program} serve --socket {socket}\n\
             Environment={home}\n\
             Restart=on-failure\n\
             RestartSec=2\n\
             # Detached commands outlive the daemon; it ends all others itself.\n\
             KillMode=process\n\
             UMask=0077\n\
             StandardError=append:{log}\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n"
        )
    }

    fn agent(&self) -> String {
        let text = |path: &Path| {
            let path = path.to_string_lossy();
            let path = path
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            format!("<string>{path}</string>")
        };
        let (program, socket) = (text(&self.program), text(&self.socket));
        let (home, log) = (text(&self.home), text(&self.log));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!-- {MARK} -->\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n  \
               <key>Label</key>\n  <string>{LABEL}</string>\n  \
               <key>ProgramArguments</key>\n  <array>\n    {program}\n    <string>serve</string>\n    \
               <string>--socket</string>\n    {socket}\n  </array>\n  \
               <key>EnvironmentVariables</key>\n  <dict>\n    <key>LOOPD_HOME</key>\n    {home}\n  </dict>\n  \
               <key>RunAtLoad</key>\n  <true/>\n  \
               <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
               <key>AbandonProcessGroup</key>\n  <true/>\n  \
               <key>Umask</key>\n  <integer>63</integer>\n  \
               <key>StandardErrorPath</key>\n  {log}\n\
             </dict>\n</plist>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            program: "/opt/my tools/loopd".into(),
            home: "/home/me/50% $x".into(),
            socket: "/run/user/1/s".into(),
            log: "/home/me/50% $x/daemon.log".into(),
        }
    }

    #[test]
    fn a_unit_quotes_what_systemd_would_expand() {
        let unit = service().text(Manager::Systemd);
        for line in [
            "ExecStart=\"/opt/my tools/loopd\" serve --socket \"/run/user/1/s\"",
            "Environment=\"LOOPD_HOME=/home/me/50%% $x\"",
            "StandardError=append:/home/me/50%% $x/daemon.log",
            "KillMode=process",
            "WantedBy=default.target",
        ] {
            assert!(unit.lines().any(|it| it == line), "{line} in {unit}");
        }
        assert!(unit.starts_with(&format!("# {MARK}")));
    }

    #[test]
    fn an_agent_is_xml_with_the_same_words() {
        let mut service = service();
        service.home = "/home/me/a&b".into();
        let agent = service.text(Manager::Launchd);
        for part in [
            "<string>/opt/my tools/loopd</string>\n    <string>serve</string>",
            "<key>LOOPD_HOME</key>\n    <string>/home/me/a&amp;b</string>",
            "<key>RunAtLoad</key>\n  <true/>",
            MARK,
        ] {
            assert!(agent.contains(part), "{part} in {agent}");
        }
        assert_eq!(agent.matches('<').count(), agent.matches('>').count());
    }

    #[test]
    fn what_is_started_is_stopped_again() {
        let path = Path::new("/x/loopd.service");
        let lines = |commands: Vec<CommandLine>| -> Vec<String> {
            commands.iter().map(|words| words.join(" ")).collect()
        };
        assert_eq!(
            lines(start_commands(Manager::Systemd, path)),
            [
                "systemctl --user daemon-reload",
                "systemctl --user enable --now loopd.service"
            ]
        );
        assert_eq!(
            lines(stop_commands(Manager::Systemd, path)),
            ["systemctl --user disable --now loopd.service"]
        );
        let launchd = lines(start_commands(
            Manager::Launchd,
            Path::new("/x/loopd.plist"),
        ));
        assert!(
            launchd
                .iter()
                .all(|line| line.starts_with("launchctl bootstrap gui/")),
            "{launchd:?}"
        );
    }
}
