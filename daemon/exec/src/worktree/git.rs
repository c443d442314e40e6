//! Runs git in one folder, without a shell, with every setting disabled that could run another
//! program (see `settings`), and with limits on time and output.
//!
//! Git processes have the lifetime of a turn: each is killed when its caller is cancelled. They
//! belong to no session, because they also clean up after a session has ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::WorktreeError;
use super::settings::{DisabledPrograms, UnusableConfiguration};
use crate::process::{Exit, Io, Lifetime, Processes, Spawn};

/// The time limit for a lookup.
pub(super) const LOOKUP: Duration = Duration::from_secs(60);
/// The time limit for a step that handles all files of a repository.
pub(super) const ALL_FILES: Duration = Duration::from_secs(600);

/// The maximum size of standard output, and how much of standard error is kept.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;
const MAX_ERROR_TEXT: usize = 4 * 1024;

const CHUNK: usize = 64 * 1024;

/// Runs git in one folder or for one repository.
#[derive(Debug)]
pub(super) struct Git {
    processes: Processes,
    env: BTreeMap<String, String>,
    pub(super) cwd: PathBuf,
    /// The git folder of a repository that is not the one around `cwd`.
    named: Option<PathBuf>,
    pub(super) disabled: DisabledPrograms,
}

/// One run of git: its purpose and its time limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct GitStep<'a> {
    /// Completes "git could not …".
    pub(super) what: &'a str,
    pub(super) within: Duration,
}

impl<'a> GitStep<'a> {
    pub(super) fn lookup(what: &'a str) -> Self {
        let within = LOOKUP;
        Self { what, within }
    }

    pub(super) fn all_files(what: &'a str) -> Self {
        let within = ALL_FILES;
        Self { what, within }
    }
}

