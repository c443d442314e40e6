//! `loop rewind`: lists where a session can go back to, and goes back there.

use anyhow::bail;
use loopd_sdk::proto::event::rewind::RewindMode;
use loopd_sdk::proto::id::EventId;
use loopd_sdk::proto::params::rewind::{
    FileChangeType, LoopdRewound, OnConflict, RewindOutcome, RewindPoint, UnavailableReason,
};
use loopd_sdk::{Rewind, Session};

use super::queue::join;
use crate::app::App;
use crate::outcome::{Outcome, WrongUsage};
use crate::terminal::sanitize;

/// How many characters of a message are shown.
const TEXT_CHARS: usize = 80;

/// What the command line asks for.
pub(crate) struct Wanted {
    pub(crate) to: Option<String>,
    pub(crate) mode: Option<RewindMode>,
    pub(crate) undo: bool,
    pub(crate) partly: bool,
    pub(crate) dry_run: bool,
}

/// Returns what is taken back, if only a part is.
pub(crate) fn mode(files: bool, conversation: bool) -> Option<RewindMode> {
    match (files, conversation) {
        (true, _) => Some(RewindMode::Files),
        (false, true) => Some(RewindMode::Conversation),
        (false, false) => None,
    }
}

pub(crate) async fn run(
    app: &App,
    session: Option<&str>,
    wanted: Wanted,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = join(app, &client, session).await?;
    let done = act(app, &session, wanted).await;
    drop(session);
    client.close().await;
    done
}

async fn act(app: &App, session: &Session, wanted: Wanted) -> anyhow::Result<Outcome> {
    if wanted.to.is_none() && !wanted.undo {
        if wanted.dry_run || wanted.partly || wanted.mode.is_some() {
            return Err(WrongUsage::error(
                "say where to go back to with --to POINT, or --undo; loop rewind lists the points",
            ));
        }
        return list(app, session).await;
    }
    let to = match &wanted.to {
        Some(meant) => Some(find(&points(session).await?, meant)?),
        None => None,
    };
    let done = session
        .rewind(Rewind {
            to,
            mode: wanted.mode,
            on_conflict: if wanted.partly {
                OnConflict::Skip
            } else {
                OnConflict::Refuse
            },
            dry_run: wanted.dry_run,
        })
        .await?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&done)? + "\n"))?;
    } else {
        let is_undo = wanted.undo && done.outcome == RewindOutcome::Success && !done.dry_run;
        show(app, &done)?;
        if let Some(warning) = &done.warning {
            app.terminal.notice(&one_line(warning));
        }
        app.terminal.notice(&if is_undo {
            format!("the rewind was undone; {} files changed", done.files.len())
        } else {
            summary(&done)
        });
    }
    Ok(match done.outcome {
        RewindOutcome::Success => Outcome::Done,
        _ => Outcome::Failed,
    })
}

/// Returns the points, the oldest first.
async fn points(session: &Session) -> anyhow::Result<Vec<RewindPoint>> {
    let listed = session.rewind_points().await?;
    if let Some(UnavailableReason::SessionBusy) = listed.unavailable_reason {
        let work = listed.work.unwrap_or_else(|| "work".to_owned());
        bail!(
            "the session has to end this first: {}; wait for it, or stop it with loop abort and loop tasks stop --all",
            one_line(&work)
        );
    }
    Ok(listed.points)
}

async fn list(app: &App, session: &Session) -> anyhow::Result<Outcome> {
    let points = points(session).await?;
    if app.options.json {
        for point in &points {
            app.terminal
                .print(&(serde_json::to_string(point)? + "\n"))?;
        }
        return Ok(Outcome::Done);
    }
    if points.is_empty() {
        app.terminal.notice("there is nothing to go back to");
    }
    for (number, point) in points.iter().enumerate().rev() {
        let files = match (point.file_count, point.can_restore_files) {
            (0, _) => "no files".to_owned(),
            (1, true) => "1 file".to_owned(),
            (count, true) => format!("{count} files"),
            (count, false) => format!("{count} files, not kept"),
        };
        let text = one_line(&point.user_message);
        let text: String = text.chars().take(TEXT_CHARS).collect();
        app.terminal
            .print(&format!("{:>3}  {files:<10}  {text}\n", number + 1))?;
    }
    Ok(Outcome::Done)
}

/// Finds a point by its number, from 1 on, or by its id or a beginning of it.
fn find(points: &[RewindPoint], meant: &str) -> anyhow::Result<EventId> {
    let number = meant.parse::<usize>().ok();
    let by_number = number.and_then(|number| points.get(number.checked_sub(1)?));
    if let Some(point) = by_number {
        return Ok(point.event_id.clone());
    }
    let fits = |point: &&RewindPoint| point.event_id.as_str().starts_with(meant);
    let fitting: Vec<&RewindPoint> = points.iter().filter(fits).collect();
    match fitting.as_slice() {
        [point] => Ok(point.event_id.clone()),
        [] => bail!("there is no point `{meant}`; see loop rewind"),
        several => bail!(
            "{} points begin with `{meant}`; give more of the id",
            several.len()
        ),
    }
}

/// Prints what was done, or would be.
fn show(app: &App, done: &LoopdRewound) -> anyhow::Result<()> {
    for file in &done.files {
        let what = match file.change_type {
            FileChangeType::Created => "remove",
            FileChangeType::Deleted => "bring back",
            FileChangeType::Modified => "restore",
        };
        app.terminal
            .print(&format!("{what:<10}  {}\n", one_line(&file.path)))?;
    }
    for left in &done.skipped {
        let line = format!("left alone  {}: {}", left.path, left.why);
        app.terminal.print(&(one_line(&line) + "\n"))?;
    }
    Ok(())
}

/// Says in one line what came of it.
fn summary(done: &LoopdRewound) -> String {
    let events = done.events_removed;
    let files = done.files.len();
    match done.outcome {
        RewindOutcome::Success if done.dry_run => {
            format!("this would take back {events} events and {files} files; nothing was touched")
        }
        RewindOutcome::Success => {
            format!("{events} events and {files} files were taken back; loop rewind --undo undoes it")
        }
        RewindOutcome::Conflicts if done.dry_run => {
            "this would touch nothing, because of the files above; --partly would restore the others".to_owned()
        }
        RewindOutcome::Conflicts => {
            "nothing was touched, because of the files above; --partly restores the others".to_owned()
        }
        RewindOutcome::FileChangeTrackingDisabled => {
            "no earlier versions of files are kept for this point; --conversation takes back the conversation alone".to_owned()
        }
        RewindOutcome::SessionBusy
        | RewindOutcome::FilesRolledBack
        | RewindOutcome::RollbackIncomplete
        | RewindOutcome::TruncationFailed => sanitize(done.error.as_deref().unwrap_or("the rewind failed")),
    }
}

/// Shows a text in one line. A file may have a line break in its name.
fn one_line(text: &str) -> String {
    sanitize(text).replace('\n', " ⏎ ")
}
