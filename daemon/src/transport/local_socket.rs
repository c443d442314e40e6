//! The socket of this user's daemon: a Unix socket in a private folder, a named pipe on Windows.
//!
//! Who connects is checked by the kernel's word before a byte is parsed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{ListenerOptions, Name};

use crate::connection::Trust;
use crate::home::{HomeError, create_private};
use crate::launch::Launch;
use crate::rpc::server::Server;

/// Longer paths cannot be bound everywhere.
const LONGEST_PATH: usize = 100;

/// Where the socket of a home is: in the user's runtime folder unless the home was chosen by hand,
/// else in the home, or in a private folder of the temporary one when that path is too long.
pub async fn path_for(home: &Path, env: &BTreeMap<String, String>) -> Result<PathBuf, HomeError> {
    let chosen = ["LOOPD_HOME", "COPILOT_HOME"]
        .iter()
        .any(|name| env.get(*name).is_some_and(|value| !value.is_empty()));
    let runtime = env
        .get("XDG_RUNTIME_DIR")
        .filter(|folder| !chosen && !folder.is_empty());
    let mut folder = match runtime {
        Some(runtime) => Path::new(runtime).join("loopd"),
        None => home.join("run"),
    };
    if folder.as_os_str().len() + 24 > LONGEST_PATH {
        folder = std::env::temp_dir().join(format!("loopd-{}", user()));
    }
    let unusable = |source| HomeError::Runtime {
        path: folder.clone(),
        source,
    };
    create_private(&folder).await.map_err(unusable)?;
    check_private(&folder).map_err(unusable)?;
    Ok(folder.join(format!("{:016x}.sock", fingerprint(home))))
}

/// Tells homes apart in a shared runtime folder (FNV-1a; no secret depends on it).
fn fingerprint(home: &Path) -> u64 {
    let bytes = home.as_os_str().as_encoded_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}

#[cfg(unix)]
fn check_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = std::fs::symlink_metadata(folder)?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || !ours {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not a folder of this user",
        ));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_folder: &Path) -> io::Result<()> {
    Ok(())
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

/// Connects to the socket of a daemon.
///
/// The plain Unix stream can be closed in one direction, so that the daemon hears the end of its
/// client at once and its last words still arrive.
#[cfg(unix)]
pub async fn connect(path: &Path) -> io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(path).await
}

/// Connects to the pipe of a daemon.
#[cfg(not(unix))]
pub async fn connect(path: &Path) -> io::Result<Stream> {
    use interprocess::local_socket::traits::tokio::Stream as _;
    Stream::connect(name(path)?).await
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
    let own = rustix::process::geteuid().as_raw();
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
