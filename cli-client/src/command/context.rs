//! `loop context`: what takes how much of the context of a session, and what its model does not read any
//! more.

use loopd_sdk::proto::messages::{Message, MessageRole, PartContent};
use loopd_sdk::{Invoked, Session};

use super::queue::join;
use crate::app::App;
use crate::args::ContextOptions;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How many characters of a message are shown.
const TEXT_CHARS: usize = 100;

pub(crate) async fn run(app: &App, wanted: &ContextOptions) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = join(app, &client, wanted.session.as_deref()).await?;
    let shown = if wanted.dropped {
        list_dropped(app, &session).await
    } else {
        show(app, &session).await
    };
    drop(session);
    client.close().await;
    shown.map(|()| Outcome::Done)
}

async fn show(app: &App, session: &Session) -> anyhow::Result<()> {
    if app.options.json {
        let line = serde_json::to_string(&session.context().await?)? + "\n";
        return Ok(app.terminal.print(&line)?);
    }
    match session.invoke_command("context", "").await? {
        Invoked::Text { text, .. } => app.terminal.print(&(sanitize(&text) + "\n"))?,
        // The daemon answers this command with a text.
        Invoked::Completed { .. } | Invoked::AgentPrompt { .. } => {}
    }
    Ok(())
}

async fn list_dropped(app: &App, session: &Session) -> anyhow::Result<()> {
    let mut cursor = None;
    let mut count = 0;
    loop {
        let page = session.dropped_messages(cursor).await?;
        for message in &page.messages {
            count += 1;
            let line = if app.options.json {
                serde_json::to_string(message)?
            } else {
                described(message)
            };
            app.terminal.print(&(line + "\n"))?;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if !app.options.json {
        app.terminal.notice(&match count {
            0 => "nothing was left out: the model reads the whole conversation".to_owned(),
            count => format!(
                "the model reads a summary in the place of these {count} messages; loop events {} shows them in full",
                session.id()
            ),
        });
    }
    Ok(())
}

/// Describes a message in one line.
fn described(message: &Message) -> String {
    let role = match message.role {
        MessageRole::User => "user",
        MessageRole::Assistant => "model",
        MessageRole::Notice => "notice",
    };
    let parts: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| described_part(&part.content))
        .collect();
    let text = parts.join("; ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = text.chars().take(TEXT_CHARS).collect();
    let time = message.created_at.get(..19).unwrap_or(&message.created_at);
    sanitize(&format!("{time}  {role:<6}  {shown}"))
}

fn described_part(content: &PartContent) -> Option<String> {
    match content {
        PartContent::Text { text } => Some(text.clone()),
        PartContent::Tool(tool) => {
            let size = tool.output.as_deref().map_or(0, str::len);
            Some(format!("{} ({size} bytes)", tool.tool))
        }
        PartContent::File { name, .. } => Some(format!("file {name}")),
        PartContent::Compaction { .. } => Some("compaction".to_owned()),
        PartContent::Cleared { .. } => Some("cleared".to_owned()),
        PartContent::Subtask(_) => Some("sub-agent".to_owned()),
        PartContent::Error { message, .. } => Some(message.clone()),
        PartContent::Reasoning { .. } | PartContent::Retry { .. } | PartContent::Step { .. } => {
            None
        }
    }
}
