//! The connection to the holder. The holder is started with the first command, and again after it
//! was killed.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::super::message::{KeeperKind, send_order};
use super::super::{KILLED_WITHIN, ProcessesInner, holder};

/// The running holder, if there is one.
#[derive(Debug, Default)]
pub(super) struct HolderLink {
    holder: Mutex<Option<Arc<HolderHandle>>>,
}

#[derive(Debug)]
struct HolderHandle {
    socket: AsyncFd<OwnedFd>,
    ended: watch::Sender<bool>,
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
        let (holder, child) = start()?;
        *current = Some(holder.clone());
        inner.tasks.spawn(follow(child, holder.ended.clone()));
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

    /// CommandPipes the holder, which kills its attached commands.
    pub(super) async fn close(&self) {
        let Some(holder) = self.current().take() else {
            return;
        };
        let mut ended = holder.ended.subscribe();
        // Dropping the last reference closes the socket, which ends the holder.
        drop(holder);
        let ended = ended.wait_for(|ended| *ended);
        if tokio::time::timeout(KILLED_WITHIN, ended).await.is_err() {
            tracing::error!("the holder of processes did not end in time");
        }
    }
}

impl HolderHandle {
    async fn send(&self, kind: KeeperKind, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let mut ready = self.socket.writable().await?;
            match ready.try_io(|socket| send_order(socket.get_ref(), kind, descriptors)) {
                Ok(sent) => return sent,
                Err(_would_block) => {}
            }
        }
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
    };
    Ok((Arc::new(holder), child))
}

async fn follow(mut child: Child, ended: watch::Sender<bool>) {
    match child.wait().await {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!(%status, "the holder of processes ended"),
        Err(error) => tracing::error!(%error, "the holder of processes cannot be waited for"),
    }
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
