//! What the daemon knows about one command: its facts, its exit and how to control it. The table of
//! `Processes` and each `OwnedProcess` share it; only the task that watches the command sets its
//! exit.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::path::PathBuf;

use loopd_proto::id::{ProcessId, SessionId};
use loopd_proto::time::Timestamp;
use tokio::sync::watch;

use super::{Class, Exit, ProcessEntry, Signal, State};
use crate::keep_alive::{KeepAlive, KeepAliveGuard};

/// The maximum length of a label, in characters.
const LONGEST_LABEL: usize = 500;

/// Signals and kills a command.
pub(super) trait ProcessControl: Send + Sync + fmt::Debug {
    /// Sends a signal to the command's process group.
    fn signal(&self, signal: Signal);
    /// Starts to kill all processes of the command.
    fn kill(&self);
}

/// What a shell does. Every other command is busy until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It was opened ahead and has run nothing.
    Unused,
    Busy,
    /// It waits for its next command.
    Idle,
}

/// The facts about a command that do not change.
#[derive(Debug, Clone)]
pub(super) struct ProcessFacts {
    pub(super) id: ProcessId,
    pub(super) pid: u32,
    pub(super) class: Class,
    pub(super) session: Option<SessionId>,
    /// The label at the start.
    pub(super) label: String,
    pub(super) started: Timestamp,
    pub(super) log: Option<PathBuf>,
}

/// The state of one command.
#[derive(Debug)]
pub(super) struct ProcessRecord {
    facts: ProcessFacts,
    /// The current label; a shell runs one command after another.
    label: Mutex<String>,
    exit: watch::Sender<Option<Exit>>,
    gone: watch::Sender<bool>,
    control: Mutex<Box<dyn ProcessControl>>,
    /// Whether a kill was requested. A new control repeats it.
    kill_requested: watch::Sender<bool>,
    /// Keeps the daemon running while a process of the command lives.
    keep_alive: Mutex<Option<KeepAliveGuard>>,
    activity: Mutex<Activity>,
}

impl ProcessRecord {
    pub(super) fn new(
        facts: ProcessFacts,
        control: Box<dyn ProcessControl>,
        keep_alive: Option<KeepAliveGuard>,
    ) -> Self {
        Self {
            label: Mutex::new(facts.label.clone()),
            facts,
            exit: watch::Sender::new(None),
            gone: watch::Sender::new(false),
            control: Mutex::new(control),
            kill_requested: watch::Sender::new(false),
            keep_alive: Mutex::new(keep_alive),
            activity: Mutex::new(Activity::Busy),
        }
    }

    pub(super) fn id(&self) -> &ProcessId {
        &self.facts.id
    }

    pub(super) fn pid(&self) -> u32 {
        self.facts.pid
    }

    pub(super) fn class(&self) -> Class {
        self.facts.class
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.facts.session.as_ref()
    }

    pub(super) fn entry(&self) -> ProcessEntry {
        let facts = self.facts.clone();
        ProcessEntry {
            id: facts.id,
            pid: facts.pid,
            class: facts.class,
            session: facts.session,
            label: self.label().clone(),
            started: facts.started,
            state: match (*self.exit.borrow(), *self.activity.lock()) {
                (None, Activity::Busy) => State::Running,
                (None, Activity::Unused | Activity::Idle) => State::Idle,
                (Some(_), _) => State::LeftBehind,
            },
            log: facts.log,
        }
    }

    fn label(&self) -> MutexGuard<'_, String> {
        self.label.lock()
    }

    pub(super) fn relabel(&self, label: &str) {
        shortened(label).clone_into(&mut self.label());
    }

    /// Sets what a shell does. One in which no command runs is no work for the daemon.
    pub(super) fn set_activity(&self, activity: Activity, work: &KeepAlive) {
        let mut keep_alive = self.keep_alive.lock();
        match activity {
            Activity::Unused | Activity::Idle => *keep_alive = None,
            Activity::Busy if !self.is_gone() && self.class() != Class::Detached => {
                keep_alive.get_or_insert_with(|| work.work());
            }
            Activity::Busy => {}
        }
        *self.activity.lock() = activity;
    }

    /// Sets how the command ended; later calls change nothing.
    pub(super) fn set_exit(&self, exit: Exit) {
        self.exit.send_if_modified(|known| {
            let news = known.is_none();
            known.get_or_insert(exit);
            news
        });
    }

    /// Marks all processes of the command as gone.
    pub(super) fn set_gone(&self) {
        self.set_exit(Exit::Unknown);
        self.keep_alive.lock().take();
        self.gone.send_replace(true);
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Resolves when the command itself has ended.
    pub(super) async fn exit(&self) -> Exit {
        let mut exit = self.exit.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        let known = exit.wait_for(Option::is_some).await;
        known.ok().and_then(|known| *known).unwrap_or(Exit::Unknown)
    }

    /// Resolves when all processes of the command are gone.
    pub(super) async fn gone(&self) {
        let mut gone = self.gone.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        gone.wait_for(|gone| *gone).await.ok();
    }

    /// Resolves when a kill was requested.
    #[cfg(target_os = "linux")]
    pub(super) async fn kill_requested(&self) {
        let mut requested = self.kill_requested.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        requested.wait_for(|requested| *requested).await.ok();
    }

    fn control(&self) -> MutexGuard<'_, Box<dyn ProcessControl>> {
        self.control.lock()
    }

    /// Replaces the control, and repeats a kill request that the old control may have lost.
    #[cfg(target_os = "linux")]
    pub(super) fn replace_control(&self, control: Box<dyn ProcessControl>) {
        *self.control() = control;
        if *self.kill_requested.borrow() {
            self.kill();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if !self.is_gone() {
            self.control().signal(signal);
        }
    }

    pub(super) fn kill(&self) {
        self.kill_requested.send_replace(true);
        if !self.is_gone() {
            self.control().kill();
        }
    }
}

/// The label, cut to [`LONGEST_LABEL`] characters.
pub(super) fn shortened(label: &str) -> &str {
    match label.char_indices().nth(LONGEST_LABEL) {
        Some((end, _)) => label.get(..end).unwrap_or(label),
        None => label,
    }
}
