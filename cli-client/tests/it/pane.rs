//! `loop` in a pane of tmux, a real terminal with scrollback.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tempfile::TempDir;

/// How long a text may take to come; a loaded machine needs a fraction of it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(crate) struct Pane {
    folder: TempDir,
    /// What the program writes. It wakes the test; the screen is read from tmux.
    output: File,
}

impl Pane {
    pub(crate) fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("output");
        let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        // Open for both, so that it has no end.
        let output = File::options().read(true).write(true).open(&fifo).unwrap();
        let pane = Self { folder, output };
        let mut args: Vec<String> = ["new-session", "-d", "-x"].map(str::to_owned).into();
        args.extend([columns.to_string(), "-y".to_owned(), rows.to_string()]);
        if let Some(directory) = command.get_current_dir() {
            args.extend(["-c".to_owned(), directory.to_str().unwrap().to_owned()]);
        }
        args.extend(["env", "-i", "TERM=tmux-256color", "LANG=C.UTF-8"].map(str::to_owned));
        for (name, value) in command.get_envs() {
            let value = value.unwrap().to_str().unwrap();
            args.push(format!("{}={value}", name.to_str().unwrap()));
        }
        args.push(command.get_program().to_str().unwrap().to_owned());
        args.extend(command.get_args().map(|it| it.to_str().unwrap().to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        pane.tmux(&args);
        pane.tmux(&["set-option", "-g", "history-limit", "5000"]);
        let pipe = format!("exec cat > '{}'", fifo.display());
        pane.tmux(&["pipe-pane", "-O", &pipe]);
        pane
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-u", "-S"])
            .arg(self.socket())
            .args(args)
            .env_remove("TMUX");
        tmux.output()
            .expect("tmux is there: scripts/test installs it")
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types text.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses keys by their names in tmux.
    pub(crate) fn presses(&self, keys: &[&str]) {
        let args: Vec<&str> = ["send-keys"].iter().chain(keys).copied().collect();
        self.tmux(&args);
    }

    /// Types text and Enter.
    pub(crate) fn sends(&self, text: &str) {
        self.types(text);
        self.presses(&["Enter"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Returns what is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Returns what is on the screen and above it; lines that the terminal wrapped are joined.
    pub(crate) fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        let mut buffer = [0; 8_192];
        loop {
            let shown = self.all();
            if is_there(&shown) {
                return shown;
            }
            let left = LONGEST_WAIT.checked_sub(begun.elapsed());
            let left = left.unwrap_or_else(|| panic!("{what:?} did not come in time:\n{shown}"));
            let left = Timespec::try_from(left).unwrap();
            let mut readable = [PollFd::new(&self.output, PollFlags::IN)];
            if retry_on_intr(|| poll(&mut readable, Some(&left))).unwrap() > 0 {
                let read = self.output.read(&mut buffer).unwrap();
                assert!(read > 0);
            }
        }
    }

    /// Waits until a text is there.
    pub(crate) fn until(&mut self, text: &str) -> String {
        self.wait(text, |shown| shown.contains(text))
    }

    /// Waits until the program has ended.
    pub(crate) fn until_over(&mut self) {
        let begun = Instant::now();
        while self.run(&["has-session"]).status.success() {
            assert!(begun.elapsed() < LONGEST_WAIT, "{}", self.all());
        }
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
