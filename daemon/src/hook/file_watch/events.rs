//! The events that Linux tells about files and folders (inotify).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Access, access};
use rustix::io::Errno;

/// The events since the beginning of a watch.
pub(super) struct Events {
    queue: OwnedFd,
    /// The watched folders by the number of their watch.
    folders: HashMap<i32, PathBuf>,
    watched: BTreeSet<PathBuf>,
}

impl Events {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            queue: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            folders: HashMap::new(),
            watched: BTreeSet::new(),
        })
    }

    /// Watches which names come and go in a folder.
    pub(super) fn watch_folder(&mut self, folder: &Path) -> io::Result<()> {
        if self.watched.contains(folder) {
            return Ok(());
        }
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        match inotify::add_watch(&self.queue, folder, flags) {
            Ok(number) => {
                self.folders.insert(number, folder.to_owned());
            }
            // Where this user may neither list nor write, no command of a session moves anything.
            Err(Errno::ACCESS) if access(folder, Access::WRITE_OK).is_err() => {}
            Err(error) => return Err(error.into()),
        }
        self.watched.insert(folder.to_owned());
        Ok(())
    }

    /// Watches the content of a file.
    pub(super) fn watch_file(&mut self, file: &Path) -> io::Result<()> {
        let flags = WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&self.queue, file, flags)?;
        Ok(())
    }

    /// Returns whether anything happened to the watched files, or to one of these names.
    pub(super) fn tell_change<T>(&self, names: &BTreeMap<PathBuf, T>) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return false,
                // What cannot be read may be a change.
                Err(_) => return true,
            };
            let is_about_names =
                ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
            // An overflow of the queue, and whatever concerns a watched file or folder itself.
            if !event.events().intersects(is_about_names) {
                return true;
            }
            let (Some(folder), Some(name)) = (self.folders.get(&event.wd()), event.file_name())
            else {
                return true;
            };
            let entry = folder.join(OsStr::from_bytes(name.to_bytes()));
            if names.contains_key(&entry) {
                return true;
            }
        }
    }
}
