//! How long sessions wait for providers: the table `[limits]` of `config.toml`.

use std::time::Duration;

use loopd_kernel::decide::provider_wait::ProviderWaits;
use loopd_model::retry::RetryPolicy;
use schemars::JsonSchema;
use serde::Deserialize;

/// How many seconds are waited when a provider takes no requests for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WaitSettings {
    /// A model call waits so many seconds when its provider asks for it.
    retry_wait: u32,
    /// A turn waits so many seconds, also across restarts; 0: it fails at once.
    provider_wait: u32,
}

impl Default for WaitSettings {
    fn default() -> Self {
        Self {
            retry_wait: 60,
            provider_wait: 24 * 60 * 60,
        }
    }
}

impl WaitSettings {
    pub fn for_turns(self) -> ProviderWaits {
        ProviderWaits {
            within_call: self.retry_wait.into(),
            longest: self.provider_wait.into(),
        }
    }

    pub(super) fn for_calls(self) -> RetryPolicy {
        RetryPolicy {
            longest_wait: Duration::from_secs(self.retry_wait.into()),
            ..RetryPolicy::default()
        }
    }
}
