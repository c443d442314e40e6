//! `loop models`: the models that a new session can use.

use loopd_sdk::proto::params::model::Model;

use crate::amount::tokens;
use crate::app::App;
use crate::model;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

pub(crate) async fn run(app: &App) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let listed = client.models().await;
    let chosen = client.model_choice(app.options.model.clone()).await;
    let listed = listed?;
    let chosen = chosen?;
    let used = |model: &Model| {
        let of_provider = format!("{}/{}", chosen.provider, model.id);
        model.id == chosen.model || of_provider == chosen.model
    };
    for model in &listed {
        let line = if app.options.json {
            let mut line = serde_json::to_value(model)?;
            if let Some(members) = line.as_object_mut() {
                members.insert("usual".to_owned(), used(model).into());
            }
            line.to_string()
        } else {
            row(model, used(model))
        };
        app.terminal.print(&(line + "\n"))?;
    }
    let named = app.options.model.as_deref();
    if !app.options.json
        && let Some(hint) = model::hint(&chosen, named.or(app.variable("LOOPD_MODEL")))
    {
        let hint = app.terminal.styled(Style::Dim, &format!("loop: {hint}"));
        app.terminal.notice(&hint);
        for source in client.model_sources(None).await? {
            let line = format!(
                "could be used: {} (loop, without a prompt, offers it)",
                source.found
            );
            app.terminal.notice(&sanitize(&line));
        }
    }
    client.close().await;
    Ok(Outcome::Done)
}

fn row(model: &Model, used: bool) -> String {
    let mark = if used { '*' } else { ' ' };
    let limits = &model.capabilities.limits;
    let mut facts = vec![format!(
        "{} tokens",
        tokens(limits.max_context_window_tokens)
    )];
    if model.capabilities.supports.vision {
        facts.push("images".to_owned());
    }
    if model.capabilities.supports.reasoning_effort {
        facts.push("reasoning effort".to_owned());
    }
    sanitize(&format!("{mark} {:<40}  {}", model.id, facts.join(", ")))
}
