//! The connection to the holder, which is started when the first command needs it and again after it
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

use super::super::message::{Kind, send_order};
use super::super::{Inner, KILLED_WITHIN, holder};

/// The holder, if there is one.
#[derive(Debug, Default)]
pub(super) struct Link {
    holder: Mutex<Option<Arc<Holder>>>,
}

#[derive(Debug)]
struct Holder {
    socket: AsyncFd<OwnedFd>,
    ended: watch::Sender<bool>,
}

impl Link {
    fn current(&self) -> MutexGuard<'_, Option<Arc<Holder>>> {
        self.holder.lock()
    }

    /// Says whether there is a holder.
    pub(super) fn is_held(&self) -> bool {
        self.current()
            .as_ref()
            .is_some_and(|holder| !*holder.ended.borrow())
    }

    /// Sends an order, to a new holder when the old one is gone.
    pub(super) async fn order(
        &self,
        inner: &Arc<Inner>,
        kind: Kind,
        descriptors: &[OwnedFd],
    ) -> io::Result<()> {
        let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let holder = self.holder(inner)?;
        match holder.send(kind, &borrowed).await {
            Err(error) if is_over(&error) => {
                self.drop_if(&holder);
                self.holder(inner)?.send(kind, &borrowed).await
            }
            sent => sent,
        }
    }

    fn holder(&self, inner: &Arc<Inner>) -> io::Result<Arc<Holder>> {
        let mut current = self.current();
        if let Some(holder) = current.as_ref().filter(|holder| !*holder.ended.borrow()) {
            return Ok(holder.clone());
        }
        let (holder, child) = start()?;
        *current = Some(holder.clone());
        inner.tasks.spawn(follow(child, holder.ended.clone()));
        Ok(holder)
    }

    fn drop_if(&self, gone: &Arc<Holder>) {
        let mut current = self.current();
        if current
            .as_ref()
            .is_some_and(|holder| Arc::ptr_eq(holder, gone))
        {
            *current = None;
        }
    }

    /// Ends the holder and with it what it holds.
    pub(super) async fn close(&self) {
        let Some(holder) = self.current().take() else {
            return;
        };
        let mut ended = holder.ended.subscribe();
        // The socket closes with its last owner.
        drop(holder);
        let ended = ended.wait_for(|ended| *ended);
        if tokio::time::timeout(KILLED_WITHIN, ended).await.is_err() {
            tracing::error!("the holder of processes did not end in time");
        }
    }
}

impl Holder {
    async fn send(&self, kind: Kind, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let mut ready = self.socket.writable().await?;
            match ready.try_io(|socket| send_order(socket.get_ref(), kind, descriptors)) {
                Ok(sent) => return sent,
                Err(_would_block) => {}
            }
        }
    }
}

fn is_over(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

fn start() -> io::Result<(Arc<Holder>, Child)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    // What the holder leaves when it is killed comes to us.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let child = program()?
        .env_clear()
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let holder = Holder {
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

/// This very program, also when its file has been replaced; tests that are another program use the
/// one that was built beside them.
fn program() -> io::Result<Command> {
    if holder::is_offered() {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("loopd").arg(holder::WORD);
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
    command.arg(holder::WORD);
    Ok(command)
}
