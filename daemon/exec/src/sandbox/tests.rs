//! Tests with a real bash in a real sandbox, on both backends.

mod outside;
mod reading;
mod replaced;
mod writing;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_proto::id::SessionId;
use tempfile::TempDir;
use tokio::time::timeout;
use ulid::Ulid;

use super::*;
use crate::keep_alive::KeepAlive;
use crate::process::{Lifetime, Processes};
use crate::terminal::{
    Backend, CommandEnd, OutputBody, OutputFilter, OutputFilters, Shell, ShellSpec,
};

/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

const BACKENDS: [Backend; 2] = [Backend::Process, Backend::Terminal];

/// Leaves outputs as they are.
#[derive(Debug)]
struct AsItIs;

impl OutputFilters for AsItIs {
    fn begin(&self) -> Box<dyn OutputFilter> {
        Box::new(Self)
    }
}

impl OutputFilter for AsItIs {
    fn next(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }

    fn rest(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

/// A project that commands look at, and a scratch folder beside it.
struct Project {
    folder: TempDir,
    processes: Processes,
    sandbox: Sandbox,
}

/// Makes the files of a project.
const FILES: &str = r"
printf 'one\ntwo\nthree\n' > file.txt
printf '#!/bin/sh\necho x > written-by-script.txt\nrm -f file.txt\n' > script.sh
chmod 755 script.sh
mkdir -p folder/deep empty
echo inner > folder/deep/inner.txt
mkfifo pipe
git init -q --template= . && git add file.txt script.sh
git -c user.name=A -c user.email=a@b.c commit -qm first
";

impl Project {
    /// A project with a few files in a git repository.
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        let processes = Processes::new(folder.path(), KeepAlive::default());
        let sandbox = Sandbox::new(folder.path().join("scratch"));
        let project = Self {
            folder,
            processes,
            sandbox,
        };
        let mut shell = project.shell(Backend::Process, None).await;
        let (said, end) = run(&mut shell, FILES).await;
        assert_eq!(end, CommandEnd::Exited(0), "{said}");
        project
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    /// The scratch folder that the sandbox made, the only one in its place.
    fn made(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.scratch()).unwrap();
        let made = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        made
    }

    /// A shell in the sandbox.
    async fn confined(&self, backend: Backend) -> Shell {
        self.shell(backend, Some(self.sandbox.clone())).await
    }

    async fn shell(&self, backend: Backend, sandbox: Option<Sandbox>) -> Shell {
        let path = std::env::var("PATH").unwrap();
        let home = self.folder.path().display().to_string();
        let spec = ShellSpec {
            cwd: self.path(),
            env: BTreeMap::from([
                ("PATH".to_owned(), path),
                ("HOME".to_owned(), home),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ]),
            scratch: self.folder.path().join("outputs"),
            name_output: || format!("{}.txt", Ulid::generate()),
            filters: std::sync::Arc::new(AsItIs),
            session: SessionId::from(Ulid::generate()),
            lifetime: Lifetime::Turn,
            label: "test".to_owned(),
            sandbox,
        };
        let opened = Shell::open(&self.processes, backend, spec);
        timeout(PATIENCE, opened).await.unwrap().unwrap()
    }

    /// All that can be seen of the project's files, a line each.
    fn look(&self) -> String {
        let mut seen = String::new();
        look_at(&self.path(), &mut seen);
        seen
    }

    /// The lines of an earlier look that are different now.
    fn changes(&self, before: &str) -> Vec<String> {
        let now = self.look();
        let lines = |text: &str| -> Vec<String> { text.lines().map(ToOwned::to_owned).collect() };
        let (before, now) = (lines(before), lines(&now));
        let only = |some: &[String], others: &[String]| -> Vec<String> {
            let missing = |line: &&String| !others.contains(line);
            some.iter().filter(missing).cloned().collect()
        };
        [only(&before, &now), only(&now, &before)].concat()
    }
}

/// Runs a command to its end and returns its output and how it ended.
async fn run(shell: &mut Shell, command: &str) -> (String, CommandEnd) {
    let run = shell.start(command).await.unwrap();
    let end = timeout(PATIENCE, run.ended()).await;
    let end = end.unwrap_or_else(|_| unreachable!("`{command}` still runs: {:?}", run.output()));
    let text = match run.output().body {
        OutputBody::Whole(text) => text,
        OutputBody::Preview { tail, .. } => tail,
    };
    (text, end)
}

/// Writes a line for a file and for everything below it: kind, mode, owner, links, times, attributes
/// and contents.
fn look_at(path: &Path, seen: &mut String) {
    let facts = std::fs::symlink_metadata(path).unwrap();
    let mut names = [0; 256];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or_default();
    let mut contents = Vec::new();
    if facts.is_file() {
        contents = std::fs::read(path).unwrap();
    }
    writeln!(
        seen,
        "{} {:o} {}:{} ino {} links {} {}.{} {}.{} {:?} {:?}",
        path.display(),
        facts.mode(),
        facts.uid(),
        facts.gid(),
        facts.ino(),
        facts.nlink(),
        facts.mtime(),
        facts.mtime_nsec(),
        facts.ctime(),
        facts.ctime_nsec(),
        String::from_utf8_lossy(names.get(..length).unwrap()),
        String::from_utf8_lossy(&contents),
    )
    .unwrap();
    if facts.is_dir() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for entry in entries {
            look_at(&entry, seen);
        }
    }
}

#[test]
fn a_kernel_that_cannot_do_everything_is_refused_with_the_reason() {
    let errno = |number| Err(io::Error::from_raw_os_error(number));
    let cases = [
        (errno(libc::ENOSYS), "has no Landlock"),
        (errno(libc::EOPNOTSUPP), "add `landlock` to the `lsm=`"),
        (Ok(1), "version 1 of Landlock"),
        (Ok(2), "version 2 of Landlock"),
    ];
    for (version, reason) in cases {
        let refused = files::check(version).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    for version in 3..12 {
        assert!(files::check(Ok(version)).is_ok(), "version {version}");
    }
}

#[test]
fn this_machine_has_what_the_sandbox_needs() {
    assert!(check().is_ok(), "{:?}", check());
}
