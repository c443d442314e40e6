//! `loop queue`: shows and changes what waits in a session. `loop abort`: stops what runs there.

use anyhow::bail;
use loopd_sdk::proto::method::CommandsEnqueue;
use loopd_sdk::proto::params::queue::{EnqueueParams, Pending, PendingItem};
use loopd_sdk::{Client, KeepsWaiting, MessageId, Session, SessionConfig};

use crate::app::{App, find_session};
use crate::args::QueueVerb;
use crate::outcome::{Outcome, WrongUsage};
use crate::slash::{self, Queueable};
use crate::terminal::sanitize;

/// How many characters of a message are shown.
const TEXT_CHARS: usize = 100;
/// How many characters of the name of its sender are shown.
const SENDER_CHARS: usize = 24;

pub(crate) async fn run(
    app: &App,
    session: Option<&str>,
    what: Option<QueueVerb>,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = join(app, &client, session).await?;
    let done = match what {
        None => list(app, &session).await,
        Some(what) => change(app, &session, what).await,
    };
    drop(session);
    client.close().await;
    done.map(|()| Outcome::Done)
}

/// Stops the running turn of a session, whoever started it.
pub(crate) async fn abort(app: &App, session: Option<&str>) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = join(app, &client, session).await?;
    // Nothing of this client waits there, so that the queue stays as it is.
    let stopped = session.interrupt(None, KeepsWaiting::Yes).await;
    let id = session.id().clone();
    drop(session);
    client.close().await;
    app.terminal.notice(&if stopped?.interrupted {
        format!("what ran in {id} was told to stop; what waits there runs next")
    } else {
        format!(
            "nothing was stopped: no turn runs in {id}; tasks in the background are stopped with \
             loop tasks stop"
        )
    });
    Ok(Outcome::Done)
}

/// Joins a session as an observer that answers nothing.
pub(super) async fn join(
    app: &App,
    client: &Client,
    session: Option<&str>,
) -> anyhow::Result<Session> {
    let id = match session {
        Some(beginning) => find_session(client, beginning).await?,
        None => app.last_here(client).await?,
    };
    let config = SessionConfig::new()
        .client_name("loop")
        .leave_permissions_open();
    Ok(client.watch(id, config).await?)
}

async fn list(app: &App, session: &Session) -> anyhow::Result<()> {
    let pending = session.pending_items().await?;
    if app.options.json {
        for item in waiting(&pending) {
            app.terminal.print(&(serde_json::to_string(item)? + "\n"))?;
        }
        return Ok(());
    }
    if waiting(&pending).next().is_none() {
        app.terminal.notice("nothing waits");
    }
    for item in &pending.steering_items {
        app.terminal.print(&line("now", item))?;
    }
    for (position, item) in pending.items.iter().enumerate() {
        app.terminal
            .print(&line(&(position + 1).to_string(), item))?;
    }
    Ok(())
}

/// Returns everything that waits: first what the running turn takes next, then the queue.
fn waiting(pending: &Pending) -> impl Iterator<Item = &PendingItem> {
    pending.steering_items.iter().chain(&pending.items)
}

/// Describes an item that waits: its place, its id, who sent it, and its text.
fn line(place: &str, item: &PendingItem) -> String {
    let text: String = sanitize(&item.display_text)
        .replace('\n', " ⏎ ")
        .chars()
        .take(TEXT_CHARS)
        .collect();
    let sender = item
        .sent_by
        .as_ref()
        .and_then(|sender| sender.name.as_deref());
    let sender: String = sanitize(sender.unwrap_or("-"))
        .chars()
        .take(SENDER_CHARS)
        .collect();
    format!("{place:>3}  {}  {sender}  {text}\n", item.id)
}

async fn change(app: &App, session: &Session, what: QueueVerb) -> anyhow::Result<()> {
    let pending = session.pending_items().await?;
    match what {
        QueueVerb::List => list(app, session).await?,
        QueueVerb::Move { item, to } => {
            session
                .move_item(find(&pending, &item)?, from_one(to)?)
                .await?;
        }
        QueueVerb::Edit { item, text } => {
            let id = find(&pending, &item)?;
            let text = match slash::queueable(session, &text).await? {
                Queueable::Message(text) => text,
                Queueable::Command(command) => bail!(
                    "a message that waits cannot become the command {command}. Remove it and queue the command with \
                     loop queue insert '{command}', or write two slashes to send the text as a message"
                ),
            };
            session.edit_item(id, text).await?;
        }
        QueueVerb::Insert { text, at } => match (slash::queueable(session, &text).await?, at) {
            (Queueable::Message(text), at) => {
                let at = at.map(from_one).transpose()?;
                let at = at.unwrap_or(pending.items.len());
                let id = session.insert_item(text, at).await?;
                app.terminal.print(&format!("{id}\n"))?;
            }
            (Queueable::Command(command), None) => {
                let params = EnqueueParams {
                    session_id: session.id().clone(),
                    command,
                    display_text: None,
                };
                session.call::<CommandsEnqueue>(&params).await?;
            }
            (Queueable::Command(command), Some(_)) => {
                return Err(WrongUsage::error(format!(
                    "the command {command} can only be queued at the end; leave out --at, then move it with loop \
                     queue move"
                )));
            }
        },
        QueueVerb::Remove { item } => {
            if !session.remove_item(find(&pending, &item)?).await? {
                bail!("it does not wait any more");
            }
        }
        QueueVerb::SendNow { item } => {
            if !session.send_item_now(find(&pending, &item)?).await? {
                app.terminal
                    .notice("nothing was running, so it goes first and starts now");
            }
        }
        QueueVerb::Withdraw { item } => {
            let id = find(&pending, &item)?;
            let item = waiting(&pending).find(|it| it.id == *id);
            if item.is_some_and(|item| item.is_shortened) {
                bail!("its text is too long to be compared; remove it with loop queue remove {id}");
            }
            let text = item.map(|item| item.display_text.clone());
            if !session.withdraw(id, text.unwrap_or_default()).await? {
                bail!("it was not taken back: its text has changed, or a model may have read it");
            }
        }
        QueueVerb::Clear => {
            session.clear_queue().await?;
            let removed = waiting(&pending).count();
            app.terminal.notice(&match removed {
                0 => "nothing waited".to_owned(),
                1 => "1 item was removed".to_owned(),
                several => format!("{several} items were removed"),
            });
        }
    }
    Ok(())
}

fn from_one(position: usize) -> anyhow::Result<usize> {
    match position.checked_sub(1) {
        Some(position) => Ok(position),
        None => Err(WrongUsage::error("positions are counted from 1")),
    }
}

/// Finds an item by its position in the list, from 1 on, or by its id or a beginning of it.
fn find<'a>(pending: &'a Pending, meant: &str) -> anyhow::Result<&'a MessageId> {
    let by_position = meant
        .parse::<usize>()
        .ok()
        .and_then(|position| pending.items.get(position.checked_sub(1)?));
    if let Some(item) = by_position {
        return Ok(&item.id);
    }
    let fits = |item: &&PendingItem| item.id.as_str().starts_with(meant);
    let fitting: Vec<&PendingItem> = waiting(pending).filter(fits).collect();
    match fitting.as_slice() {
        [item] => Ok(&item.id),
        [] => bail!("nothing that waits is `{meant}`; see loop queue"),
        several => bail!(
            "{} items begin with `{meant}`; give more of the id",
            several.len()
        ),
    }
}
