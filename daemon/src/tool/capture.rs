//! Earlier versions of the files that tools change, so that a session can be taken back.
//!
//! File tools say what they are about to write: the content before and after is stored, and a record
//! says what changed in which turn. What commands change is found by comparing the workspace with a
//! bounded copy of it (`baseline`). The copy is made beside the first model call of a run and
//! compared beside the first one after a command, so that neither the model nor a tool waits for it.
//! `plan` says what going back would do, `restore` does it.
//!
//! All of it is in the session's own folder and belongs to the session at the top: its sub-agents
//! share it. A change that somebody makes at the same moment as a command cannot be told apart from
//! that of the command.

mod baseline;
mod bounds;
mod journal;
mod lines;
mod objects;
mod plan;
mod prune;
mod restore;
mod session_diff;
mod state;
mod turns;
mod unread;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use loopd_proto::id::Seq;

use baseline::{Baseline, Differences, Extent, Overlay};
use journal::{Journal, Missed, Record, Source};
use objects::Objects;

use super::disk::DiskError;

pub use bounds::{Bounds, RewindSettings};
pub use plan::{PlannedChange, PlannedFile, RewindPreview, SkipReason, SkippedFile};
pub use restore::{RestoreFailure, RestoreReport};
pub use session_diff::SessionChange;
pub use state::NotCaptured;
pub use turns::{TrackedTurns, TurnChanges};
pub use unread::ReadRules;

/// How long a command that may change files waits for the copy of the workspace before it runs all the
/// same, and how much of that nobody is told of.
///
/// A model takes longer to answer than most workspaces take to be copied. Where it does not, a command
/// that comes late is better than files that nobody can bring back. What is not copied by then is copied
/// later, and what the command changes there is named and not restored.
const COPY_WAIT: Duration = Duration::from_secs(2);
const SILENT_WAIT: Duration = Duration::from_millis(100);

/// How long the end of a session waits for work on the copy.
const END_WAIT: Duration = Duration::from_secs(10);

/// Tells people something about the captured files.
pub type Notify = Box<dyn Fn(String) + Send + Sync>;

/// The earlier versions of files of one tree of sessions; cheap to clone.
#[derive(Clone, Default)]
pub struct Captures {
    /// `None` if nothing is captured.
    inner: Option<Arc<Inner>>,
    /// A folder that is not captured: the worktree of the sub-agent that has this handle.
    left_out: Option<PathBuf>,
}

impl std::fmt::Debug for Captures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Captures")
            .field("on", &self.inner.is_some())
            .finish_non_exhaustive()
    }
}

struct Inner {
    /// The folder of the session for this.
    folder: PathBuf,
    home: PathBuf,
    bounds: Bounds,
    objects: Objects,
    journal: Mutex<Journal>,
    overlay: Mutex<Overlay>,
    baseline: Baseline,
    /// The position of the user message whose turn it is.
    turn: AtomicU64,
    /// The turn of commands that may have changed files since the last comparison.
    commands_ran: Mutex<Option<Seq>>,
    /// Whether the copy of an earlier daemon was looked at.
    looked_back: AtomicBool,
    /// Work on the copy: one at a time.
    jobs: Arc<Semaphore>,
    /// Set if a command did not wait any longer for the copy, which ends where it is then. Work on the
    /// copy begins with it unset.
    overrun: AtomicBool,
    /// How many bytes the stored contents take; `None` until they are counted.
    bytes: Mutex<Option<u64>>,
    notify: Notify,
    /// What was told already.
    told: Mutex<Vec<&'static str>>,
}

/// Where the session works.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub cwd: PathBuf,
    /// The home of the user, which is never copied.
    pub user_home: Option<PathBuf>,
    /// What rules keep from being read, which is not copied either.
    pub unread: ReadRules,
}

impl Workspace {
    /// Returns the folder to copy; `None` if it is too much.
    fn root(&self) -> Option<PathBuf> {
        let root = self.cwd.canonicalize().ok()?;
        let home = self.user_home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let holds_home = home.is_some_and(|home| home.starts_with(&root));
        (!holds_home && root.parent().is_some()).then_some(root)
    }
}

impl Captures {
    /// Captures nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Captures into a folder of the session.
    pub fn new(session_folder: &Path, home: &Path, bounds: Bounds, notify: Notify) -> Self {
        // Files of ours are opened without following links.
        let home_now = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let below = session_folder.strip_prefix(home);
        let folder = below.map_or_else(|_| session_folder.to_owned(), |below| home_now.join(below));
        let folder = folder.join("rewind");
        Self {
            inner: Some(Arc::new(Inner {
                objects: Objects::new(folder.join("objects")),
                journal: Mutex::new(Journal::new(folder.join("changes.jsonl"))),
                overlay: Mutex::default(),
                baseline: Baseline::new(folder.join("workspace"), home_now.clone(), bounds),
                turn: AtomicU64::new(0),
                commands_ran: Mutex::default(),
                looked_back: AtomicBool::new(false),
                jobs: Arc::new(Semaphore::new(1)),
                overrun: AtomicBool::new(false),
                bytes: Mutex::default(),
                notify,
                told: Mutex::default(),
                folder,
                home: home_now,
                bounds,
            })),
            left_out: None,
        }
    }

