//! The connection to the holder. The holder is started with the first command, and again after it
//! was killed.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::message::{KeeperKind, send_order};
use super::super::procfs::{self, ProcessIdentity};
use super::super::{KILLED_WITHIN, ProcessesInner, holder};

/// How long the holder may take to read an order before it is replaced.
const READS_WITHIN: Duration = Duration::from_secs(5);

/// How often the holder is continued after somebody stopped it, before it is replaced.
const MOST_STOPS: u32 = 100;

/// The running holder, if there is one.
#[derive(Debug, Default)]
pub(super) struct HolderLink {
    holder: Mutex<Option<Arc<HolderHandle>>>,
}

#[derive(Debug)]
struct HolderHandle {
    socket: AsyncFd<OwnedFd>,
    ended: watch::Sender<bool>,
    /// Kills the holder.
    kill: CancellationToken,
}

impl HolderLink {
    fn current(&self) -> MutexGuard<'_, Option<Arc<HolderHandle>>> {
        self.holder.lock()
    }

    /// Whether a holder is running.
    pub(super) fn is_held(&self) -> bool {
        self.current()
            .as_ref()
            .is_some_and(|holder| !*holder.ended.borrow())
    }

    /// Sends an order; starts a new holder if the old one is gone.
    pub(super) async fn order(
        &self,
        inner: &Arc<ProcessesInner>,
        kind: KeeperKind,
        descriptors: &[OwnedFd],
    ) -> io::Result<()> {
        let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let holder = self.holder(inner)?;
        match holder.send(kind, &borrowed).await {
            Err(error) if is_disconnected(&error) => {
                self.drop_if(&holder);
                self.holder(inner)?.send(kind, &borrowed).await
            }
            sent => sent,
        }
    }

    fn holder(&self, inner: &Arc<ProcessesInner>) -> io::Result<Arc<HolderHandle>> {
        let mut current = self.current();
        if let Some(holder) = current.as_ref().filter(|holder| !*holder.ended.borrow()) {
            return Ok(holder.clone());
        }
        // Before the start, so that no stop is missed.
        let children = signal(SignalKind::child())?;
        let (holder, child) = start()?;
        *current = Some(holder.clone());
        let (shared, followed) = (inner.clone(), holder.clone());
        let (ended, kill) = (followed.ended.clone(), followed.kill.clone());
        drop(followed);
        inner
            .tasks
            .spawn(async move { follow(&shared, child, children, &ended, &kill).await });
        Ok(holder)
    }

    fn drop_if(&self, gone: &Arc<HolderHandle>) {
        let mut current = self.current();
        if current
            .as_ref()
            .is_some_and(|holder| Arc::ptr_eq(holder, gone))
        {
            *current = None;
        }
    }

    /// Ends the holder, which kills its attached commands.
    pub(super) async fn close(&self) {
        let Some(holder) = self.current().take() else {
            return;
        };
        let (mut ended, kill) = (holder.ended.subscribe(), holder.kill.clone());
        // Dropping the last reference closes the socket, which ends the holder.
        drop(holder);
        if timeout(KILLED_WITHIN, ended.wait_for(|ended| *ended))
            .await
            .is_ok()
        {
            return;
        }
        tracing::warn!("the holder of processes does not end and is killed");
        kill.cancel();
        if timeout(KILLED_WITHIN, ended.wait_for(|ended| *ended))
            .await
            .is_err()
        {
            tracing::error!("the holder of processes did not end in time");
        }
    }
}

impl HolderHandle {
    /// Sends an order. A holder that does not read is killed, and counts as disconnected.
    async fn send(&self, kind: KeeperKind, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let sending = async {
            loop {
                let mut ready = self.socket.writable().await?;
                match ready.try_io(|socket| send_order(socket.get_ref(), kind, descriptors)) {
                    Ok(sent) => return sent,
                    Err(_would_block) => {}
                }
            }
        };
        timeout(READS_WITHIN, sending).await.unwrap_or_else(|_| {
            tracing::warn!("the holder of processes reads no orders and is replaced");
            self.kill.cancel();
            Err(io::ErrorKind::NotConnected.into())
        })
    }
}

fn is_disconnected(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

fn start() -> io::Result<(Arc<HolderHandle>, Child)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    // If the holder is killed, its children become children of the daemon.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let child = program()?
        .env_clear()
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let holder = HolderHandle {
        socket: crate::sys::watch_descriptor(ours)?,
        ended: watch::Sender::new(false),
        kill: CancellationToken::new(),
    };
    Ok((Arc::new(holder), child))
}

/// Waits for the end of the holder. Continues it when somebody stopped it.
async fn follow(
    inner: &Arc<ProcessesInner>,
    mut child: Child,
    mut children: Signal,
    ended: &watch::Sender<bool>,
    kill: &CancellationToken,
) {
    let holder = child.id().and_then(|pid| i32::try_from(pid).ok());
    let ledger = &inner.backend.ledger;
    if let Some(identity) = holder.and_then(ProcessIdentity::of)
        && let Err(error) = ledger.note_holder(&inner.backend.boot, identity)
    {
        tracing::warn!(%error, "the holder of processes could not be noted");
    }
    let mut stops = 0;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            () = kill.cancelled(), if stops <= MOST_STOPS => stops = MOST_STOPS + 1,
            Some(()) = children.recv() => {
                let stopped = holder.is_some_and(procfs::continue_child);
                stops += u32::from(stopped);
            }
        }
        if stops > MOST_STOPS {
            // Fails for a holder that has ended already.
            child.start_kill().ok();
        }
    };
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!(%status, "the holder of processes ended"),
        Err(error) => tracing::error!(%error, "the holder of processes cannot be waited for"),
    }
    ledger.forget_holder();
    // Keepers of a killed holder kill their commands, unless somebody stopped them. They are
    // children of the daemon now.
    let keepers = procfs::children_of(std::process::id().cast_signed());
    procfs::continue_keepers(&keepers);
    ended.send_replace(true);
}

/// The command that starts a holder: this program, even if its file was replaced. A test binary
/// that cannot be a holder uses the `loopd` beside it.
fn program() -> io::Result<Command> {
    if holder::is_available() {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("loopd").arg(holder::FLAG);
        return Ok(command);
    }
    let this = std::env::current_exe()?;
    let folders = this.ancestors().skip(1).take(2);
    let found = folders
        .map(|folder| folder.join("loopd"))
        .find(|path| path.is_file());
    let found = found
        .ok_or_else(|| io::Error::other(format!("there is no loopd beside {}", this.display())))?;
    let mut command = Command::new(found);
    command.arg(holder::FLAG);
    Ok(command)
}
