//! The clock and fresh ids as values: the only place that reads time or randomness.

use parking_lot::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use loopd_proto::time::Timestamp;
use ulid::{Generator, Ulid};

/// Tells the time and makes ids, in order even when the wall clock goes back.
#[derive(Debug, Default)]
pub struct Clock {
    generator: Mutex<Generator>,
}

impl Clock {
    /// The wall clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// A clock for measuring, which never goes back.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// An id that was not used before.
    pub fn id(&self) -> Ulid {
        let mut generator = self.generator.lock();
        generator.generate().unwrap_or_else(|_| Ulid::generate())
    }
}