    /// Returns a handle for a sub-agent with a worktree of its own, which stays its own.
    #[must_use]
    pub fn without(&self, worktree: PathBuf) -> Self {
        Self {
            inner: self.inner.clone(),
            left_out: Some(worktree),
        }
    }

    pub fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// Says which user message the session at the top works on.
    pub fn turn_began(&self, position: Seq) {
        if let Some(inner) = &self.inner {
            inner.turn.store(position.0, Ordering::Release);
        }
    }

    /// Waits for the copy of the workspace before a command that may change files, and notes that one
    /// runs. The wait is bounded; `waits` is called if it is not over in a moment.
    pub async fn command_starts(&self, waits: impl FnOnce()) {
        let Some(inner) = &self.inner else {
            return;
        };
        let free = async || inner.jobs.acquire().await.is_ok();
        if inner.jobs.try_acquire().is_err()
            && tokio::time::timeout(SILENT_WAIT, free()).await.is_err()
        {
            waits();
            let rest = COPY_WAIT.saturating_sub(SILENT_WAIT);
            if tokio::time::timeout(rest, free()).await.is_err() {
                // Before as well as after: work that begins at this moment sees one of them.
                self.touched();
                inner.overrun.store(true, Ordering::Release);
            }
        }
        self.touched();
    }

    /// Notes that something outside of the file tools may have changed files.
    pub fn touched(&self) {
        let Some(inner) = &self.inner else {
            return;
        };
        let is_new = inner.commands_ran.lock().replace(inner.turn()).is_none();
        if is_new {
            let inner = inner.clone();
            // Beside the command: it need not wait for a note to the next daemon.
            tokio::task::spawn_blocking(move || inner.note_commands());
        }
    }

    /// Returns work to do beside a model call, if there is any: copying the workspace for the first
    /// call of a run, comparing it after commands.
    pub fn beside_model_call(
        &self,
        call: ModelCallPlace,
        workspace: impl FnOnce() -> Workspace,
    ) -> Option<BoxFuture<'static, ()>> {
        let inner = self.inner.as_ref()?;
        let ran = inner.commands_ran.lock().is_some();
        let first = call.is_first_of_run && !call.is_subagent;
        if !ran && !first {
            return None;
        }
        let inner = inner.clone();
        let workspace = workspace();
        Some(inner.refresh(workspace, call.commands_run).boxed())
    }

    /// Waits for a comparison that is under way, and compares the workspace if commands may have
    /// changed it since.
    pub async fn settle(&self, workspace: Workspace) {
        let Some(inner) = &self.inner else {
            return;
        };
        let Ok(permit) = inner.jobs.clone().acquire_owned().await else {
            return;
        };
        let first_look = !inner.looked_back.load(Ordering::Acquire);
        if inner.commands_ran.lock().is_some() || first_look {
            inner.clone().work(workspace, false, permit).await;
        }
    }

    /// Waits for work on the copy and removes the copy, unless the next daemon has to compare it.
    pub async fn close(&self) {
        let Some(inner) = self.inner.clone() else {
            return;
        };
        inner.overrun.store(true, Ordering::Release);
        let jobs = inner.jobs.clone();
        let Ok(Ok(permit)) = tokio::time::timeout(END_WAIT, jobs.acquire_owned()).await else {
            tracing::warn!("the copy of a workspace was still being made when its session ended");
            return;
        };
        let removed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            if inner.commands_ran.lock().is_none() && inner.baseline.marked().is_none() {
                inner.baseline.remove();
            }
        });
        if let Err(error) = removed.await {
            tracing::error!(%error, "the copy of a workspace could not be removed");
        }
    }
}

/// Which model call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCallPlace {
    pub is_first_of_run: bool,
    pub is_subagent: bool,
    /// Whether commands go on in the background.
    pub commands_run: bool,
}

impl Inner {
    fn turn(&self) -> Seq {
        Seq(self.turn.load(Ordering::Acquire))
    }

    /// Notes on disk that commands ran, unless they were compared meanwhile.
    fn note_commands(&self) {
        let ran = self.commands_ran.lock();
        if let Some(turn) = *ran
            && let Err(error) = self.baseline.mark(turn)
        {
            tracing::warn!(%error, "it could not be noted that commands ran");
        }
    }

