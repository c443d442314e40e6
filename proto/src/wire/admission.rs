//! How far the other side of a connection is trusted. A side that is not admitted yet may send small
//! frames only, and its first malformed frame ends the connection. Shared by the peer, whose owner
//! admits the other side, and the reader of frames.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest frame of an admitted side that is skipped, so that the connection goes on. It is
/// longer than the longest one that is read.
const SKIP_LIMIT: u64 = 1024 * 1024 * 1024;

/// The limits for the frames of one connection at this moment.
#[derive(Debug)]
pub(super) struct Admission {
    /// The limit for an admitted side.
    full_limit: usize,
    /// The limit in force.
    frame_limit: AtomicUsize,
}

impl Admission {
    /// The other side is admitted from the start.
    pub(super) fn new(full_limit: usize) -> Self {
        Self {
            full_limit,
            frame_limit: AtomicUsize::new(full_limit),
        }
    }

    /// Reads only frames up to this size from now on.
    pub(super) fn restrict(&self, frame_limit: usize) {
        let limit = frame_limit.min(self.full_limit.saturating_sub(1));
        self.frame_limit.store(limit, Ordering::Release);
    }

    pub(super) fn admit(&self) {
        self.frame_limit.store(self.full_limit, Ordering::Release);
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.frame_limit() == self.full_limit
    }

    pub(super) fn frame_limit(&self) -> usize {
        self.frame_limit.load(Ordering::Acquire)
    }

    /// Returns the size up to which a frame that is too large is skipped.
    pub(super) fn skip_limit(&self) -> u64 {
        if self.is_admitted() { SKIP_LIMIT } else { 0 }
    }
}
