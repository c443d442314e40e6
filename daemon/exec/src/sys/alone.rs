//! What only a process with one thread may do: copy itself, take its signals as data, leave at once.
//! Used by the holder and the keepers of `process`; never by the daemon itself.

#![expect(
    clippy::unused_self,
    reason = "who has no proof of being alone cannot call any of it"
)]
#![expect(
    unsafe_code,
    reason = "the standard library has no word for fork and signal handlers"
)]

use std::io::{self, PipeReader};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Pid;

/// The pipe that signals are noted in.
static NOTES: AtomicI32 = AtomicI32::new(-1);

/// Notes a signal; a full pipe holds enough notes to wake its reader.
extern "C" fn note(signal: libc::c_int) {
    let number = [u8::try_from(signal).unwrap_or_default()];
    // SAFETY: `write` and the place of `errno` may be used in a handler; the bytes live here.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(NOTES.load(Ordering::Relaxed), number.as_ptr().cast(), 1);
        *errno = before;
    }
}

/// The proof that this process has one thread; it never starts another.
#[derive(Debug)]
pub(crate) struct Alone(());

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

impl Alone {
    /// Looks once; who holds the proof starts no threads.
    pub(crate) fn check() -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            Ok(Self(()))
        } else {
            Err(io::Error::other(format!("it has {threads} threads")))
        }
    }

    /// Copies this process.
    pub(crate) fn fork(&self) -> io::Result<Fork> {
        // SAFETY: with one thread there is no lock that another one could hold in the copy.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(Fork::Child),
            pid => Pid::from_raw(pid)
                .map(Fork::Parent)
                .ok_or_else(|| io::Error::other("fork returned no pid")),
        }
    }

    /// Undoes what the starter of this process did to its signals, and takes these as data from a
    /// pipe from now on. They are handled, not blocked: a program that is started has its defaults.
    pub(crate) fn take_signals(&self, taken: &[rustix::process::Signal]) -> io::Result<PipeReader> {
        let reader = self.take_notes()?;
        let handler: extern "C" fn(libc::c_int) = note;
        // SAFETY: both structures are plain data for which zeros are valid; they live here; the
        // handler does only what a handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            for number in 1..32 {
                action.sa_sigaction = libc::SIG_DFL;
                if taken.iter().any(|signal| signal.as_raw() == number) {
                    action.sa_sigaction = handler as libc::sighandler_t;
                    action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
                }
                // Fails for those that cannot be changed, which have their default.
                libc::sigaction(number, &raw const action, std::ptr::null_mut());
            }
            let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
            libc::sigemptyset(none.as_mut_ptr());
            if libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(reader)
    }

    /// Gives a copy of a process that takes its signals as data a pipe of its own for them.
    pub(crate) fn take_notes(&self) -> io::Result<PipeReader> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // The writer stays open for the handler, for as long as this process lives.
        NOTES.store(writer.into_raw_fd(), Ordering::Relaxed);
        Ok(reader)
    }

    /// Takes the next signal from the pipe of `take_signals`.
    pub(crate) fn next_signal(&self, signals: &PipeReader) -> Option<i32> {
        let mut number = [0];
        let read = rustix::io::read(signals, &mut number).ok()?;
        let [number] = number;
        (read == 1).then_some(number.into())
    }

    /// Ends this process without a word to whom it was copied from.
    pub(crate) fn leave(&self) -> ! {
        // SAFETY: ends the process; nothing of it is used afterwards.
        unsafe { libc::_exit(0) }
    }
}

#[cfg(test)]
mod tests;
