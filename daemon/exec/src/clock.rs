//! The clock and new ids: the only module that reads time or randomness.

use parking_lot::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use loopd_proto::time::Timestamp;
use ulid::{Generator, Ulid};

/// Tells the time and makes ids, which grow even if the wall clock goes back.
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

    /// The monotonic clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// Returns a new unique id.
    pub fn id(&self) -> Ulid {
        let mut generator = self.generator.lock();
        generator.generate().unwrap_or_else(|_| Ulid::generate())
    }
}