    /// Tells people something once.
    fn tell_once(&self, text: &'static str) {
        let mut told = self.told.lock();
        if !told.contains(&text) {
            told.push(text);
            (self.notify)(text.to_owned());
        }
    }

    /// Copies or compares the workspace, on a thread where it delays nobody.
    async fn refresh(self: Arc<Self>, workspace: Workspace, commands_run: bool) {
        let Ok(permit) = self.jobs.clone().acquire_owned().await else {
            return;
        };
        self.work(workspace, commands_run, permit).await;
    }

    async fn work(
        self: Arc<Self>,
        workspace: Workspace,
        commands_run: bool,
        permit: OwnedSemaphorePermit,
    ) {
        let work = move || self.refresh_now(&workspace, commands_run, permit);
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::error!(%error, "the copy of a workspace failed");
        }
    }

    fn refresh_now(&self, workspace: &Workspace, commands_run: bool, _job: OwnedSemaphorePermit) {
        self.overrun.store(false, Ordering::Release);
        let mut ran = self.commands_ran.lock().take();
        if !self.looked_back.swap(true, Ordering::AcqRel) {
            // Commands of an earlier daemon.
            ran = ran.or_else(|| self.baseline.marked());
        }
        let root = workspace.root();
        let mut copied = None;
        let mut is_cut = false;
        let begun = &self.overrun;
        let unread = workspace.unread.resolved();
        let compared =
            self.baseline
                .compare(&self.overlay, &self.objects, &unread, ran.is_some(), begun);
        match compared {
            Ok(Some(mut found)) => {
                is_cut = found.extent.cut;
                let is_worn = found.is_worn;
                copied = (!is_worn).then(|| std::mem::take(&mut found.root));
                // Without earlier commands it is what one did that has begun meanwhile.
                self.record_commands(ran.unwrap_or_else(|| self.turn()), found);
                if is_worn {
                    self.baseline.remove();
                }
            }
            Ok(None) => self.not_compared(workspace, ran),
            Err(error) => {
                tracing::warn!(%error, "the workspace could not be compared");
                self.not_compared(workspace, ran);
                self.baseline.remove();
            }
        }
        let mut ran_since = self.commands_ran.lock();
        if commands_run && let Some(turn) = ran {
            ran_since.get_or_insert(turn);
        }
        if ran_since.is_none() {
            self.baseline.unmark();
        }
        drop(ran_since);
        let Some(root) = root else {
            self.tell_once(NOT_COPIED);
            return;
        };
        if copied.as_ref() != Some(&root) {
            self.copied(self.baseline.build(&root, &unread, &self.overrun));
        } else if is_cut && !commands_run {
            self.copied(self.baseline.extend(&unread, &self.overrun));
        }
    }

    /// Says how far the workspace was copied.
    fn copied(&self, copied: Result<Extent, DiskError>) {
        match copied {
            Ok(extent) => {
                tracing::debug!(?extent, "the workspace was copied");
                if extent.cut {
                    self.tell_once(NOT_YET_COPIED);
                } else if !extent.whole {
                    self.tell_once(NOT_WHOLE);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the workspace could not be copied");
                self.baseline.remove();
                self.tell_once(NOT_COPIED);
            }
        }
    }

    /// Records that commands may have changed anything in the workspace, if there were any.
    fn not_compared(&self, workspace: &Workspace, ran: Option<Seq>) {
        let Some(turn) = ran else {
            return;
        };
        self.tell_once(NOT_COMPARED);
        let path = workspace.cwd.clone();
        let why = NotCaptured::NotCopied;
        let missed = vec![Missed { path, why }];
        let found = Differences {
            missed,
            ..Differences::default()
        };
        self.record_commands(turn, found);
    }

    fn record_commands(&self, turn: Seq, found: Differences) {
        if found.changes.is_empty() && found.missed.is_empty() {
            return;
        }
        let record = Record {
            turn,
            by: Source::Commands,
            changes: found.changes,
            missed: found.missed,
            plan: None,
        };
        if let Err(error) = self.journal.lock().changed(record) {
            tracing::warn!(%error, "what commands changed could not be recorded");
            self.tell_once(NOT_COMPARED);
        }
        self.stored(found.stored);
    }
}

const NOT_COMPARED: &str = "What commands changed in files could not be recorded, so that a rewind leaves these files as they are.";
const NOT_COPIED: &str = "The working directory is not copied for rewinds, because it is the home directory or cannot be read: a rewind leaves files alone that commands change.";
const NOT_YET_COPIED: &str = "A command began before the working directory was copied for rewinds. The rest is copied later; a rewind leaves files alone that this command changes there, and does not bring back what it deletes there.";
const NOT_WHOLE: &str = "The working directory has more files than are copied for rewinds, or a folder that cannot be read: a rewind leaves files alone that commands create, and those that were not copied.";

#[cfg(test)]
#[cfg(unix)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
