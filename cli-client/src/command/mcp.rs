//! `loop mcp`: the MCP servers for sessions in a directory: listed, added, removed, tried.

mod login;

use loopd_sdk::proto::event::mcp::{McpSource, McpTransport};
use loopd_sdk::proto::method;
use loopd_sdk::proto::params::discovery::{McpParams, McpServer};
use loopd_sdk::proto::params::mcp::{
    ConfigEntryParams, ConfigNameParams, ServerParams, ServerTested,
};
use loopd_sdk::proto::params::session::Of;
use loopd_sdk::{Client, Session, SessionConfig, SessionId};
use serde_json::{Map, Value, json};

use self::login::Browser;
use super::queue;
use crate::app::App;
use crate::args::{McpAdd, McpVerb};
use crate::outcome::{Outcome, WrongUsage};
use crate::terminal::{Style, sanitize};

/// How many characters of a tool's description are shown.
const DESCRIPTION_CHARS: usize = 100;
/// How many lines of a server's log are shown when it could not be used.
const LOG_LINES: usize = 20;

pub(crate) async fn run(app: &App, what: Option<McpVerb>) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let done = match what {
        None | Some(McpVerb::List) => list(app, &client).await,
        Some(McpVerb::Add(add)) => self::add(app, &client, add).await,
        Some(McpVerb::Remove { name }) => remove(app, &client, name).await,
        Some(McpVerb::Test { name }) => test(app, &client, name).await,
        Some(McpVerb::Login {
            name,
            again,
            no_browser,
        }) => {
            let browser = if no_browser {
                Browser::Closed
            } else {
                Browser::Open
            };
            login::log_in(app, &client, name, again, browser).await
        }
        Some(McpVerb::Logout { name }) => login::log_out(app, &client, name).await,
        Some(McpVerb::Logs { name, session }) => logs(app, &client, name, session.as_deref()).await,
    };
    client.close().await;
    done
}

/// Returns the servers for sessions in this directory.
pub(super) async fn found(app: &App, client: &Client) -> anyhow::Result<Vec<McpServer>> {
    let params = McpParams {
        working_directory: Some(app.directory.to_string_lossy().into_owned()),
    };
    Ok(client.call::<method::McpDiscover>(&params).await?.servers)
}

async fn list(app: &App, client: &Client) -> anyhow::Result<Outcome> {
    let servers = found(app, client).await?;
    if app.options.json {
        for server in &servers {
            app.terminal
                .print(&(serde_json::to_string(server)? + "\n"))?;
        }
        return Ok(Outcome::Done);
    }
    if servers.is_empty() {
        app.terminal.notice("no MCP servers");
    }
    for server in &servers {
        let line = described(server);
        let line = if server.enabled {
            line
        } else {
            app.terminal.styled(Style::Dim, &line)
        };
        app.terminal.print(&(line + "\n"))?;
    }
    Ok(Outcome::Done)
}

fn described(server: &McpServer) -> String {
    let source = match server.source {
        McpSource::User => "yours",
        McpSource::Workspace => "of the project",
        McpSource::Plugin => "of a plugin",
    };
    let kind = match server.transport {
        Some(McpTransport::Stdio) => "a program",
        Some(McpTransport::Http | McpTransport::Sse) => "on the network",
        None => "of another kind",
    };
    let off = if server.enabled { "" } else { "  disabled" };
    sanitize(&format!("{}  {source}  {kind}{off}", server.name))
}

async fn add(app: &App, client: &Client, add: McpAdd) -> anyhow::Result<Outcome> {
    let name = add.name.clone();
    let params = ConfigEntryParams {
        name: add.name.clone(),
        config: entry(add)?,
    };
    client.call::<method::McpConfigAdd>(&params).await?;
    app.terminal.notice(&format!(
        "added {0}; to try it: loop mcp test {0}",
        sanitize(&name)
    ));
    Ok(Outcome::Done)
}

/// Makes the entry of a server from the command line.
fn entry(add: McpAdd) -> anyhow::Result<Map<String, Value>> {
    let pairs =
        |given: &[String], what: &str, between: char| -> anyhow::Result<Map<String, Value>> {
            let pairs = given.iter().map(|pair| {
                let Some((name, value)) = pair.split_once(between) else {
                    return Err(WrongUsage::error(format!(
                        "{what} has to be NAME{between}VALUE, and `{pair}` is not"
                    )));
                };
                Ok((name.trim().to_owned(), json!(value.trim())))
            });
            pairs.collect()
        };
    let env = pairs(&add.env, "--env", '=')?;
    let headers = pairs(&add.header, "--header", ':')?;
    let mut entry = Map::new();
    let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    match (add.url, add.command.split_first()) {
        (Some(url), None) => {
            set("type", json!("http"));
            set("url", json!(url));
            if !headers.is_empty() {
                set("headers", Value::Object(headers));
            }
            if !env.is_empty() {
                return Err(WrongUsage::error(
                    "--env is for a program; give a server on the network what it needs with --header",
                ));
            }
        }
        (None, Some((command, args))) => {
            set("type", json!("local"));
            set("command", json!(command));
            set("args", json!(args));
            if !env.is_empty() {
                set("env", Value::Object(env));
            }
            if !headers.is_empty() {
                return Err(WrongUsage::error(
                    "--header is for a server on the network; give a program what it needs with --env",
                ));
            }
        }
        (Some(_), Some(_)) => {
            return Err(WrongUsage::error("give --url or a command, not both"));
        }
        (None, None) => {
            return Err(WrongUsage::error(
                "give the command of the server after `--`, or its address with --url",
            ));
        }
    }
    set("tools", json!(["*"]));
    Ok(entry)
}

