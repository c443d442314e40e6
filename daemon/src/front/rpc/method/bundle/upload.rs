//! A bundle that a client sends, part by part, collected in a file of the home until it is imported.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::format::{self, BundleError};
use super::{MOST_BYTES, RpcError};
use crate::front::rpc::context::Context;

/// The folder in the home.
const FOLDER: &str = "imports";
/// The most bytes of a bundle. Its text has up to twice the bytes of what it holds.
const LARGEST: u64 = 2 * MOST_BYTES + 16 * 1024 * 1024;
/// How many bundles may wait for their import, and how long one is kept that nobody sends on.
const MOST_WAITING: usize = 4;
const KEPT: Duration = Duration::from_secs(60 * 60);

/// A bundle that is being sent.
pub(super) struct Upload {
    pub(super) name: String,
    folder: PathBuf,
    now: SystemTime,
}

impl Upload {
    /// Names a bundle. The name becomes that of a file, so it has to be plain.
    pub(super) fn named(context: &Context, name: &str) -> Result<Self, RpcError> {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !plain || !(8..=64).contains(&name.len()) {
            return Err(RpcError::InvalidParams(
                "upload: use 8 to 64 letters, digits or `-`".to_owned(),
            ));
        }
        let services = &context.app.services;
        let now = u64::try_from(services.clock.now().0).unwrap_or(0);
        Ok(Self {
            name: name.to_owned(),
            folder: services.home.join(FOLDER),
            now: SystemTime::UNIX_EPOCH + Duration::from_millis(now),
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Takes a part; returns how many bytes there are now. Blocks.
    pub(super) fn take(&self, offset: u64, text: &str) -> Result<u64, BundleError> {
        let failed = |source| self.failed(source);
        if offset == 0 {
            let first = text.lines().next().unwrap_or_default();
            format::header(first)?;
            self.make_room().map_err(failed)?;
            if !self.path().exists() && self.waiting().map_err(failed)? >= MOST_WAITING {
                return Err(BundleError::Refused(format!(
                    "{MOST_WAITING} bundles wait for their import already; import one of them, or try again in \
                     an hour"
                )));
            }
        }
        let bytes = text.len() as u64;
        if offset.saturating_add(bytes) > LARGEST {
            self.remove().map_err(failed)?;
            return Err(BundleError::Refused(format!(
                "the bundle has more than {LARGEST} bytes; export the session without its files"
            )));
        }
        self.write(offset, text.as_bytes())
    }

    fn write(&self, offset: u64, part: &[u8]) -> Result<u64, BundleError> {
        let failed = |source| self.failed(source);
        let mut file = self.open_to_write(offset).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let end = offset.saturating_add(part.len() as u64);
        if offset > length {
            return Err(self.out_of_order(offset, length));
        }
        if offset < length {
            // The answer to this part was lost, so that it was sent again.
            let mut known = vec![0; part.len()];
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            let same = end <= length && file.read_exact(&mut known).is_ok() && known == part;
            if !same {
                return Err(self.out_of_order(offset, length));
            }
            return Ok(length);
        }
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        if let Err(error) = file.write_all(part) {
            // Half a part must not count as one.
            file.set_len(length).map_err(failed)?;
            return Err(failed(error));
        }
        Ok(end)
    }

    fn out_of_order(&self, offset: u64, length: u64) -> BundleError {
        BundleError::Refused(format!(
            "offset: {offset} is not where the bundle {} goes on; {length} bytes of it are there, so send what \
             follows, or send it anew under another name",
            self.name
        ))
    }

    fn open_to_write(&self, offset: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(offset == 0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        if offset == 0 {
            let mut folder = DirBuilder::new();
            folder.recursive(true);
            #[cfg(unix)]
            {
                use std::os::unix::fs::DirBuilderExt;
                folder.mode(0o700);
            }
            folder.create(&self.folder)?;
        }
        options.open(self.path())
    }

    /// Removes bundles that nobody sends on.
    fn make_room(&self) -> io::Result<()> {
        for (path, changed) in entries(&self.folder)? {
            let age = self.now.duration_since(changed).unwrap_or_default();
            if age > KEPT {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn waiting(&self) -> io::Result<usize> {
        Ok(entries(&self.folder)?.len())
    }

    /// Opens the bundle to read it. Blocks.
    pub(super) fn open(&self) -> Result<File, BundleError> {
        File::open(self.path()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BundleError::Refused(format!(
                "upload: no bundle was sent under the name {}; send it with loopd.sessions.importPart",
                self.name
            )),
            _ => self.failed(error),
        })
    }

    /// Removes the bundle. Blocks.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn failed(&self, source: io::Error) -> BundleError {
        BundleError::Io {
            path: self.path().display().to_string(),
            source,
        }
    }
}

/// The bundles in the folder, and when each was changed.
fn entries(folder: &Path) -> io::Result<Vec<(PathBuf, SystemTime)>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    read.map(|entry| {
        let entry = entry?;
        Ok((entry.path(), entry.metadata()?.modified()?))
    })
    .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    const HEADER: &str = "{\"loopdSession\":1,\"by\":\"0.1.0\",\"exportedAt\":\"2026-11-18T00:00:00.000Z\",\"sessionId\":\"a\",\"folder\":\"/a\",\"createdAt\":\"2026-11-18T00:00:00.000Z\"}\n";

    fn upload(folder: &Path, name: &str, age: Duration) -> Upload {
        let file = folder.join("imports").join(name);
        let changed = file.metadata().and_then(|file| file.modified());
        Upload {
            name: name.to_owned(),
            folder: folder.join("imports"),
            now: changed.unwrap_or(SystemTime::UNIX_EPOCH) + age,
        }
    }

    #[test]
    fn a_part_that_comes_twice_counts_once_and_one_that_is_missing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = upload(folder.path(), "one", Duration::ZERO);
        let refused = bundle.take(0, "no bundle").unwrap_err().to_string();
        assert!(
            refused.starts_with("this is no session bundle"),
            "{refused}"
        );
        assert!(!bundle.path().exists());
        let first = HEADER.len() as u64;
        assert_eq!(bundle.take(0, HEADER).unwrap(), first);
        assert_eq!(bundle.take(0, HEADER).unwrap(), first);
        assert_eq!(bundle.take(first, "more").unwrap(), first + 4);
        assert_eq!(bundle.take(first, "more").unwrap(), first + 4);
        for (offset, text) in [(first, "other"), (first + 9, "x"), (first, "lore")] {
            let refused = bundle.take(offset, text).unwrap_err().to_string();
            assert!(refused.contains("is not where the bundle"), "{refused}");
        }
        assert_eq!(
            fs::read_to_string(bundle.path()).unwrap(),
            format!("{HEADER}more")
        );
        let refused = bundle.take(LARGEST, "x").unwrap_err().to_string();
        assert!(refused.contains("more than"), "{refused}");
        assert!(!bundle.path().exists());
    }

    #[test]
    fn few_bundles_wait_and_none_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d"] {
            upload(folder.path(), name, Duration::ZERO)
                .take(0, HEADER)
                .unwrap();
        }
        let refused = upload(folder.path(), "e", Duration::ZERO).take(0, HEADER);
        assert!(refused.unwrap_err().to_string().contains("4 bundles wait"));
        let mut later = upload(folder.path(), "a", KEPT + Duration::from_secs(60));
        later.name = "e".to_owned();
        later.take(0, HEADER).unwrap();
        assert_eq!(later.waiting().unwrap(), 1);
    }
}
