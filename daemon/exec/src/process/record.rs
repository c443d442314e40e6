//! What the daemon knows of one command: who it is, whether it ended, how it is reached. Kept in the
//! table of `Processes` and by each `Owned`; the task that watches the command is the one writer.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use loopd_proto::id::{ProcessId, SessionId};
use loopd_proto::time::Timestamp;
use tokio::sync::watch;

use super::{Class, Entry, Exit, Signal, State};
use crate::keep_alive::KeepAliveGuard;

/// How many characters of a label are kept.
const LONGEST_LABEL: usize = 500;

/// How a command is reached.
pub(super) trait Control: Send + Sync + fmt::Debug {
    /// Sends a signal to the command's own group.
    fn signal(&self, signal: Signal);
    /// Begins to kill everything of the command.
    fn kill(&self);
}

/// What stays the same of a command.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) id: ProcessId,
    pub(super) pid: u32,
    pub(super) class: Class,
    pub(super) session: Option<SessionId>,
    /// What people saw at first.
    pub(super) label: String,
    pub(super) started: Timestamp,
    pub(super) log: Option<PathBuf>,
}

/// One command.
#[derive(Debug)]
pub(super) struct Record {
    facts: Facts,
    /// What people see; a shell runs one thing after another.
    label: Mutex<String>,
    exit: watch::Sender<Option<Exit>>,
    gone: watch::Sender<bool>,
    control: Mutex<Box<dyn Control>>,
    /// Its end was wished for, by whatever way it was reached then.
    condemned: AtomicBool,
    /// Keeps an idle daemon for as long as something of the command lives.
    stay: Mutex<Option<KeepAliveGuard>>,
}

impl Record {
    pub(super) fn new(
        facts: Facts,
        control: Box<dyn Control>,
        stay: Option<KeepAliveGuard>,
    ) -> Self {
        Self {
            label: Mutex::new(facts.label.clone()),
            facts,
            exit: watch::Sender::new(None),
            gone: watch::Sender::new(false),
            control: Mutex::new(control),
            condemned: AtomicBool::new(false),
            stay: Mutex::new(stay),
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

    pub(super) fn entry(&self) -> Entry {
        let facts = self.facts.clone();
        Entry {
            id: facts.id,
            pid: facts.pid,
            class: facts.class,
            session: facts.session,
            label: self.label().clone(),
            started: facts.started,
            state: match *self.exit.borrow() {
                None => State::Running,
                Some(_) => State::LeftBehind,
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

    /// Notes how the command ended; the first word counts.
    pub(super) fn set_exit(&self, exit: Exit) {
        self.exit.send_if_modified(|known| {
            let news = known.is_none();
            known.get_or_insert(exit);
            news
        });
    }

    /// Notes that nothing of the command lives.
    pub(super) fn set_gone(&self) {
        self.set_exit(Exit::Unknown);
        self.stay.lock().take();
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

    /// Resolves when nothing of the command lives.
    pub(super) async fn gone(&self) {
        let mut gone = self.gone.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        gone.wait_for(|gone| *gone).await.ok();
    }

    fn control(&self) -> MutexGuard<'_, Box<dyn Control>> {
        self.control.lock()
    }

    /// Reaches the command another way from now on; a wish that may have got lost is repeated.
    #[cfg(target_os = "linux")]
    pub(super) fn reach_by(&self, control: Box<dyn Control>) {
        *self.control() = control;
        if self.condemned.load(Ordering::Acquire) {
            self.kill();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if !self.is_gone() {
            self.control().signal(signal);
        }
    }

    pub(super) fn kill(&self) {
        self.condemned.store(true, Ordering::Release);
        if !self.is_gone() {
            self.control().kill();
        }
    }
}

/// A label that is not too long to keep.
pub(super) fn shortened(label: &str) -> &str {
    match label.char_indices().nth(LONGEST_LABEL) {
        Some((end, _)) => label.get(..end).unwrap_or(label),
        None => label,
    }
}