async fn remove(app: &App, client: &Client, name: String) -> anyhow::Result<Outcome> {
    let params = ConfigNameParams { name };
    client.call::<method::McpConfigRemove>(&params).await?;
    app.terminal
        .notice(&format!("removed {}", sanitize(&params.name)));
    Ok(Outcome::Done)
}

async fn test(app: &App, client: &Client, name: String) -> anyhow::Result<Outcome> {
    let tested = tried(app, client, &name).await?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&tested)? + "\n"))?;
    } else {
        app.terminal.print(&shown(&name, &tested))?;
    }
    Ok(match tested.error {
        None => Outcome::Done,
        Some(_) => Outcome::Failed,
    })
}

/// Starts a server in a session of its own, of which nothing is left.
async fn tried(app: &App, client: &Client, name: &str) -> anyhow::Result<ServerTested> {
    let name = name.to_owned();
    in_passing(app, client, async |session: &Session| {
        let params = ServerParams {
            session_id: session.id().clone(),
            server_name: name,
        };
        Ok(session.call::<method::LoopdMcpTest>(&params).await?)
    })
    .await
}

/// Does something in a session that has the servers of this directory, of which nothing is left.
async fn in_passing<T>(
    app: &App,
    client: &Client,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let directory = app.directory.to_string_lossy();
    let mut config = SessionConfig::new()
        .client_name("loop")
        .working_directory(directory);
    config.options.enable_config_discovery = Some(true);
    config.options.enable_file_hooks = Some(false);
    let session = client.create(config).await?;
    let id: SessionId = session.id().clone();
    let done = work(&session).await;
    drop(session);
    let of = Of { session_id: id };
    client.call::<method::SessionDelete>(&of).await?;
    done
}

fn shown(name: &str, tested: &ServerTested) -> String {
    let mut lines = Vec::new();
    if let Some(error) = &tested.error {
        lines.push(format!("{name} cannot be used: {error}"));
        let from = tested.log.len().saturating_sub(LOG_LINES);
        let log = tested.log.iter().skip(from);
        lines.extend(log.map(|line| format!("  | {line}")));
    } else {
        lines.push(format!(
            "{name} is connected after {} ms and has {} tools",
            tested.duration_ms,
            tested.tools.len()
        ));
        for tool in &tested.tools {
            let said = tool.description.as_deref().unwrap_or_default();
            let said = said.lines().next().unwrap_or_default();
            let said: String = said.chars().take(DESCRIPTION_CHARS).collect();
            lines.push(format!("  {}  {said}", tool.name).trim_end().to_owned());
        }
    }
    lines.extend(tested.problems.iter().map(|it| format!("  problem: {it}")));
    sanitize(&lines.join("\n")) + "\n"
}

async fn logs(
    app: &App,
    client: &Client,
    name: String,
    session: Option<&str>,
) -> anyhow::Result<Outcome> {
    let session = queue::join(app, client, session).await?;
    let params = ServerParams {
        session_id: session.id().clone(),
        server_name: name,
    };
    let log = session.call::<method::LoopdMcpLog>(&params).await?;
    if log.dropped > 0 {
        app.terminal
            .notice(&format!("{} older lines were dropped", log.dropped));
    }
    if log.lines.is_empty() {
        app.terminal.notice("the server has written nothing");
    }
    for line in &log.lines {
        app.terminal.print(&(sanitize(line) + "\n"))?;
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adding(url: Option<&str>, command: &[&str], env: &[&str], header: &[&str]) -> McpAdd {
        let owned = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
        McpAdd {
            name: "box".to_owned(),
            url: url.map(str::to_owned),
            env: owned(env),
            header: owned(header),
            command: owned(command),
        }
    }

    #[test]
    fn the_command_line_becomes_an_entry() {
        let program = entry(adding(None, &["npx", "-y", "x"], &["A=b=c"], &[]));
        let expected = json!({"type": "local", "command": "npx", "args": ["-y", "x"], "env": {"A": "b=c"}, "tools": ["*"]});
        assert_eq!(program.ok().map(Value::Object), Some(expected));
        let web = entry(adding(
            Some("https://a.example/mcp"),
            &[],
            &[],
            &["X-Key: 7"],
        ));
        let expected = json!({"type": "http", "url": "https://a.example/mcp", "headers": {"X-Key": "7"}, "tools": ["*"]});
        assert_eq!(web.ok().map(Value::Object), Some(expected));
    }

    #[test]
    fn a_command_line_that_makes_no_sense_is_refused() {
        for (add, why) in [
            (adding(None, &[], &[], &[]), "after `--`"),
            (adding(Some("u"), &["a"], &[], &[]), "not both"),
            (adding(None, &["a"], &["A"], &[]), "NAME=VALUE"),
            (adding(None, &["a"], &[], &["A: b"]), "--header is for"),
            (adding(Some("u"), &[], &["A=b"], &[]), "--env is for"),
        ] {
            let refused = entry(add).err().map(|error| error.to_string());
            assert!(refused.is_some_and(|it| it.contains(why)), "{why}");
        }
    }
}
