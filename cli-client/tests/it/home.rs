//! A home for one test, and `loop` in it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use loopd_sdk::ConnectOptions;
use tempfile::TempDir;

/// A working directory with a home in it; the daemon exits when it is deleted.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
}

/// The output and exit code of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        let built = Path::new(env!("CARGO_BIN_EXE_loop")).with_file_name("loopd");
        assert!(
            built.exists(),
            "{} is missing; build it first: cargo build -p loopd",
            built.display()
        );
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = self.path("home").to_str().unwrap().to_owned();
        BTreeMap::from([
            ("LOOPD_HOME".to_owned(), home),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("LOOPD_IDLE_TIMEOUT".to_owned(), "5".to_owned()),
        ])
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loop"));
        command
            .args(args)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        self.command(args).output().unwrap().into()
    }

    /// Runs a command that must succeed; returns its stdout.
    pub(crate) fn prints(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "loop {args:?}: {said:?}");
        said.out
    }

    /// The id of the session that changed last.
    pub(crate) fn last_session(&self) -> String {
        let sessions = self.prints(&["sessions"]);
        sessions.split_whitespace().next().unwrap().to_owned()
    }

    /// How a program of this test would connect.
    pub(crate) fn connect_options(&self) -> ConnectOptions {
        ConnectOptions {
            cwd: Some(self.folder.path().to_owned()),
            env: Some(self.environment()),
            program: Some(Path::new(env!("CARGO_BIN_EXE_loop")).with_file_name("loopd")),
            ..ConnectOptions::default()
        }
    }
}

/// Reads lines until one contains this text; returns all of them.
pub(crate) fn read_until(lines: &mut impl BufRead, text: &str) -> String {
    let mut read = String::new();
    loop {
        let before = read.len();
        let more = lines.read_line(&mut read).unwrap();
        assert!(more > 0, "{text:?} did not come: {read:?}");
        if read[before..].contains(text) {
            return read;
        }
    }
}

pub(crate) fn stderr(child: &mut Child) -> BufReader<ChildStderr> {
    BufReader::new(child.stderr.take().unwrap())
}

pub(crate) fn interrupt(child: &Child) {
    signal(child, "-INT");
}

pub(crate) fn signal(child: &Child, signal: &str) {
    let killed = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
}
