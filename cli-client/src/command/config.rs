//! `loop config`: the daemon's file of settings.

use loopd_sdk::proto::params::config::{ConfigSetting, SetValue};

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

pub(crate) async fn run(app: &App, all: bool) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let shown = client.config().await;
    client.close().await;
    let shown = shown?;
    let outcome = if shown.problem.is_some() {
        Outcome::Failed
    } else {
        Outcome::Done
    };
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&shown)? + "\n"))?;
        return Ok(outcome);
    }
    app.terminal
        .print(&format!("{}\n", sanitize(&shown.path)))?;
    for set in &shown.set {
        app.terminal.print(&(line(set) + "\n"))?;
    }
    if !shown.exists {
        app.terminal
            .notice("the file does not exist, and all settings have their defaults; loop config --all lists them");
    }
    if let Some(problem) = &shown.problem {
        app.terminal.notice(&sanitize(problem));
    }
    if all {
        app.terminal.print("\n")?;
        for setting in &shown.settings {
            app.terminal.print(&(described(setting) + "\n"))?;
        }
    }
    Ok(outcome)
}

fn line(set: &SetValue) -> String {
    sanitize(&format!("  {} = {}", set.key, set.value))
}

fn described(setting: &ConfigSetting) -> String {
    let default = setting.default.as_deref();
    let default = default.map_or_else(String::new, |text| format!("; default {text}"));
    sanitize(&format!(
        "{}  ({}{default})\n    {}",
        setting.key, setting.kind, setting.help
    ))
}
