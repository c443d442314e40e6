//! The socket of this user's daemon: a Unix socket in a private folder, a named pipe on Windows.
//!
//! The operating system says which user connects, and which process: `peer.rs` refuses commands of
//! sessions. Both are checked before a byte is parsed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{ListenerOptions, Name};
use loopd_proto::home_paths::FileId;

use crate::front::connection::Trust;
use crate::front::rpc::server::Server;
use crate::launch::Launch;

/// Returns the user that this process acts for.
#[cfg(unix)]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns 0: named pipes tell users apart by themselves.
#[cfg(not(unix))]
pub fn user() -> u32 {
    0
}

#[cfg(unix)]
fn name(path: &Path) -> io::Result<Name<'_>> {
    use interprocess::local_socket::{GenericFilePath, ToFsName};
    path.to_fs_name::<GenericFilePath>()
}

#[cfg(windows)]
fn name(path: &Path) -> io::Result<Name<'static>> {
    use interprocess::local_socket::{GenericNamespaced, ToNsName};
    let file = path.file_name().unwrap_or_default().to_os_string();
    file.to_ns_name::<GenericNamespaced>()
}

/// How many times, and at which interval, the daemon tries to lock the folder of its socket.
const FOLDER_TRIES: usize = 100;
const FOLDER_PAUSE: Duration = Duration::from_millis(10);

/// The file of a bound socket. Another daemon may take over its path: a daemon notices late that
/// its home was emptied, and its successor may have bound the same path by then.
pub struct SocketFile {
    path: PathBuf,
    id: Option<FileId>,
}

impl SocketFile {
    /// Removes the socket, unless another daemon's socket is at its path.
    pub async fn remove(self) {
        // The lock is held so that no successor binds between the check and the removal.
        let folder = lock_folder(&self.path).await;
        let is_own = self.id.is_some() && file_id(&self.path) == self.id;
        if folder.is_some() && is_own {
            // If the removal fails, the next daemon replaces the file.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

fn file_id(path: &Path) -> Option<FileId> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some(FileId::of(&metadata))
}

/// Locks the folder of a socket while the socket's path changes its owner; returns `None` if the
/// folder cannot be locked.
async fn lock_folder(socket: &Path) -> Option<File> {
    let folder = File::open(socket.parent()?).ok()?;
    for _ in 0..FOLDER_TRIES {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(FOLDER_PAUSE).await,
            Err(std::fs::TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// Binds the socket. The caller holds the home's lock, so a file that is there is stale.
pub async fn bind(path: &Path) -> io::Result<(Listener, SocketFile)> {
    let _folder = lock_folder(path).await;
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Otherwise the listener, when dropped, would remove any file at that path.
    let options = ListenerOptions::new().name(name(path)?).reclaim_name(false);
    #[cfg(unix)]
    let options = {
        use interprocess::os::unix::local_socket::ListenerOptionsExt;
        options.mode(0o600)
    };
    let listener = options.create_tokio()?;
    let file = SocketFile {
        path: path.to_owned(),
        id: file_id(path),
    };
    Ok((listener, file))
}

/// Accepts connections until the daemon ends. Each connection gets its own launch.
pub async fn serve(listener: Listener, app: Arc<Server>, launch: impl Fn() -> Launch) {
    loop {
        let accepted = tokio::select! {
            () = app.ending.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(stream) if is_same_user(&stream) => match refusal(&app, &stream) {
                None => app.serve_detached(stream, Arc::new(launch()), Trust::LocalSocket),
                Some(error) => app.refuse_detached(stream, &error),
            },
            Ok(_) => tracing::warn!("another user's connection was refused"),
            Err(error) => {
                tracing::warn!(%error, "a local connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

#[cfg(unix)]
use super::peer::refusal;

#[cfg(not(unix))]
fn refusal(_app: &Server, _stream: &Stream) -> Option<loopd_proto::wire::ErrorObject> {
    None
}

#[cfg(unix)]
fn is_same_user(stream: &Stream) -> bool {
    use interprocess::local_socket::traits::StreamCommon;
    let own = user();
    stream
        .peer_creds()
        .ok()
        .and_then(|credentials| credentials.euid())
        .is_some_and(|user| user == own)
}

#[cfg(not(unix))]
fn is_same_user(_stream: &Stream) -> bool {
    // The pipe's default security descriptor admits only its creator.
    true
}
