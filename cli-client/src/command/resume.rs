//! `loop resume`: goes on with a session.

use crate::open::{Desk, find};
use crate::outcome::Outcome;

pub(crate) async fn run(desk: &Desk, id: &str, prompt: Option<String>) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let id = find(&client, id).await?;
    let session = desk.resume(&client, id).await?;
    let prompt = super::wanted(prompt)?;
    super::prompt::talk(desk, session, prompt).await
}
