//! Operations that are safe only in a process with one thread: fork, read signals from a pipe, exit
//! at once. The holder and the keepers of `process` use them; the daemon never does.

#![expect(
    clippy::unused_self,
    reason = "only the holder of the proof may call these methods"
)]
#![expect(
    unsafe_code,
    reason = "the standard library has no fork and no signal handlers"
)]

use std::io::{self, PipeReader};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Pid;

/// The write end of the pipe for received signals.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Writes the signal number to the pipe. If the pipe is full, its reader wakes up anyway.
extern "C" fn on_signal(signal: libc::c_int) {
    let number = [u8::try_from(signal).unwrap_or_default()];
    // SAFETY: `write` and the place of `errno` may be used in a handler; the bytes live here.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(
            SIGNAL_PIPE.load(Ordering::Relaxed),
            number.as_ptr().cast(),
            1,
        );
        *errno = before;
    }
}

/// Proof that this process has one thread.
#[derive(Debug)]
pub(crate) struct SingleThread(());

/// The result of a fork.
#[derive(Debug)]
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

impl SingleThread {
    /// Counts the threads once; the caller must not start a thread afterwards.
    pub(crate) fn check() -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            Ok(Self(()))
        } else {
            Err(io::Error::other(format!("it has {threads} threads")))
        }
    }

    /// Forks this process.
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

    /// Resets inherited signal settings, and returns a pipe from which the signals in `taken` are
    /// read. These signals are handled, not blocked, so that started programs have default
    /// settings.
    pub(crate) fn take_signals(&self, taken: &[rustix::process::Signal]) -> io::Result<PipeReader> {
        let reader = self.open_signal_pipe()?;
        let handler: extern "C" fn(libc::c_int) = on_signal;
        // SAFETY: both structures are plain data for which zeros are valid; they live here; the
        // handler does only what a handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            for number in 1..32 {
                action.sa_sigaction = libc::SIG_DFL;
                if taken.iter().any(|signal| signal.as_raw() == number) {
                    action.sa_sigaction = handler as libc::sighandler_t;
                    // SIGCHLD also says that a child was stopped: the holder continues its keepers.
                    action.sa_flags = libc::SA_RESTART;
                }
                // Fails for signals that cannot be changed, which always have the default.
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

    /// Creates a new signal pipe for this process; a fork must not share that of its parent.
    pub(crate) fn open_signal_pipe(&self) -> io::Result<PipeReader> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // The writer stays open for the signal handler until this process ends.
        SIGNAL_PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
        Ok(reader)
    }

    /// Reads the next signal number from the pipe.
    pub(crate) fn next_signal(&self, signals: &PipeReader) -> Option<i32> {
        let mut number = [0];
        let read = rustix::io::read(signals, &mut number).ok()?;
        let [number] = number;
        (read == 1).then_some(number.into())
    }

    /// Exits without running exit handlers, which belong to the parent.
    pub(crate) fn exit_now(&self) -> ! {
        // SAFETY: ends the process; nothing of it is used afterwards.
        unsafe { libc::_exit(0) }
    }
}

#[cfg(test)]
mod tests;
