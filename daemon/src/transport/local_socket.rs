//! The socket of this user's daemon: a Unix socket in a private folder, a named pipe on Windows.
//!
//! Who connects is checked by the kernel's word before a byte is parsed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{ListenerOptions, Name};

use crate::connection::Trust;
use crate::launch::Launch;
use crate::rpc::server::Server;

/// The user that this process acts for.
#[cfg(unix)]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user that this process acts for; pipes tell users apart by themselves.
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

/// Binds the socket. The caller holds the home's lock, so a file that is there is stale.
pub fn bind(path: &Path) -> io::Result<Listener> {
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let options = ListenerOptions::new().name(name(path)?);
    #[cfg(unix)]
    let options = {
        use interprocess::os::unix::local_socket::ListenerOptionsExt;
        options.mode(0o600)
    };
    options.create_tokio()
}

/// Accepts until the daemon ends; each connection is its own launch.
pub async fn serve(listener: Listener, app: Arc<Server>, launch: impl Fn() -> Launch) {
    loop {
        let accepted = tokio::select! {
            () = app.ending.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(stream) if is_same_user(&stream) => {
                app.serve_detached(stream, Arc::new(launch()), Trust::Transport);
            }
            Ok(_) => tracing::warn!("another user's connection was refused"),
            Err(error) => {
                tracing::warn!(%error, "a local connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
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
