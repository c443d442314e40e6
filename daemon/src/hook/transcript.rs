//! The transcript of a session: a file with one event per line, for hooks that read it. It is
//! written only once somebody wants it, and then only added to.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::id::{Seq, SessionId};
use loopd_store::{Store, Visibility};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

/// How many events are read from the log at once.
const PIECE: usize = 500;

/// The transcript of one session.
#[derive(Clone)]
pub struct Transcript(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    session: SessionId,
    /// How far the file goes; `None` if it was not written by this daemon yet.
    written: Mutex<Option<Seq>>,
    path: SyncMutex<Option<PathBuf>>,
}

impl Transcript {
    /// Makes the transcript of a session with this folder of its own; writes nothing yet.
    pub fn new(session: SessionId, folder: PathBuf) -> Self {
        Self(Arc::new(Inner {
            folder,
            session,
            written: Mutex::default(),
            path: SyncMutex::default(),
        }))
    }

    /// Makes a transcript without events, for a hook that is tried.
    pub(super) fn empty(session: SessionId) -> Self {
        let transcript = Self::new(session, PathBuf::new());
        *transcript.0.path.lock() = Some(PathBuf::from("/dev/null"));
        transcript
    }

    /// Returns the file, if it was written.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.0.path.lock().clone()
    }

    /// Brings the file up to date.
    pub(super) async fn update(&self, store: &dyn Store) {
        let mut written = self.0.written.lock().await;
        let path = self.0.folder.join("transcript.jsonl");
        // The first time the file is made anew: another daemon may have been cut off in a line.
        let is_new = written.is_none();
        let mut at = written.unwrap_or(Seq(0));
        loop {
            let read = store.read(&self.0.session, at, PIECE).await;
            let events = match read {
                Ok(events) => events,
                Err(error) => {
                    tracing::warn!(session = %self.0.session, %error, "the transcript is not up to date");
                    return;
                }
            };
            let Some(last) = events.last() else {
                break;
            };
            let last = last.seq;
            let mut text = String::new();
            let public = events.iter().filter(|it| it.visible == Visibility::Public);
            for event in public {
                text.push_str(&event.json);
                text.push('\n');
            }
            let anew = is_new && at == Seq(0);
            if let Err(error) = append(&path, text, anew).await {
                tracing::warn!(path = %path.display(), %error, "the transcript could not be written");
                return;
            }
            at = last;
        }
        *written = Some(at);
        *self.0.path.lock() = Some(path);
    }
}

async fn append(path: &Path, text: String, anew: bool) -> std::io::Result<()> {
    let path = path.to_owned();
    let write = tokio::task::spawn_blocking(move || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.create(true);
        if anew {
            options.write(true).truncate(true);
        } else {
            options.append(true);
        }
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(text.as_bytes())
    });
    write.await.map_err(std::io::Error::other)?
}
