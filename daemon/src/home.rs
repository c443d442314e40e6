//! Where the daemon keeps things; which folder is the home is a rule of `loopd_proto::home_paths`.

pub mod watch;

use std::io;
use std::path::Path;

/// Creates a folder that only this user can enter, with its parents.
pub async fn create_private(folder: &Path) -> io::Result<()> {
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || loopd_proto::home_paths::create_private(&folder)).await?
}
