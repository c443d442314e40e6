//! Sends one short message to the model: client, daemon, provider and key are all in its way.

use std::time::{Duration, Instant};

use loopd_sdk::{Client, Session, SessionConfig, SessionLimits, Wait};

use super::Finding::{self, Fail, Ok as Fine};
use crate::amount::took;
use crate::app::App;
use crate::model::OFFLINE;
use crate::terminal::sanitize;

const PROMPT: &str = "Answer with the one word: ready";
/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many characters of the answer are shown.
const ANSWER_CHARS: usize = 60;

pub(super) async fn check(app: &App) -> Finding {
    let client = match app.connect().await {
        Ok(client) => client,
        Err(error) => return Fail(format!("no daemon could be asked: {error:#}")),
    };
    let finding = ask(app, &client).await;
    client.close().await;
    finding
}

async fn ask(app: &App, client: &Client) -> Finding {
    let mut config = SessionConfig::new().client_name("loop doctor");
    config.options.model.clone_from(&app.options.model);
    // No tools, so that nothing but the answer can come of it; and no more than this one call.
    config.options.available_tools = Some(Vec::new());
    let config = config.limits(SessionLimits {
        max_turns: Some(1),
        ..SessionLimits::default()
    });
    let session = match client.create(config).await {
        Ok(session) => session,
        Err(error) => return Fail(sanitize(&error.to_string())),
    };
    let finding = answer(&session).await;
    let id = session.id().clone();
    drop(session);
    // Nobody wants to find it in the list of sessions.
    match client.delete_sessions(vec![id.clone()]).await {
        Ok(freed) if freed.freed_bytes.contains_key(&id) => finding,
        Ok(_) | Err(_) => match finding {
            Fine(text) => {
                Finding::Warn(format!("{text}; the session of the request is left: {id}"))
            }
            other => other,
        },
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a terminal shows how long an answer took"
)]
async fn answer(session: &Session) -> Finding {
    let began = Instant::now();
    let asked = session.send_and_wait_for(PROMPT, Wait::Foreground);
    let reply = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => return Fail(sanitize(&error.to_string())),
        Err(_) => {
            return Fail(format!(
                "the model did not answer within {} seconds; see loop daemon logs",
                PATIENCE.as_secs()
            ));
        }
    };
    let text: String = reply
        .text
        .replace('\n', " ")
        .chars()
        .take(ANSWER_CHARS)
        .collect();
    let model = session
        .usage()
        .await
        .ok()
        .and_then(|usage| usage.current_model);
    let model = model.unwrap_or_else(|| OFFLINE.to_owned());
    Fine(sanitize(&format!(
        "{model} answered in {}: {text}",
        took(began.elapsed())
    )))
}
