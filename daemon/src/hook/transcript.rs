//! The transcript of a session: a file with one event per line, for hooks that read it. It is
//! written only once somebody wants it, and then only added to.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopd_kernel::rewind::{HiddenRange, counts};
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
    taken_back: SyncMutex<TakenBack>,
    /// Whether people were told that the file cannot be written.
    told: AtomicBool,
}

/// What rewinds took back of the log.
#[derive(Default)]
struct TakenBack {
    hidden: Vec<HiddenRange>,
    /// Whether the file still has some of it.
    is_new: bool,
}

impl Transcript {
    /// Makes the transcript of a session with this folder of its own; writes nothing yet.
    pub fn new(session: SessionId, folder: PathBuf) -> Self {
        Self(Arc::new(Inner {
            folder,
            session,
            written: Mutex::default(),
            path: SyncMutex::default(),
            taken_back: SyncMutex::default(),
            told: AtomicBool::new(false),
        }))
    }

    /// Leaves these events out from now on. The file is written anew when somebody wants it.
    pub fn take_back(&self, hidden: Vec<HiddenRange>) {
        *self.0.taken_back.lock() = TakenBack {
            hidden,
            is_new: true,
        };
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

    /// Brings the file up to date. Returns what people have to be told.
    pub(super) async fn update(&self, store: &dyn Store) -> Option<String> {
        let mut written = self.0.written.lock().await;
        let path = self.0.folder.join("transcript.jsonl");
        let hidden = {
            let mut taken_back = self.0.taken_back.lock();
            if std::mem::take(&mut taken_back.is_new) {
                *written = None;
            }
            taken_back.hidden.clone()
        };
        // The first time the file is made anew: another daemon may have been cut off in a line.
        let is_new = written.is_none();
        let mut at = written.unwrap_or(Seq(0));
        loop {
            let read = store.read(&self.0.session, at, PIECE).await;
            let events = match read {
                Ok(events) => events,
                Err(error) => {
                    tracing::warn!(session = %self.0.session, %error, "the transcript is not up to date");
                    return None;
                }
            };
            let Some(last) = events.last() else {
                break;
            };
            let last = last.seq;
            let mut text = String::new();
            let public = events.iter().filter(|it| it.visible == Visibility::Public);
            for event in public.filter(|event| counts(&hidden, event.seq)) {
                text.push_str(&event.json);
                text.push('\n');
            }
            let anew = is_new && at == Seq(0);
            if let Err(error) = append(&path, text, anew).await {
                tracing::warn!(path = %path.display(), %error, "the transcript could not be written");
                *self.0.path.lock() = None;
                let told = self.0.told.swap(true, Ordering::Relaxed);
                return (!told).then(|| {
                    let path = path.display();
                    format!(
                        "The transcript {path} could not be written, so hooks get none: {error}."
                    )
                });
            }
            at = last;
        }
        *written = Some(at);
        *self.0.path.lock() = Some(path);
        None
    }
}

async fn append(path: &Path, text: String, anew: bool) -> std::io::Result<()> {
    let path = path.to_owned();
    let write = tokio::task::spawn_blocking(move || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = open(&path)?;
        if anew {
            file.set_len(0)?;
        }
        file.write_all(text.as_bytes())
    });
    write.await.map_err(std::io::Error::other)?
}

/// Opens a transcript to add to it, and nothing that somebody put in its place: no link, and no file that
/// has another name.
#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt;

    let is_link = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
            std::io::Error::other("a link stands in its place or in that of its folder; remove it")
        }
        error => error.into(),
    };
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let above = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, above, Mode::empty()).map_err(is_link)?;
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR);
    let file = std::fs::File::from(opened.map_err(is_link)?);
    let facts = file.metadata()?;
    if !facts.is_file() || facts.nlink() != 1 {
        return Err(std::io::Error::other(
            "another file stands in its place; remove it",
        ));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(path)
}
