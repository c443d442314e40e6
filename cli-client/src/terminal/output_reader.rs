//! Whoever reads stdout through a pipe or a socket. When that program has gone, nothing that is printed
//! arrives any more.

use std::sync::OnceLock;

use tokio::sync::watch;

/// The other end of stdout. Clones share it.
#[derive(Clone)]
pub(crate) struct OutputReader(watch::Receiver<bool>);

impl OutputReader {
    pub(super) fn of_stdout() -> Self {
        static READER: OnceLock<OutputReader> = OnceLock::new();
        READER.get_or_init(Self::watched).clone()
    }

    /// Begins to watch it, as long as the process lives.
    fn watched() -> Self {
        let (is_gone, reader) = watch::channel(false);
        if is_pipe() {
            // The runtime only waits for descriptors that it owns.
            std::thread::spawn(move || {
                if wait_until_closed() {
                    is_gone.send_replace(true);
                }
            });
        }
        Self(reader)
    }

    /// Waits until nobody reads any more. Does not return if that cannot be known.
    pub(crate) async fn gone(&self) {
        let mut reader = self.0.clone();
        if reader.wait_for(|is_gone| *is_gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn is_pipe() -> bool {
    use rustix::fs::FileType;
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|facts| {
        let kind = FileType::from_raw_mode(facts.st_mode);
        matches!(kind, FileType::Fifo | FileType::Socket)
    })
}

/// Returns whether the other end was closed; `false` if that cannot be known.
#[cfg(unix)]
fn wait_until_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    let stdout = std::io::stdout();
    loop {
        // Asked for nothing, it tells only of errors and of the end.
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) => {
                let [polled] = polled;
                let is_closed = PollFlags::ERR | PollFlags::HUP;
                return polled.revents().intersects(is_closed);
            }
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(not(unix))]
fn is_pipe() -> bool {
    false
}

#[cfg(not(unix))]
fn wait_until_closed() -> bool {
    false
}