impl Git {
    /// Prepares git in a folder, with the programs disabled that the configuration there names.
    pub(super) async fn in_folder(
        processes: &Processes,
        env: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<Self, WorktreeError> {
        Self::prepared(processes, env, folder, None).await
    }

    /// Prepares git for the repository of `git_dir`, started in another folder.
    pub(super) async fn of_repository(
        processes: &Processes,
        env: &BTreeMap<String, String>,
        git_dir: &Path,
        elsewhere: &Path,
    ) -> Result<Self, WorktreeError> {
        Self::prepared(processes, env, elsewhere, Some(git_dir.to_owned())).await
    }

    async fn prepared(
        processes: &Processes,
        env: &BTreeMap<String, String>,
        cwd: &Path,
        named: Option<PathBuf>,
    ) -> Result<Self, WorktreeError> {
        let mut git = Self {
            processes: processes.clone(),
            env: DisabledPrograms::default().environment(env),
            cwd: cwd.to_owned(),
            named,
            disabled: DisabledPrograms::default(),
        };
        let step = GitStep::lookup("read its configuration");
        let list = git.ask(step, ["config", "--list", "-z"]).await?;
        git.disabled = DisabledPrograms::of_list(&list).map_err(|unusable| match unusable {
            UnusableConfiguration::GitTooOld => WorktreeError::GitTooOld,
            UnusableConfiguration::Odd(why) => WorktreeError::OddConfiguration {
                folder: cwd.to_owned(),
                why,
            },
        })?;
        git.env = git.disabled.environment(env);
        Ok(git)
    }

    /// Runs git and returns its output.
    pub(super) async fn ask<A: Into<OsString>>(
        &self,
        step: GitStep<'_>,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, WorktreeError> {
        let mut answer = Vec::new();
        let mut too_much = false;
        let keep = |bytes: &[u8]| {
            too_much |= answer.len() + bytes.len() > MAX_OUTPUT;
            if !too_much {
                answer.extend_from_slice(bytes);
            }
        };
        self.run(step, args, keep).await?;
        if too_much {
            let step = step.what.to_owned();
            return Err(WorktreeError::TooMuch { step });
        }
        Ok(answer)
    }

    /// Runs git and returns its one line of output.
    pub(super) async fn line<A: Into<OsString>>(
        &self,
        what: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, WorktreeError> {
        let mut answer = self.ask(GitStep::lookup(what), args).await?;
        if answer.ends_with(b"\n") {
            answer.pop();
        }
        Ok(answer)
    }

    /// Asks git for a path, which may not be UTF-8.
    pub(super) async fn path(&self, option: &str) -> Result<PathBuf, WorktreeError> {
        let args = ["rev-parse", "--path-format=absolute", option];
        let line = self.line("tell where the repository is", args).await?;
        let path = path_of(line);
        let real = tokio::fs::canonicalize(&path).await;
        real.map_err(|source| WorktreeError::Disk { path, source })
    }

    /// Runs git and passes each NUL-terminated piece of its output to `take`.
    pub(super) async fn each<A: Into<OsString>>(
        &self,
        step: GitStep<'_>,
        args: impl IntoIterator<Item = A>,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> Result<(), WorktreeError> {
        let mut begun: Vec<u8> = Vec::new();
        let mut too_much = false;
        let cut = |bytes: &[u8]| {
            let mut rest = bytes;
            while let Some(end) = memchr::memchr(0, rest) {
                let (piece, more) = rest.split_at(end);
                begun.extend_from_slice(piece);
                take(&begun);
                begun.clear();
                rest = more.get(1..).unwrap_or_default();
            }
            too_much |= begun.len() + rest.len() > MAX_OUTPUT;
            if !too_much {
                begun.extend_from_slice(rest);
            }
        };
        self.run(step, args, cut).await?;
        if too_much {
            let step = step.what.to_owned();
            return Err(WorktreeError::TooMuch { step });
        }
        Ok(())
    }

    async fn run<A: Into<OsString>>(
        &self,
        step: GitStep<'_>,
        args: impl IntoIterator<Item = A>,
        take: impl FnMut(&[u8]) + Send,
    ) -> Result<(), WorktreeError> {
        let mut all: Vec<OsString> = vec!["--no-pager".into()];
        if let Some(git_dir) = &self.named {
            all.extend(["--git-dir".into(), git_dir.clone().into_os_string()]);
        }
        all.extend(args.into_iter().map(Into::into));
        let spawn = Spawn {
            program: PathBuf::from("git"),
            args: all,
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            io: Io::Piped,
            lifetime: Lifetime::Turn,
            session: None,
            label: format!("git, to {}", step.what),
            sandbox: None,
        };
        let spawned = self.processes.spawn(spawn).await;
        let mut owned = spawned.map_err(WorktreeError::of_start)?;
        // Git gets no input.
        drop(owned.input.take());
        let (output, errors) = (owned.output.take(), owned.errors.take());
        let mut said = Vec::new();
        let listen = |bytes: &[u8]| {
            let room = MAX_ERROR_TEXT.saturating_sub(said.len());
            said.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        };
        let done = async {
            tokio::try_join!(read(output, take), read(errors, listen))?;
            Ok(owned.exit().await)
        };
        let Ok(ended) = tokio::time::timeout(step.within, done).await else {
            owned.kill().await;
            return Err(WorktreeError::TooSlow {
                step: step.what.to_owned(),
                seconds: step.within.as_secs(),
            });
        };
        // A partial output must not count as complete.
        let exit = ended.map_err(|error: io::Error| WorktreeError::Git {
            step: step.what.to_owned(),
            said: format!("its answer could not be read: {error}"),
        })?;
        if exit == Exit::Code(0) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let said = match exit {
            _ if !said.is_empty() => said,
            Exit::Code(code) => format!("it ended with code {code}"),
            Exit::Signal(signal) => format!("it was ended by signal {signal}"),
            Exit::Unknown => "it ended unseen".to_owned(),
        };
        let place = self.named.as_deref().unwrap_or(&self.cwd);
        Err(WorktreeError::of_git(step.what, place, &said))
    }
}

async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) + Send,
) -> io::Result<()> {
    let Some(mut pipe) = pipe else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        match pipe.read(&mut buffer).await? {
            0 => return Ok(()),
            count => take(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// Converts bytes that git printed to a path.
pub(super) fn path_of(bytes: Vec<u8>) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(
        bytes,
    ));
    #[cfg(not(unix))]
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}
