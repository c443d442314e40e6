//! Small values to store, and a disk small enough to fill.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loopd_proto::id::Seq;

use crate::{Batch, SessionRecord, StoredEvent, Visibility};

pub(crate) fn record(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.into(),
        created_ms: 1_000,
        modified_ms: 2_000,
        name: None,
        summary: None,
        cwd: Some("/project".into()),
        parent: None,
        agent: None,
        client_name: None,
        git_root: None,
        repository: None,
        branch: None,
        event_count: 0,
    }
}

pub(crate) fn event(seq: u64, json: &str) -> StoredEvent {
    StoredEvent {
        seq: Seq(seq),
        id: format!("event-{seq}").into(),
        kind: "user.message".into(),
        visible: Visibility::Public,
        json: json.into(),
    }
}

/// A batch of `count` events that say whose they are.
pub(crate) fn batch(id: &str, after: u64, count: u64) -> Batch {
    Batch {
        record: record(id),
        after: Seq(after),
        events: (after + 1..=after + count)
            .map(|seq| event(seq, &format!("{id} {seq}")))
            .collect(),
    }
}

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
