//! The output file of one run: the texts and tool calls of a sub-agent, readable while it works.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::home_paths::create_private;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::watcher::Watcher;

/// Writes lines as they arrive until the run is over; logs one warning if the file is not writable.
pub(super) async fn write(
    file: PathBuf,
    watcher: Arc<Watcher>,
    mut lines: mpsc::Receiver<String>,
    over: CancellationToken,
) {
    if let Err(error) = append(&file, &watcher, &mut lines, &over).await {
        tracing::warn!(file = %file.display(), %error, "the output of an agent could not be written");
    }
}

/// Opens the file for appending. Only this user can read it; a link or a pipe is not used.
async fn open(file: &Path) -> io::Result<File> {
    if let Some(folder) = file.parent() {
        create_private(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let opened = options.open(file).await?;
    if !opened.metadata().await?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(opened)
}

async fn append(
    file: &Path,
    watcher: &Watcher,
    lines: &mut mpsc::Receiver<String>,
    over: &CancellationToken,
) -> io::Result<()> {
    let mut out: Option<File> = None;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = over.cancelled() => None,
        };
        let Some(line) = line else {
            break;
        };
        if out.is_none() {
            out = Some(open(file).await?);
        }
        if let Some(out) = &mut out {
            out.write_all(line.as_bytes()).await?;
            out.write_all(b"\n").await?;
            out.flush().await?;
        }
    }
    let lost = watcher.lost();
    if let (Some(out), true) = (&mut out, lost > 0) {
        let note =
            format!("\n[{lost} lines are missing: they came faster than they could be written]\n");
        out.write_all(note.as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}
