//! Detects whether the foreground program of a terminal waits for input, by the system calls in
//! which its threads are blocked. `actor.rs` decides when to check.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use crate::terminal::run::WaitingFor;

/// The maximum number of processes and threads that are checked.
const MAX_CHECKED: usize = 256;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    /// Reading from the terminal.
    Reading,
    /// Waiting for one of several descriptors.
    Polling,
    /// Sleeping; the system call is not visible to us.
    Hidden,
    /// Sleeping in another system call.
    Elsewhere,
    Busy,
}

/// Returns the kind of input that the foreground program waits for, if any.
pub(super) fn find_waiting(terminal: BorrowedFd<'_>, tty: &Path, shell: u32) -> Option<WaitingFor> {
    let modes = tcgetattr(terminal).ok()?.local_modes;
    let foreground = tcgetpgrp(terminal).ok()?.as_raw_nonzero().get();
    let mut seen = Vec::new();
    for process in process_tree(shell) {
        seen.extend(thread_states(process, foreground, tty));
    }
    let any = |blocked| seen.contains(&blocked);
    if seen.is_empty() || any(ThreadState::Busy) {
        return None;
    }
    let by_line = modes.contains(LocalModes::ICANON);
    let echoes = modes.contains(LocalModes::ECHO);
    match (by_line, echoes) {
        (false, _)
            if any(ThreadState::Reading)
                || any(ThreadState::Polling)
                || any(ThreadState::Hidden) =>
        {
            Some(WaitingFor::Screen)
        }
        (true, false) if any(ThreadState::Reading) || any(ThreadState::Hidden) => {
            Some(WaitingFor::Password)
        }
        (true, true) if any(ThreadState::Reading) => Some(WaitingFor::Line),
        (true | false, _) => None,
    }
}

/// A process and its descendants.
fn process_tree(root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(process) = tree.get(next).copied()
        && tree.len() < MAX_CHECKED
    {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            tree.extend(
                children
                    .split(' ')
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    tree
}

/// The states of the threads of a process, if it is in the foreground group.
fn thread_states(process: u32, foreground: i32, tty: &Path) -> Vec<ThreadState> {
    let Some((_, group)) = state(Path::new(&format!("/proc/{process}/stat"))) else {
        return Vec::new();
    };
    if group != foreground {
        return Vec::new();
    }
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let tasks = tasks.flatten().take(MAX_CHECKED);
    tasks
        .filter_map(|task| thread_state(&task.path(), tty))
        .collect()
}

/// The state letter and the process group, from a `stat` file.
fn state(file: &Path) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(file).ok()?;
    // The program name before may contain blanks and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

fn thread_state(task: &Path, tty: &Path) -> Option<ThreadState> {
    let (state, _) = state(&task.join("stat"))?;
    match state {
        'S' => {}
        'R' | 'D' => return Some(ThreadState::Busy),
        // A stopped or dead thread does not wait for input.
        _ => return None,
    }
    let Ok(call) = std::fs::read_to_string(task.join("syscall")) else {
        return Some(by_kernel_function(task));
    };
    let mut words = call.split(' ');
    let number = words.next().and_then(|number| number.trim().parse().ok());
    let Some(number) = number else {
        return Some(by_kernel_function(task));
    };
    if READS.contains(&number) {
        let descriptor = words.next().and_then(|word| word.strip_prefix("0x"));
        let descriptor = u32::from_str_radix(descriptor?, 16).ok()?;
        let file = std::fs::read_link(task.join(format!("fd/{descriptor}"))).ok()?;
        let is_terminal = file == tty || file == Path::new("/dev/tty");
        return Some(if is_terminal {
            ThreadState::Reading
        } else {
            ThreadState::Elsewhere
        });
    }
    Some(if POLLS.contains(&number) {
        ThreadState::Polling
    } else {
        ThreadState::Elsewhere
    })
}

/// The state of a thread of another user, such as `sudo`, by its kernel function.
fn by_kernel_function(task: &Path) -> ThreadState {
    let function = std::fs::read_to_string(task.join("wchan")).unwrap_or_default();
    match function.trim() {
        "" | "0" => ThreadState::Hidden,
        name if name.contains("tty_read") || name == "wait_woken" => ThreadState::Reading,
        name if name.contains("poll") || name.contains("select") => ThreadState::Polling,
        _ => ThreadState::Elsewhere,
    }
}

/// The numbers of `read` and `readv`.
#[cfg(target_arch = "x86_64")]
const READS: [i64; 2] = [0, 19];
/// The numbers of `poll`, `select` and similar calls.
#[cfg(target_arch = "x86_64")]
const POLLS: [i64; 7] = [7, 23, 232, 270, 271, 281, 441];

#[cfg(target_arch = "aarch64")]
const READS: [i64; 2] = [63, 65];
#[cfg(target_arch = "aarch64")]
const POLLS: [i64; 4] = [22, 72, 73, 441];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const READS: [i64; 0] = [];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const POLLS: [i64; 0] = [];
