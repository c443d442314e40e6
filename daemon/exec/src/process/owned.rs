//! The handle of a started command, for the code that started it. It signals and kills; it never
//! reads output.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::ProcessId;

use super::record::{Activity, ProcessRecord};
use crate::keep_alive::KeepAlive;

use super::{
    Class, Exit, InputPipe, KILLED_WITHIN, OutputPipe, OutputSocket, ProcessEntry, Signal,
};

/// How long the descendants of a stopped command may live after the command has ended.
const LINGER: Duration = Duration::from_millis(200);

/// A started command.
#[derive(Debug)]
pub struct OwnedProcess {
    pub id: ProcessId,
    pub pid: u32,
    /// Standard output; with `Io::Merged` also standard error.
    pub output: Option<OutputPipe>,
    /// Standard output, where it is a socket (`Io::Given`).
    pub output_socket: Option<OutputSocket>,
    /// Standard error, with `Io::Piped`, `Io::Served` and `Io::Given`.
    pub errors: Option<OutputPipe>,
    /// Standard input, with `Io::Piped` and `Io::Served`.
    pub input: Option<InputPipe>,
    /// The socket to the command, with `Io::Terminal`.
    #[cfg(unix)]
    pub(crate) control: Option<tokio::net::UnixStream>,
    record: Arc<ProcessRecord>,
    work: KeepAlive,
}

impl OwnedProcess {
    pub(super) fn of(record: Arc<ProcessRecord>, work: &KeepAlive) -> Self {
        Self {
            id: record.id().clone(),
            pid: record.pid(),
            output: None,
            output_socket: None,
            errors: None,
            input: None,
            #[cfg(unix)]
            control: None,
            record,
            work: work.clone(),
        }
    }

    /// This command as it is in the process list.
    pub fn entry(&self) -> ProcessEntry {
        self.record.entry()
    }

    /// Waits until the command itself has ended; its descendants may still live.
    pub async fn exit(&self) -> Exit {
        self.record.exit().await
    }

    /// Waits until all processes of the command are gone.
    pub async fn gone(&self) {
        self.record.gone().await;
    }

    /// Whether all processes of the command are gone.
    pub fn is_gone(&self) -> bool {
        self.record.is_gone()
    }

    /// Sends a signal to the command's process group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        self.record.signal(signal);
    }

    /// Sends SIGTERM, and kills the whole process tree when the command has ended or `grace` is
    /// over.
    pub async fn stop(&self, grace: Duration) -> Exit {
        self.record.signal(Signal::Terminate);
        let asked = async {
            self.record.exit().await;
            tokio::time::timeout(LINGER, self.record.gone()).await.ok();
        };
        // Kill the tree in both cases: descendants may live after the command ended.
        tokio::time::timeout(grace, asked).await.ok();
        self.kill().await
    }

    /// Sets what a shell does.
    pub(crate) fn set_activity(&self, activity: Activity) {
        self.record.set_activity(activity, &self.work);
    }

    /// Changes the text in the process list; a shell runs one command after another.
    pub(crate) fn relabel(&self, label: &str) {
        self.record.relabel(label);
    }

    /// Kills the command and its process tree; all are dead when this resolves.
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

    /// Waits for the command to end, then kills the processes that it left behind.
    pub(crate) async fn kill_leftovers(&self) {
        self.record.exit().await;
        self.kill().await;
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        if self.record.class() == Class::Turn {
            self.record.kill();
        }
    }
}
