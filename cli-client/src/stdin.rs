//! The text on stdin: a prompt, or more to a prompt.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::outcome::WrongUsage;

/// The maximum length of the text on stdin, in bytes.
const LONGEST: u64 = 4 * 1024 * 1024;

/// How long a pipe may stay silent before a given prompt goes without it. A program that starts
/// `loop` may leave its own stdin open and never write to it.
const SILENCE: Duration = Duration::from_secs(3);

/// Returns the prompt with what stdin adds to it. `None` means a conversation: there is no prompt,
/// and stdin is a terminal.
///
/// `notice` is told when stdin stays silent.
pub(crate) fn with_stdin(
    prompt: Option<String>,
    notice: impl FnOnce(&str),
) -> anyhow::Result<Option<String>> {
    if is_folder() {
        return Err(WrongUsage::error(
            "stdin is a folder, which has no text; give a file, or none with </dev/null",
        ));
    }
    let Some(prompt) = prompt else {
        if std::io::stdin().is_terminal() {
            return Ok(None);
        }
        let text = read()?;
        if text.trim().is_empty() {
            return Err(WrongUsage::error(
                "nothing to do: give a prompt, as in loop \"…\", or pipe one in",
            ));
        }
        return Ok(Some(text));
    };
    if !can_bring_text() {
        return Ok(Some(prompt));
    }
    if !speaks_within(SILENCE) {
        notice(
            "loop: stdin is open but brought nothing for 3 seconds, so the prompt goes without it; \
             to give none, use </dev/null",
        );
        return Ok(Some(prompt));
    }
    let text = read()?;
    if text.trim().is_empty() {
        return Ok(Some(prompt));
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Ok(Some(format!("{prompt}\n\n<stdin>\n{text}{end}</stdin>")))
}

/// Reads stdin to its end.
pub(crate) fn read() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .context("stdin cannot be read")?;
    if bytes.len() as u64 > LONGEST {
        bail!(
            "stdin has more than {} MiB; give the name of a file instead, which the agent can read in parts",
            LONGEST / 1024 / 1024
        );
    }
    String::from_utf8(bytes).map_err(|_| {
        anyhow::anyhow!("stdin is not text in UTF-8; give the name of the file instead")
    })
}

/// Returns whether stdin is a file, a pipe or a socket. Terminals and devices like /dev/null bring
/// nothing to a prompt.
#[cfg(unix)]
pub(crate) fn can_bring_text() -> bool {
    use rustix::fs::FileType;
    rustix::fs::fstat(std::io::stdin()).is_ok_and(|facts| {
        let kind = FileType::from_raw_mode(facts.st_mode);
        matches!(
            kind,
            FileType::RegularFile | FileType::Fifo | FileType::Socket
        )
    })
}

#[cfg(unix)]
fn is_folder() -> bool {
    use rustix::fs::FileType;
    rustix::fs::fstat(std::io::stdin())
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
}

#[cfg(not(unix))]
fn is_folder() -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) fn can_bring_text() -> bool {
    !std::io::stdin().is_terminal()
}

/// Returns whether there is something to read, or the end, before the time is over.
#[cfg(unix)]
fn speaks_within(time: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    // If stdin cannot be waited for, reading it gives the reason.
    poll(&mut fds, time.as_ref()).map_or(true, |ready| ready > 0)
}

#[cfg(not(unix))]
fn speaks_within(_time: Duration) -> bool {
    true
}
