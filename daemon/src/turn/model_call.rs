//! One model call as an effect: streams deltas to the audience, retries, ends in a command.

use std::sync::Arc;
use std::time::Instant;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::fact::CountedTokens;
use loopd_proto::event::session::{Info, UsageInfo};
use loopd_proto::event::turn::{
    MessageDelta, MessageStart, ModelCallStart, ReasoningDelta, StreamingDelta, TurnRetry,
};
use loopd_proto::id::{EventId, MessageId, SessionId};

use super::argument_limit::limit_arguments;
use super::route::{Route, failure};
use super::strip_images;
use crate::publish::{Audience, say};
use crate::services::Services;
use loopd_kernel::command::{Command, LostCall, ModelReplied};
use loopd_kernel::context_size::RequestSize;
use loopd_kernel::context_window::ContextWindow;
use loopd_kernel::model::{AssistantTurn, ModelMessage, ModelRequest, Usage};
use loopd_kernel::state::TurnKey;
use loopd_kernel::usage::{self, LostAttempts, SentTokens};
use loopd_model::retry::{RetryNotice, RetrySink, call_with_retries};
use loopd_model::{DeltaSink, ProviderError};

/// How many bytes arrive between two progress events.
const PROGRESS_STEP: u64 = 4 * 1024;

pub struct ModelCallInput {
    pub turn: TurnKey,
    pub request: ModelRequest,
    pub message: MessageId,
    pub session: SessionId,
    pub tip: Option<EventId>,
    pub audience: Audience,
    pub services: Arc<Services>,
    pub route: Route,
    /// What the request has by our own count.
    pub counted: CountedTokens,
    /// What it will have by the model's.
    pub size: RequestSize,
    pub window: ContextWindow,
    /// What attempts used so far that gave no reply.
    pub lost: LostAttempts,
}

impl ModelCallInput {
    /// Estimates the input tokens of the request.
    pub fn estimated_tokens(&self) -> u64 {
        usage_info(self).current_tokens
    }

    /// Tells clients that the call waits for others under the limits of its session.
    pub fn waits(&self) {
        let waits = Ephemeral::SessionInfo(Info {
            info_type: "session_limits".to_owned(),
            message: "A model call waits: other calls under way have reserved what the limits of the session leave."
                .to_owned(),
            url: None,
            tip: None,
        });
        say(
            &self.services.clock,
            &self.audience,
            &self.session,
            self.tip.clone(),
            &waits,
        );
    }
}

/// Makes the call; always ends in a reply or a failure. After a failure the call can be made again
/// with the same input.
pub async fn call(input: &mut ModelCallInput) -> Command {
    let model = input.request.model.clone();
    let chosen = match input.route.choose(&model).await {
        Ok(chosen) => chosen,
        Err(failure) => {
            return Command::ModelFailed {
                turn: input.turn.clone(),
                failure,
                lost: None,
            };
        }
    };
    let provider = chosen.provider;
    let started = input.services.clock.instant();
    let mut publisher = DeltaPublisher {
        session: input.session.clone(),
        tip: input.tip.clone(),
        audience: input.audience.clone(),
        services: input.services.clone(),
        turn: input.turn.clone(),
        model: model.clone(),
        message: input.message.clone(),
        began: false,
        progress: 0,
        started,
        first_token_ms: None,
        sent: SentTokens::default(),
        most_output: input.request.max_output_tokens,
        arrived: Arrived::default(),
        lost: input.lost,
    };
    publisher.say(&Ephemeral::UsageInfo(usage_info(input)));
    publisher.say(&Ephemeral::ModelCallStart(ModelCallStart {
        turn_id: input.turn.turn_id(),
        model: Some(model.clone()),
    }));
    let about = provider.describe();
    let known = input.route.known_model(&model);
    let most_images = known.and_then(|known| known.images.count);
    let estimated = input.estimated_tokens();
    let request = &mut input.request;
    request.model = chosen.wire_model;
    if chosen.facts.vision == Some(false) {
        strip_images::strip_images(&mut request.messages);
    } else if let Some(most) = most_images {
        strip_images::keep_newest(&mut request.messages, most);
    }
    publisher.sent = match request.max_output_tokens {
        Some(_) => SentTokens::limited(estimated, &request.messages),
        None => SentTokens::new(estimated),
    };
    let clock = input.services.clone();
    let mut random = move || fraction(clock.clock.id().0);
    let policy = &input.services.config.retry;
    let outcome = call_with_retries(
        policy,
        provider.as_ref(),
        request,
        &mut publisher,
        &mut random,
    )
    .await;
    let elapsed = input.services.clock.instant().duration_since(started);
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let price = input.services.config.prices.of(&model);
    match outcome {
        Ok(mut reply) => {
            // The built-in models count for themselves.
            let counted = about
                .path
                .and_then(|_| publisher.counted(&reply.turn, reply.usage));
            let reported = counted.map(|counted| std::mem::replace(&mut reply.usage, counted));
            limit_arguments(&mut reply.turn.calls);
            let nano_usd = price.map_or(0, |price| price.cost(&reply.usage));
            Command::ModelReplied(Box::new(ModelReplied {
                turn: input.turn.clone(),
                message: input.message.clone(),
                model,
                reply,
                duration_ms,
                first_token_ms: publisher.first_token_ms,
                endpoint: about.path.map(str::to_owned),
                tool_count: request.tools.len() as u64,
                initiator: initiator(request),
                nano_usd,
                counted: input.counted,
                reported,
            }))
        }
        Err(error) => {
            publisher.broke_off(&error);
            input.lost = publisher.lost;
            let lost = publisher.lost.usage().map(|usage| {
                Box::new(LostCall {
                    model: model.clone(),
                    usage,
                    nano_usd: price.map_or(0, |price| price.cost(&usage)),
                    duration_ms,
                })
            });
            let failure = failure(&error, Some(&model));
            request.model = model;
            Command::ModelFailed {
                turn: input.turn.clone(),
                failure,
                lost,
            }
        }
    }
}

