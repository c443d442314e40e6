//! Settings of the daemon.

use crate::provider::retry::RetryPolicy;

/// What can be tuned.
#[derive(Debug, Default)]
pub struct Config {
    pub retry: RetryPolicy,
}
