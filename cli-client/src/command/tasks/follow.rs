//! Follows the tasks of sessions: looks again when something happened, shows what it sees, and ends
//! when nothing runs any more.

use std::time::Duration;

use loopd_sdk::{Body, Ephemeral, Event};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Seen, runs};
use crate::open::Desk;
use crate::outcome::Outcome;

/// How long what was shown stays at least.
const STAYS: Duration = Duration::from_millis(200);
/// How often the times of what runs are shown anew.
const TICK: Duration = Duration::from_secs(1);

/// What becomes of each look.
pub(super) trait View {
    fn show(&mut self, desk: &Desk, seen: &[Seen]) -> anyhow::Result<()>;
}

pub(super) async fn run(
    desk: &Desk,
    mut seen: Vec<Seen>,
    mut view: impl View,
) -> anyhow::Result<Outcome> {
    let (happened, mut happenings) = watch::channel(());
    let mut listening = JoinSet::new();
    for seen in &seen {
        let (mut events, happened) = (seen.session.events(), happened.clone());
        listening.spawn(async move {
            // At its end, who looks again learns why.
            while let Some(event) = events.next().await {
                if matters(&event) {
                    happened.send_replace(());
                }
            }
            happened.send_replace(());
        });
    }
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    let mut pause = Duration::ZERO;
    loop {
        let next = async {
            // The first time at once: since we came, something may have happened unheard.
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
                // The sender lives as long as this function.
                tokio::time::timeout(TICK, happenings.changed()).await.ok();
            }
            look(&mut seen).await
        };
        tokio::select! {
            // First, so that Ctrl-C is heard before anything is shown.
            biased;
            _ = &mut stop => break,
            looked = next => looked?,
        }
        view.show(desk, &seen)?;
        if !seen.iter().any(|seen| runs(&seen.tasks)) {
            break;
        }
        pause = STAYS;
    }
    Ok(Outcome::Done)
}

async fn look(seen: &mut [Seen]) -> anyhow::Result<()> {
    for seen in seen {
        match seen.session.tasks().await {
            Ok(tasks) => seen.tasks = tasks,
            // Its tasks ended with it.
            Err(error) if error.is_session_not_found() => seen.tasks.clear(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether the tasks may look otherwise after this event.
fn matters(event: &Event) -> bool {
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
