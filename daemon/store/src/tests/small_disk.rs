//! A disk small enough to fill.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A filesystem in memory with little space, unmounted when dropped.
pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts it, or says why the test that asked is skipped.
    #[expect(clippy::print_stderr, reason = "a skipped test must tell why")]
    pub(crate) fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], folder.path());
        if !mounted {
            eprintln!("skipped: this user or system may not mount a tmpfs");
        }
        mounted.then(|| Self { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn make_read_only(&self) {
        assert!(mount(&["-o", "remount,ro"], self.folder.path()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount")
            .arg("-l")
            .arg(self.folder.path())
            .status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

fn mount(options: &[&str], folder: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(options).arg(folder).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
