//! A started command in the hands of who started it. It ends what it owns; it never reads output.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::ProcessId;

use super::record::Record;
use super::{Class, Entry, Exit, InputPipe, KILLED_WITHIN, OutputPipe, Signal};

/// How long processes may still take to end after the command that was stopped has ended.
const LINGER: Duration = Duration::from_millis(200);

/// A command that was started.
#[derive(Debug)]
pub struct Owned {
    pub id: ProcessId,
    pub pid: u32,
    /// Standard output, of `Io::Merged` with standard error in it.
    pub output: Option<OutputPipe>,
    /// Standard error, of `Io::Piped`.
    pub errors: Option<OutputPipe>,
    /// Standard input, of `Io::Piped`.
    pub input: Option<InputPipe>,
    record: Arc<Record>,
}

impl Owned {
    pub(super) fn of(record: Arc<Record>) -> Self {
        Self {
            id: record.id().clone(),
            pid: record.pid(),
            output: None,
            errors: None,
            input: None,
            record,
        }
    }

    /// What the list says of it.
    pub fn entry(&self) -> Entry {
        self.record.entry()
    }

    /// Waits until the command itself has ended; processes it started may live on.
    pub async fn exit(&self) -> Exit {
        self.record.exit().await
    }

    /// Waits until nothing of the command lives.
    pub async fn gone(&self) {
        self.record.gone().await;
    }

    /// Says whether nothing of the command lives.
    pub fn is_gone(&self) -> bool {
        self.record.is_gone()
    }

    /// Sends a signal to the command's process group.
    pub fn signal_group(&self, signal: Signal) {
        self.record.signal(signal);
    }

    /// Asks the command to end, and kills all of its tree when the grace is over or it has ended.
    pub async fn stop(&self, grace: Duration) -> Exit {
        self.record.signal(Signal::Terminate);
        let asked = async {
            self.record.exit().await;
            tokio::time::timeout(LINGER, self.record.gone()).await.ok();
        };
        // Whether it ended by itself makes no difference for what comes next.
        tokio::time::timeout(grace, asked).await.ok();
        self.kill().await
    }

    /// Says what the process does from now on, for the list.
    pub fn relabel(&self, label: &str) {
        self.record.relabel(label);
    }

    /// Begins to kill the command and its whole tree.
    pub fn kill_now(&self) {
        self.record.kill();
    }

    /// Kills the command and its whole tree; it is dead when this resolves.
    pub async fn kill(&self) -> Exit {
        self.record.kill();
        if tokio::time::timeout(KILLED_WITHIN, self.record.gone())
            .await
            .is_err()
        {
            tracing::error!(id = %self.id, "a killed command is still there");
            return Exit::Unknown;
        }
        self.record.exit().await
    }

    /// Kills what the command left behind when it ended.
    pub async fn leftovers(&self) {
        self.record.exit().await;
        self.kill().await;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.record.class() == Class::Turn {
            self.record.kill();
        }
    }
}
