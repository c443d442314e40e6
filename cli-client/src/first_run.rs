//! A conversation on a terminal when no model is configured: what could be used is offered, and written into
//! the configuration file if the person wants it.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use loopd_sdk::Client;
use loopd_sdk::proto::params::model::ModelSource;

use crate::app::App;
use crate::model;
use crate::terminal::sanitize;

/// How many models are shown of a source.
const MOST_MODELS: usize = 20;

/// Offers what could be used; returns the client to go on with, of a new daemon if the file was written.
pub(crate) async fn offer(app: &App, client: Client) -> anyhow::Result<Client> {
    let named = app.options.model.as_deref();
    if !app.terminal.can_ask() || app.options.json || named.is_some() {
        return Ok(client);
    }
    let Ok(chosen) = client.model_choice(None).await else {
        // What is wrong is told by whoever needs the model.
        return Ok(client);
    };
    if model::hint(&chosen, app.variable("LOOPD_MODEL")).is_none() {
        return Ok(client);
    }
    let sources = client.model_sources(None).await?;
    if sources.is_empty() {
        return Ok(client);
    }
    let Some(source) = choose(app, &sources).await else {
        return Ok(client);
    };
    let model = choose_model(app, &client, source).await?;
    let text = text(source, model.as_deref());
    let path = Path::new(&client.config().await?.path).to_owned();
    if path.exists() {
        app.terminal.notice(&format!(
            "{} exists and is not changed; add this to it, and then run loop daemon stop:\n\n{text}",
            path.display()
        ));
        return Ok(client);
    }
    let question = format!("This would be written to {}:\n\n{text}\n", path.display());
    if !confirmed(app, &question).await {
        app.terminal.notice("nothing was written");
        return Ok(client);
    }
    write(&path, &text).with_context(|| format!("{} cannot be written", path.display()))?;
    app.terminal.notice(&format!(
        "wrote {}; to undo it, remove the file",
        path.display()
    ));
    restarted(app, client).await
}

async fn choose<'s>(app: &App, sources: &'s [ModelSource]) -> Option<&'s ModelSource> {
    let mut text = "No model is configured. These could be used:\n\n".to_owned();
    for (number, source) in (1..).zip(sources) {
        let models = match source.models.len() {
            0 => String::new(),
            1 => " (1 model)".to_owned(),
            many => format!(" ({many} models)"),
        };
        text += &format!("  {number}  {}{models}\n", sanitize(&source.found));
    }
    text += "\n  Enter goes on with the built-in `offline`, which only carries out commands.\n";
    let answer = ask(app, &text, "  which one? ").await?;
    let number: usize = answer.parse().ok()?;
    sources.get(number.checked_sub(1)?)
}

/// Returns the model for sessions that name none; `None` leaves the choice to the provider's list.
async fn choose_model(
    app: &App,
    client: &Client,
    source: &ModelSource,
) -> anyhow::Result<Option<String>> {
    let mut models = source.models.clone();
    if models.is_empty() {
        app.terminal
            .notice(&format!("asking {} for its models …", source.name));
        match client.model_sources(Some(source.name.clone())).await {
            Ok(sources) => {
                let mut found = sources.into_iter();
                let found = found.find(|it| it.name == source.name);
                models = found.map(|it| it.models).unwrap_or_default();
            }
            // The person may know the name all the same.
            Err(error) => app.terminal.notice(&sanitize(&format!(
                "{} does not list its models: {error}",
                source.name
            ))),
        }
    }
    if let [only] = models.as_slice() {
        return Ok(Some(only.clone()));
    }
    let mut text = String::new();
    for model in models.iter().take(MOST_MODELS) {
        text += &format!("  {}\n", sanitize(model));
    }
    if models.len() > MOST_MODELS {
        text += &format!(
            "  … and {} more; loop models lists them\n",
            models.len() - MOST_MODELS
        );
    }
    let usual = models.first();
    let prompt = match usual {
        Some(usual) => format!("  the name of the model? [{}] ", sanitize(usual)),
        None => "  the name of the model? ".to_owned(),
    };
    let answer = ask(app, &text, &prompt).await;
    Ok(match answer {
        Some(name) if !name.is_empty() => Some(name),
        Some(_) | None => usual.cloned(),
    })
}

/// Returns what the file says.
fn text(source: &ModelSource, model: Option<&str>) -> String {
    match model {
        None => source.config.clone(),
        Some(model) => {
            let name = serde_json::Value::from(format!("{}/{model}", source.name));
            format!("model = {name}\n\n{}", source.config)
        }
    }
}

/// Writes a file that does not exist.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Lets the next daemon read the file, unless that would disturb somebody.
async fn restarted(app: &App, client: Client) -> anyhow::Result<Client> {
    let status = client.daemon_status().await?;
    // Our own connection does not count.
    if status.work > 0 || status.connections > 1 {
        app.terminal.notice(
            "the daemon is in use and reads the file when it starts next; to use it now: loop daemon stop, and loop \
             again",
        );
        return Ok(client);
    }
    client.stop_daemon().await?;
    app.connect().await
}

async fn confirmed(app: &App, question: &str) -> bool {
    let answer = ask(app, question, "  write it? [y/n] ").await;
    matches!(answer.as_deref(), Some("y" | "yes"))
}

/// Asks for a line; `None` if there is no answer.
async fn ask(app: &App, text: &str, prompt: &str) -> Option<String> {
    let answer = tokio::select! {
        answer = app.terminal.ask(text, prompt) => answer,
        () = app.terminal.interrupted() => None,
    };
    answer.map(|line| line.trim().to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_model_with_its_provider_and_is_never_overwritten() {
        let source = ModelSource {
            name: "ollama".to_owned(),
            found: String::new(),
            variable: None,
            base_url: String::new(),
            models: Vec::new(),
            config: "[provider.ollama]\n".to_owned(),
        };
        assert_eq!(
            text(&source, Some("qwen\"3")),
            "model = \"ollama/qwen\\\"3\"\n\n[provider.ollama]\n"
        );
        assert_eq!(text(&source, None), "[provider.ollama]\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    }
}
