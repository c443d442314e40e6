//! Finds out whether the program in front of a terminal waits for somebody to type, by what its
//! processes are blocked in. Looks once when asked; when to look is decided in `terminal.rs`.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use crate::terminal::run::WaitingFor;

/// How many processes are looked at; more of them are hardly a program that asks something.
const MOST: usize = 256;

/// What a thread is blocked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocked {
    /// Reading from the terminal.
    Reading,
    /// Waiting for any of several descriptors.
    Polling,
    /// Asleep, in what is not ours to see.
    Hidden,
    /// Asleep in something else.
    Elsewhere,
    Busy,
}

/// Says what the program in front waits for, if it waits for input.
pub(super) fn look(terminal: BorrowedFd<'_>, tty: &Path, shell: u32) -> Option<WaitingFor> {
    let modes = tcgetattr(terminal).ok()?.local_modes;
    let front = tcgetpgrp(terminal).ok()?.as_raw_nonzero().get();
    let mut seen = Vec::new();
    for process in family(shell) {
        seen.extend(threads(process, front, tty));
    }
    let any = |blocked| seen.contains(&blocked);
    if seen.is_empty() || any(Blocked::Busy) {
        return None;
    }
    let by_line = modes.contains(LocalModes::ICANON);
    let echoes = modes.contains(LocalModes::ECHO);
    match (by_line, echoes) {
        (false, _) if any(Blocked::Reading) || any(Blocked::Polling) || any(Blocked::Hidden) => {
            Some(WaitingFor::Screen)
        }
        (true, false) if any(Blocked::Reading) || any(Blocked::Hidden) => {
            Some(WaitingFor::Password)
        }
        (true, true) if any(Blocked::Reading) => Some(WaitingFor::Line),
        (true | false, _) => None,
    }
}

/// A process and everything below it.
fn family(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut next = 0;
    while let Some(process) = family.get(next).copied()
        && family.len() < MOST
    {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            family.extend(
                children
                    .split(' ')
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    family
}

/// What the threads of a process are blocked in, if it belongs to the group in front.
fn threads(process: u32, front: i32, tty: &Path) -> Vec<Blocked> {
    let Some((_, group)) = state(Path::new(&format!("/proc/{process}/stat"))) else {
        return Vec::new();
    };
    if group != front {
        return Vec::new();
    }
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let tasks = tasks.flatten().take(MOST);
    tasks
        .filter_map(|task| blocked(&task.path(), tty))
        .collect()
}

/// The state letter and the process group, from a `stat` file.
fn state(file: &Path) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(file).ok()?;
    // The name before may hold blanks and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

fn blocked(task: &Path, tty: &Path) -> Option<Blocked> {
    let (state, _) = state(&task.join("stat"))?;
    match state {
        'S' => {}
        'R' | 'D' => return Some(Blocked::Busy),
        // Stopped or dead, so it waits for nothing we could type.
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
            Blocked::Reading
        } else {
            Blocked::Elsewhere
        });
    }
    Some(if POLLS.contains(&number) {
        Blocked::Polling
    } else {
        Blocked::Elsewhere
    })
}

/// What can be seen of processes that are not ours, such as `sudo`.
fn by_kernel_function(task: &Path) -> Blocked {
    let function = std::fs::read_to_string(task.join("wchan")).unwrap_or_default();
    match function.trim() {
        "" | "0" => Blocked::Hidden,
        name if name.contains("tty_read") || name == "wait_woken" => Blocked::Reading,
        name if name.contains("poll") || name.contains("select") => Blocked::Polling,
        _ => Blocked::Elsewhere,
    }
}

/// The numbers of `read` and `readv`.
#[cfg(target_arch = "x86_64")]
const READS: [i64; 2] = [0, 19];
/// The numbers of `poll`, `select` and their kin.
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
