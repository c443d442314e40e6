//! An environment in which command lines run in real bash. Programs that rules name are stubs that
//! record how they were called. Wrappers are real, so that a way through them shows.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that only record how they were called.
#[rustfmt::skip]
const STUBS: &[&str] = &[
    "rm", "curl", "npm", "dd", "docker", "kubectl", "sudo", "evil", "cargo", "go", "wget", "rg", "fd", "jq",
    "tree", "ip", "dpkg", "pnpm", "yarn", "just", "gcc", "apt", "which", "ssh", "man",
];

/// Programs that record how they were called and then do their work.
#[rustfmt::skip]
const WATCHED: &[&str] = &["git", "find", "sed", "awk", "tar", "sort", "uniq", "make", "grep"];

/// Programs that do their work without a record.
#[rustfmt::skip]
const REAL: &[&str] = &[
    "env", "nice", "ionice", "xargs", "timeout", "nohup", "setsid", "stdbuf", "flock", "sh", "bash", "dash",
    "cat", "tr", "base64", "cut", "rev", "head", "tail", "tee", "touch", "mkdir", "cp", "mv", "ln", "chmod",
    "ls", "true", "false", "printf", "test", "seq", "wc", "diff", "date", "sleep", "python3", "perl", "id",
];

/// Wrappers that few machines have. They run their arguments, or the text after `-c`.
const MADE: &[(&str, &str)] = &[
    ("busybox", "exec \"$@\""),
    ("doas", "exec \"$@\""),
    ("unknownwrapper", "exec \"$@\""),
];

/// The user that lines run as when the tests run as root. The lines are hostile and must reach
/// nothing but the rig.
const NOBODY: u32 = 65_534;

pub(super) struct Rig {
    root: tempfile::TempDir,
}

/// The outcome of a line.
pub(super) struct Ran {
    /// The programs that were called, each a name and its arguments.
    pub(super) calls: Vec<Vec<String>>,
    /// Whether the directory `x` still exists.
    pub(super) folder_stands: bool,
}

impl Rig {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
        let rig = Self { root };
        for folder in ["bin", "work", "home"] {
            std::fs::create_dir(rig.path(folder)).unwrap_or_else(|error| unreachable!("{error}"));
        }
        for folder in ["", "bin", "work", "home"] {
            rig.give(folder);
        }
        for name in STUBS {
            rig.program(name, "");
        }
        for name in WATCHED {
            if let Some(real) = found(name) {
                rig.program(name, &format!("exec '{}' \"$@\"", real.display()));
            } else {
                rig.program(name, "");
            }
        }
        for name in REAL {
            if let Some(real) = found(name) {
                symlink(real, rig.path("bin").join(name))
                    .unwrap_or_else(|error| unreachable!("{error}"));
            }
        }
        for (name, text) in MADE {
            rig.program(name, text);
        }
        rig.prepare();
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Gives the lines access to the files of the rig.
    fn give(&self, name: &str) {
        if rustix::process::geteuid().is_root() {
            chown(self.path(name), Some(NOBODY), Some(NOBODY))
                .unwrap_or_else(|error| unreachable!("{error}"));
        }
    }

    fn program(&self, name: &str, then: &str) {
        let log = self.path("log");
        let text = format!(
            "#!/bin/bash\n( IFS=$'\\x1f'; printf '%s\\x1e' \"{name}${{*+$'\\x1f'}}$*\" >> '{}' )\n{then}\n",
            log.display()
        );
        let path = self.path("bin").join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| unreachable!("{error}"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))
            .unwrap_or_else(|error| unreachable!("{error}"));
    }

    /// A repository with a file, a Makefile and an archive.
    fn prepare(&self) {
        let text = "git init -q -b main . && git config user.name A && git config user.email a@b.c && \
            printf 'a b\\nc,d\\n' > in && printf 'all test clean rm evil:\\n\\t@true\\n' > Makefile && \
            tar -cf arc.tar in && git add . && git commit -qm first && touch y in.bak && mkdir x && touch x/kept";
        self.bash(text);
        assert!(self.path("work/x").is_dir(), "the place is made");
    }

    /// Returns the files below the working directory with their contents, without those that git
    /// refreshes when it looks.
    pub(super) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("work")];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                if path.ends_with(".git/index") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path.clone());
                }
                let contents = std::fs::read(&path).unwrap_or_default();
                found.push((path, contents));
            }
        }
        found.sort();
        found
    }

    /// Runs a line and returns the calls that it made.
    pub(super) fn run(&self, line: &str) -> Ran {
        std::fs::write(self.path("log"), "").unwrap_or_else(|error| unreachable!("{error}"));
        self.give("log");
        self.bash(line);
        let log = std::fs::read(self.path("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let calls = log
            .split_terminator('\u{1e}')
            .map(|call| call.split('\u{1f}').map(str::to_owned).collect())
            .collect();
        let kept = self.path("work/x/kept");
        let folder_stands = kept.is_file();
        if !folder_stands {
            let made = std::fs::create_dir_all(self.path("work/x"));
            assert!(made.and_then(|()| std::fs::write(kept, "")).is_ok());
            self.give("work/x");
            self.give("work/x/kept");
        }
        Ran {
            calls,
            folder_stands,
        }
    }

    fn bash(&self, line: &str) {
        // Reading to the end also waits for processes that the line leaves behind.
        let mut command = Command::new("timeout");
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command
            .args([
                "-k",
                "1",
                "20",
                "/bin/bash",
                "--noprofile",
                "--norc",
                "-c",
                line,
            ])
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .output();
        assert!(output.is_ok(), "{line:?}: {output:?}");
    }
}

/// Returns the path of a real program, without wrappers that need their own home directory.
fn found(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
}

/// The lines of a file with commands, in the form that bash gets.
pub(super) fn lines(data: &str) -> impl Iterator<Item = String> + use<'_> {
    data.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .filter(|line| !line.starts_with("#  ") && *line != "#")
        .map(|line| line.replace('⏎', "\n").replace('⇥', "\t"))
}
