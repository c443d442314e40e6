//! `loop resume`: continues a session.

use crate::app::{App, find_session};
use crate::outcome::Outcome;

pub(crate) async fn run(app: &App, id: &str, prompt: Option<String>) -> anyhow::Result<Outcome> {
    let prompt = super::prompt_or_stdin(app, prompt)?;
    super::prompt::refuse_limits(app, prompt.as_deref())?;
    let client = app.connect().await?;
    let id = find_session(&client, id).await?;
    let session = app.resume(&client, id).await?;
    super::prompt::talk(app, session, prompt, super::prompt::Shows::Everything).await
}
