//! `loop agents`: the agents for sessions in a directory.

use std::path::Path;

use anyhow::bail;
use loopd_sdk::proto::params::discovery::FolderAgent;

use super::hooks::below;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

pub(crate) async fn run(app: &App, directory: Option<&Path>) -> anyhow::Result<Outcome> {
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    if !directory.is_dir() {
        bail!(
            "{} is no directory; give the directory whose agents you want to see",
            directory.display()
        );
    }
    let client = app.connect().await?;
    let listed = client
        .agents(Some(directory.to_string_lossy().into_owned()))
        .await;
    client.close().await;
    let listed = listed?;
    if app.options.json {
        let line = serde_json::to_string(&listed)? + "\n";
        app.terminal.print(&line)?;
        return Ok(Outcome::Done);
    }
    for agent in &listed.agents {
        app.terminal.print(&(described(agent, &directory) + "\n"))?;
    }
    for problem in &listed.problems {
        app.terminal.notice(&super::problem_line(problem));
    }
    Ok(Outcome::Done)
}

/// Describes an agent in two lines, because descriptions are too long for columns.
fn described(listed: &FolderAgent, directory: &Path) -> String {
    let agent = &listed.agent;
    let mut head = agent.name.clone();
    head += if listed.built_in { "  built in" } else { "" };
    if let Some(path) = &agent.path {
        head += &format!("  {}", below(path, directory));
    }
    if let Some(model) = &agent.model {
        head += &format!("  (model {model})");
    }
    if !listed.selectable {
        head += "  works for other agents only";
    }
    let text = agent.description.split_whitespace();
    let text = text.collect::<Vec<_>>().join(" ");
    sanitize(&format!("{head}\n    {text}"))
}