fn initiator(request: &ModelRequest) -> &'static str {
    match request.messages.last() {
        Some(ModelMessage::ToolResult { .. }) => "agent",
        _ => "user",
    }
}

/// Turns the random half of an id into a number from 0 to 1.
pub(super) fn fraction(id: u128) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are wanted"
    )]
    let low = id as u32;
    f64::from(low) / f64::from(u32::MAX)
}

fn usage_info(input: &ModelCallInput) -> UsageInfo {
    UsageInfo {
        token_limit: input.window.limit,
        current_tokens: input.size.total(),
        messages_length: input.request.messages.len() as u64,
        system_tokens: input.size.system,
        conversation_tokens: input.size.conversation,
        tool_definitions_tokens: input.size.tools,
        is_initial: input.turn.number == 0,
    }
}

/// Publishes the parts of a reply as they arrive.
struct DeltaPublisher {
    session: SessionId,
    tip: Option<EventId>,
    audience: Audience,
    services: Arc<Services>,
    turn: TurnKey,
    model: String,
    message: MessageId,
    began: bool,
    progress: u64,
    started: Instant,
    first_token_ms: Option<f64>,
    /// What an attempt sends.
    sent: SentTokens,
    /// The most tokens that the reply may have, under limits.
    most_output: Option<u64>,
    arrived: Arrived,
    lost: LostAttempts,
}

/// The bytes that arrived in the current attempt.
#[derive(Debug, Clone, Copy, Default)]
struct Arrived {
    /// Those of the text, which only a stream shows.
    text: u64,
    all: u64,
}

impl DeltaPublisher {
    /// Returns what the call used, if that is not what was reported.
    fn counted(&self, answer: &AssistantTurn, reported: Usage) -> Option<Usage> {
        usage::counted(reported, self.sent, answer, self.lost)
    }

    /// Counts an attempt whose reply broke off. A provider that refused has not worked.
    fn broke_off(&mut self, error: &ProviderError) {
        let arrived = std::mem::take(&mut self.arrived);
        if error.status().is_some() || arrived.all == 0 && arrived.text == 0 {
            return;
        }
        let bytes = if arrived.text > 0 {
            arrived.text
        } else {
            arrived.all
        };
        let most = self.most_output.unwrap_or(u64::MAX);
        self.lost
            .add(self.sent.estimate, bytes.div_ceil(4).min(most));
    }

    fn say(&self, event: &Ephemeral) {
        say(
            &self.services.clock,
            &self.audience,
            &self.session,
            self.tip.clone(),
            event,
        );
    }

    fn begin(&mut self) {
        if self.began {
            return;
        }
        self.began = true;
        let elapsed = self.services.clock.instant().duration_since(self.started);
        self.first_token_ms = Some(elapsed.as_secs_f64() * 1_000.0);
        self.say(&Ephemeral::MessageStart(MessageStart {
            message_id: self.message.clone(),
        }));
    }
}

impl DeltaSink for DeltaPublisher {
    fn text(&mut self, delta: &str) {
        self.arrived.text += delta.len() as u64;
        self.begin();
        self.say(&Ephemeral::MessageDelta(MessageDelta {
            message_id: self.message.clone(),
            delta_content: delta.to_owned(),
        }));
    }

    fn reasoning(&mut self, delta: &str) {
        self.arrived.text += delta.len() as u64;
        self.say(&Ephemeral::ReasoningDelta(ReasoningDelta {
            reasoning_id: self.message.to_string(),
            delta_content: delta.to_owned(),
        }));
    }

    fn received(&mut self, total_bytes: u64) {
        self.arrived.all = total_bytes;
        if self.began && total_bytes >= self.progress + PROGRESS_STEP {
            self.progress = total_bytes;
            self.say(&Ephemeral::StreamingDelta(StreamingDelta {
                total_response_size_bytes: total_bytes,
            }));
        }
    }
}

impl RetrySink for DeltaPublisher {
    fn retrying(&mut self, notice: &RetryNotice<'_>) {
        self.began = false;
        self.progress = 0;
        self.broke_off(notice.error);
        self.say(&Ephemeral::TurnRetry(TurnRetry {
            turn_id: self.turn.turn_id(),
            model: Some(self.model.clone()),
            reason: Some(format!(
                "attempt {} of {} failed, next in {:.1} s: {}",
                notice.attempt,
                notice.attempts,
                notice.wait.as_secs_f64(),
                notice.error
            )),
        }));
    }
}
