//! Whether the database and its write-ahead log still look like what the store wrote. Something else
//! may overwrite or cut them in place, and SQLite notices that only where it reads again: a commit
//! goes on in memory and into the log. Each commit looks at the sizes and the first bytes of both
//! files before it is acknowledged.

use std::fs::File;
use std::path::Path;

use super::{Failure, Location};

/// How every database begins.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// How every write-ahead log begins, but for the last bit, which tells the order of bytes.
const LOG: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];

/// The database file as it was when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Footprint {
    /// Open as long as the connections are: closing it would, on Unix, end the locks that they hold.
    file: Option<File>,
    length: u64,
    /// The write-ahead log, once it was looked at. Each commit looks at it, so it stays open; that it
    /// still has its name is checked apart.
    log: Option<File>,
    /// How the files were changed by something else. They stay damaged until they are opened anew.
    damage: Option<&'static str>,
}

impl Footprint {
    /// Opens the file of a database that is in use.
    pub(super) fn of(location: &Location) -> std::io::Result<Self> {
        let file = match location {
            Location::File(path) => Some(File::open(path)?),
            Location::Memory => None,
        };
        let mut footprint = Self {
            file,
            ..Self::default()
        };
        footprint.note();
        Ok(footprint)
    }

    /// Takes the files as they are now, after the store itself may have made them shorter or anew.
    pub(super) fn note(&mut self) {
        self.log = None;
        let metadata = self.file.as_ref().map(File::metadata);
        if let Some(Ok(metadata)) = metadata {
            self.length = metadata.len();
        }
    }

    /// Fails if the database was made shorter, or if it or its log does not begin as it must.
    pub(super) fn check(&mut self, location: &Location) -> Result<(), Failure> {
        if self.damage.is_none() {
            self.damage = self.look(location)?;
        }
        match self.damage {
            Some(how) => Err(Failure::Unreadable(format!(
                "the file {how} by something else"
            ))),
            None => Ok(()),
        }
    }

    fn look(&mut self, location: &Location) -> std::io::Result<Option<&'static str>> {
        let (Some(file), Location::File(path)) = (&self.file, location) else {
            return Ok(None);
        };
        let length = file.metadata()?.len();
        if length < self.length {
            return Ok(Some("was cut"));
        }
        self.length = length;
        let mut start = [0; DATABASE.len()];
        if !begins(file, &mut start)? || start != *DATABASE {
            return Ok(Some("was overwritten"));
        }
        let log = match self.log.take() {
            Some(log) => log,
            None => open_log(path)?,
        };
        let is_whole = is_log_whole(&log)?;
        self.log = Some(log);
        Ok((!is_whole).then_some("was overwritten or cut in its write-ahead log"))
    }
}

/// Opens the write-ahead log of a database.
fn open_log(database: &Path) -> std::io::Result<File> {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    File::open(Path::new(&path))
}

/// Whether a write-ahead log begins as it must, if it has anything.
fn is_log_whole(log: &File) -> std::io::Result<bool> {
    if log.metadata()?.len() == 0 {
        // Nothing was written since it was folded back.
        return Ok(true);
    }
    let mut start = [0; LOG.len()];
    let is_long = begins(log, &mut start)?;
    if let Some(last) = start.last_mut() {
        *last &= !1;
    }
    Ok(is_long && start == LOG)
}

/// Reads the first bytes of a file. Returns whether it has so many.
#[cfg(unix)]
fn begins(file: &File, start: &mut [u8]) -> std::io::Result<bool> {
    match std::os::unix::fs::FileExt::read_exact_at(file, start, 0) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(windows)]
fn begins(file: &File, start: &mut [u8]) -> std::io::Result<bool> {
    Ok(std::os::windows::fs::FileExt::seek_read(file, start, 0)? == start.len())
}
