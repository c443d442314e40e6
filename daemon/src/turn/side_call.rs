//! One model call beside the conversation: the daemon asks, no client sees a message of it, and what it
//! used is told apart in the log.

use std::sync::Arc;

use super::model_call::fraction;
use super::route::{Route, failure};
use super::strip_images;
use crate::services::Services;
use loopd_kernel::command::{ModelFailure, SideUsage};
use loopd_kernel::model::{Finish, ModelRequest};
use loopd_kernel::usage::{self, LostAttempts, SentTokens};
use loopd_model::retry::{RetryNotice, RetrySink, call_with_retries};
use loopd_model::{DeltaSink, ProviderError};

/// What is asked, and how.
pub struct SideCall {
    pub request: ModelRequest,
    pub route: Route,
    pub services: Arc<Services>,
    /// How many tokens the request has, about.
    pub sent: u64,
}

/// What the model said.
pub struct SideReply {
    pub text: String,
    pub finish: Finish,
    pub provider_call_id: Option<String>,
    pub used: SideUsage,
}

/// Why the model said nothing.
pub struct SideFailure {
    pub failure: ModelFailure,
    /// What replies that broke off used.
    pub used: Option<SideUsage>,
}

/// Makes the call.
pub async fn call(mut input: SideCall) -> Result<SideReply, SideFailure> {
    let model = input.request.model.clone();
    let chosen = input.route.choose(&model).await;
    let chosen = chosen.map_err(|failure| SideFailure {
        failure,
        used: None,
    })?;
    let clock = &input.services.clock;
    let started = clock.instant();
    let request = &mut input.request;
    request.model = chosen.wire_model;
    if chosen.facts.vision == Some(false) {
        strip_images::strip_images(&mut request.messages);
    }
    let mut heard = Heard {
        sent: SentTokens::limited(input.sent, &request.messages),
        most_output: request.max_output_tokens,
        arrived: 0,
        lost: LostAttempts::default(),
    };
    let ids = input.services.clone();
    let mut random = move || fraction(ids.clock.id().0);
    let policy = &input.services.config.retry;
    let provider = chosen.provider.as_ref();
    let outcome = call_with_retries(policy, provider, request, &mut heard, &mut random).await;
    let elapsed = clock.instant().duration_since(started);
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let price = input.services.config.prices.of(&model);
    let used = |usage, estimated| SideUsage {
        model: model.clone(),
        usage,
        estimated,
        duration_ms,
        nano_usd: price.map_or(0, |price| price.cost(&usage)),
    };
    match outcome {
        Ok(reply) => {
            // The built-in models count for themselves.
            let counts = provider.describe().path.is_some();
            let counted = usage::counted(reply.usage, heard.sent, &reply.turn, heard.lost);
            let counted = counted.filter(|_| counts);
            Ok(SideReply {
                used: used(counted.unwrap_or(reply.usage), counted.is_some()),
                text: reply.turn.text,
                finish: reply.finish,
                provider_call_id: reply.provider_call_id,
            })
        }
        Err(error) => {
            heard.broke_off(&error);
            Err(SideFailure {
                failure: failure(&error, Some(&model)),
                used: heard.lost.usage().map(|usage| used(usage, true)),
            })
        }
    }
}

/// Counts what arrives. Nobody is shown it.
struct Heard {
    sent: SentTokens,
    most_output: Option<u64>,
    arrived: u64,
    lost: LostAttempts,
}

impl Heard {
    /// Counts an attempt whose reply broke off. A provider that refused has not worked.
    fn broke_off(&mut self, error: &ProviderError) {
        let arrived = std::mem::take(&mut self.arrived);
        if error.status().is_none() && arrived > 0 {
            let most = self.most_output.unwrap_or(u64::MAX);
            self.lost
                .add(self.sent.estimate, arrived.div_ceil(4).min(most));
        }
    }
}

impl DeltaSink for Heard {
    fn text(&mut self, _: &str) {}

    fn reasoning(&mut self, _: &str) {}

    fn received(&mut self, total_bytes: u64) {
        self.arrived = total_bytes;
    }
}

impl RetrySink for Heard {
    fn retrying(&mut self, notice: &RetryNotice<'_>) {
        self.broke_off(notice.error);
    }
}
