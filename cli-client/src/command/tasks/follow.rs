//! Follows the tasks of sessions: reads and shows them again after each change, and ends when no
//! task is running.

use std::time::Duration;

use loopd_sdk::{Body, Ephemeral, Event};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{WatchedSession, any_running};
use crate::app::App;
use crate::outcome::Outcome;

/// The minimum time between two updates.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// How often the times of running tasks are updated.
const TICK: Duration = Duration::from_secs(1);

/// Shows the tasks after each update.
pub(super) trait View {
    fn show(&mut self, app: &App, watched: &[WatchedSession]) -> anyhow::Result<()>;
}

pub(super) async fn run(
    app: &App,
    mut watched: Vec<WatchedSession>,
    mut view: impl View,
) -> anyhow::Result<Outcome> {
    let (changed, mut updates) = watch::channel(());
    let mut listening = JoinSet::new();
    for watched in &watched {
        let (mut events, changed) = (watched.session.events(), changed.clone());
        listening.spawn(async move {
            // The refresh after the end of the stream returns the error.
            while let Some(event) = events.next().await {
                if affects_tasks(&event) {
                    changed.send_replace(());
                }
            }
            changed.send_replace(());
        });
    }
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    let mut pause = Duration::ZERO;
    loop {
        let next = async {
            // The first refresh is at once: something may have changed before the streams opened.
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
                // The sender lives as long as this function.
                tokio::time::timeout(TICK, updates.changed()).await.ok();
            }
            refresh(&mut watched).await
        };
        tokio::select! {
            // First, so that nothing is shown after Ctrl-C.
            biased;
            _ = &mut stop => break,
            looked = next => looked?,
        }
        view.show(app, &watched)?;
        if !watched.iter().any(|watched| any_running(&watched.tasks)) {
            break;
        }
        pause = MIN_INTERVAL;
    }
    Ok(Outcome::Done)
}

async fn refresh(watched: &mut [WatchedSession]) -> anyhow::Result<()> {
    for watched in watched {
        match watched.session.tasks().await {
            Ok(tasks) => watched.tasks = tasks,
            // The session has ended, and its tasks with it.
            Err(error) if error.is_session_not_found() => watched.tasks.clear(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns whether the event may have changed the tasks.
fn affects_tasks(event: &Event) -> bool {
    match &event.body {
        Body::Ephemeral(Ephemeral::BackgroundTasksChanged(_)) => true,
        Body::Ephemeral(fragment) if fragment.is_delta() => false,
        Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {
            event.head.agent_id.is_some()
                || event.body.kind().starts_with("tool.")
                || event.body.kind() == "session.idle"
        }
    }
}
