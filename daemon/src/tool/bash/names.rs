//! The names of the shell tools on this system, and the description of the main one.

use loopd_proto::id::ShellId;

#[cfg(not(windows))]
mod family {
    pub(in crate::tool) const RUN: &str = "bash";
    pub(in crate::tool) const READ: &str = "read_bash";
    pub(in crate::tool) const WRITE: &str = "write_bash";
    pub(in crate::tool) const STOP: &str = "stop_bash";
    pub(in crate::tool) const LIST: &str = "list_bash";
}

#[cfg(windows)]
mod family {
    pub(in crate::tool) const RUN: &str = "powershell";
    pub(in crate::tool) const READ: &str = "read_powershell";
    pub(in crate::tool) const WRITE: &str = "write_powershell";
    pub(in crate::tool) const STOP: &str = "stop_powershell";
    pub(in crate::tool) const LIST: &str = "list_powershell";
}

pub(in crate::tool) use family::{LIST, READ, RUN, STOP, WRITE};

#[cfg(not(windows))]
pub(super) const RUN_DESCRIPTION: &str = "Runs a bash command in the working directory and returns its output and exit code.\n\
    - Standard output and standard error come back together, in order; long output is saved to a file and shown in parts.\n\
    - Without shellId every command gets a fresh shell: variables and cd do not last, so join steps with &&; what is left running with & is stopped, so use mode async instead. With shellId, commands share a shell and its state lasts, unless this session runs commands without a terminal (then write_bash does not exist).\n\
    - Commands with one shellId run one after the other; use different shellIds, or none, to run commands in parallel.\n\
    - mode sync waits up to initial_wait seconds (30 by default). A command that takes longer goes on in the background: read it with read_bash, stop it with stop_bash. Set initial_wait for builds and tests that you want to wait for.\n\
    - mode async is for servers, watchers and interactive programs. With detach the command outlives the session and writes to a log file.\n\
    - You are notified when a command in the background ends; do not poll for it.\n\
    - A command that waits for input returns at once; answer with write_bash. Prefer flags such as --yes or --no-pager.\n\
    - Prefer view, grep, glob, create and edit for looking at and changing files.";

#[cfg(windows)]
pub(super) const RUN_DESCRIPTION: &str = "Runs a PowerShell command in the working directory and returns its output and exit code.\n\
    - Output and errors come back together, in order; long output is saved to a file and shown in parts.\n\
    - Without shellId every command gets a fresh shell: variables and locations do not last. With shellId, commands share a shell and its state lasts, unless this session runs commands without a terminal (then write_powershell does not exist).\n\
    - Commands with one shellId run one after the other; use different shellIds, or none, to run commands in parallel.\n\
    - mode sync waits up to initial_wait seconds (30 by default). A command that takes longer goes on in the background: read it with read_powershell, stop it with stop_powershell.\n\
    - mode async is for servers, watchers and interactive programs. With detach the command outlives the session and writes to a log file.\n\
    - You are notified when a command in the background ends; do not poll for it.\n\
    - Prefer view, grep, glob, create and edit for looking at and changing files.";

/// The longest name of a shell, in bytes.
const MAX_NAME: usize = 64;

/// Returns whether a model may give a shell this name.
pub(super) fn is_shell_name(id: &ShellId) -> bool {
    let name = id.as_str();
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
