//! The vendors of models and what they share.
//!
//! A vendor is a folder that says three things: how a request is written (`request`), how a reply
//! is read (`reply`) and what an entry of its model list means (`models`). It says them through
//! [`Vendor`] and [`VendorReply`]. The rest of a call is the same for all vendors and is here:
//! [`VendorProvider`] sends, `reading` reads whole replies and streams, and the reply is completed.
//!
//! A new vendor is a new folder, a variant of [`VendorFormat`] and an arm in [`connect`].

mod anthropic;
mod openai;
mod openai_chat;
mod openai_responses;
mod reading;

use loopd_proto::parse_error::plain;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use loopd_kernel::model::{Finish, ModelInfo, ModelMessage, ModelReply, ModelRequest, Reasoning};

use crate::endpoint::{Endpoint, Outgoing};
use crate::error::ProviderError;
use crate::http::Expecting;
use crate::{DeltaSink, EndpointDescription, NoDeltas, Provider, call_ids, error_body};

pub use anthropic::Citations;
pub use openai_chat::Flavor;

/// The formats that vendors speak, each with what it has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorFormat {
    OpenAiChat(Flavor),
    OpenAiResponses,
    Anthropic(Citations),
}

/// Makes the provider for an endpoint; nothing is sent.
///
/// `max_output_tokens` limits the length of replies; without it the vendor or its server decides.
pub fn connect(
    format: VendorFormat,
    name: String,
    endpoint: Endpoint,
    max_output_tokens: Option<u64>,
) -> Arc<dyn Provider> {
    match format {
        VendorFormat::OpenAiChat(flavor) => {
            let address = endpoint.public_url();
            let vendor = openai_chat::OpenAiChat::new(flavor, &address, max_output_tokens);
            provider(name, endpoint, vendor)
        }
        VendorFormat::OpenAiResponses => {
            let vendor = openai_responses::OpenAiResponses { max_output_tokens };
            provider(name, endpoint, vendor)
        }
        VendorFormat::Anthropic(citations) => {
            let vendor = anthropic::Anthropic {
                citations,
                max_output_tokens,
            };
            provider(name, endpoint, vendor)
        }
    }
}

fn provider<V: Vendor>(name: String, endpoint: Endpoint, vendor: V) -> Arc<dyn Provider> {
    Arc::new(VendorProvider {
        name,
        endpoint,
        vendor,
    })
}

/// What a vendor says about its requests and its models.
trait Vendor: Send + Sync + 'static {
    type Reply: VendorReply;

    /// The vendor family, as [`EndpointDescription`] shows it.
    const PROVIDER_TYPE: &'static str;
    /// The format within the family.
    const WIRE_API: Option<&'static str>;
    /// Where model calls go, below the base address.
    const PATH: &'static str;
    /// Where the list of models is, below the base address.
    const MODELS_PATH: &'static str = "/models";
    const MODELS_QUERY: &'static [(&'static str, &'static str)] = &[];

    /// Lists the headers that the vendor wants; without a request, those for the list of models.
    fn headers(&self, _request: Option<&ModelRequest>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Writes the body of a model call.
    fn body(&self, request: &ModelRequest) -> serde_json::Result<Vec<u8>>;

    /// Reads one entry of the list of models; none for entries that are no models for a chat.
    fn model_info(id: &str, entry: &Value) -> Option<ModelInfo>;
}

/// What has arrived of a reply, and how its vendor reads it. It does no IO.
///
/// Errors inside a reply never come here: `error_body` finds them first.
trait VendorReply: Default + Send {
    /// Whether the mark `[DONE]` ends a stream even if the model has not said why it stopped.
    const ENDS_AT_DONE_MARK: bool = false;

    /// Takes a reply that came at once and passes its text on to the sink.
    fn take_whole(
        &mut self,
        document: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<(), ProviderError>;

    /// Takes one event of a stream and passes its text on to the sink.
    fn take_event(
        &mut self,
        event: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<Progress, ProviderError>;

    /// Whether anything of an answer has come. Asked only at the mark `[DONE]`.
    fn has_begun(&self) -> bool {
        true
    }

    /// Ends the reading. The ids of calls are those of the server, and a reply with calls may still
    /// say that it stopped: [`complete`] puts both right.
    fn build(self) -> ModelReply;
}

/// How far the reading of a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The model has not said that it stopped.
    Unfinished,
    /// The model has stopped; token counts may still come, but the reply is usable without them.
    Finished,
    /// Nothing more can come.
    Complete,
}

/// A provider that speaks one vendor's format at one endpoint.
struct VendorProvider<V> {
    name: String,
    endpoint: Endpoint,
    vendor: V,
}

impl<V: Vendor> VendorProvider<V> {
    async fn exchange(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ProviderError> {
        let body = self.vendor.body(request).map_err(|failure| {
            ProviderError::misconfigured(format!(
                "the conversation cannot be written as JSON: {failure}"
            ))
        })?;
        let outgoing = Outgoing {
            path: V::PATH,
            query: &[],
            defaults: &self.vendor.headers(Some(request)),
            extra: &request.headers,
            expecting: request.delivery.into(),
        };
        let answer = self.endpoint.post(outgoing, body).await?;
        let provider_call_id = error_body::call_id(&answer.reply.headers);
        let reply: V::Reply = reading::read(answer, request.delivery, sink).await?;
        Ok(ModelReply {
            provider_call_id,
            ..complete(reply.build(), request)
        })
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let outgoing = Outgoing {
            path: V::MODELS_PATH,
            query: V::MODELS_QUERY,
            defaults: &self.vendor.headers(None),
            extra: &[],
            expecting: Expecting::Listing,
        };
        let mut answer = self.endpoint.get(outgoing).await?;
        let body = reading::whole_body(&mut answer.reply, &mut NoDeltas).await?;
        model_list(&body, V::model_info)
    }
}

impl<V: Vendor> Provider for VendorProvider<V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        self.exchange(request, sink).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        self.list().boxed()
    }

    fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            provider_type: V::PROVIDER_TYPE,
            wire_api: V::WIRE_API,
            base_url: Some(self.endpoint.public_url()),
            path: Some(V::PATH),
        }
    }
}

/// Makes a reply usable: its call ids are unique in the conversation, and empty thinking is none.
fn complete(mut reply: ModelReply, request: &ModelRequest) -> ModelReply {
    call_ids::make_unique(&mut reply.turn.calls, request);
    reply
        .turn
        .reasoning
        .take_if(|reasoning| *reasoning == Reasoning::default());
    if reply.finish == Finish::Stop && !reply.turn.calls.is_empty() {
        reply.finish = Finish::ToolCalls;
    }
    reply
}

/// Reads a list of models in the server's order; entries without an id are left out.
fn model_list(
    body: &[u8],
    model_info: fn(&str, &Value) -> Option<ModelInfo>,
) -> Result<Vec<ModelInfo>, ProviderError> {
    let document: Value = serde_json::from_slice(body).map_err(|failure| {
        ProviderError::malformed(format!(
            "the list of models is not JSON: {}",
            plain(&failure)
        ))
    })?;
    // Most servers send an object with `data`; a few send the list itself.
    let list = document
        .get("data")
        .unwrap_or(&document)
        .as_array()
        .ok_or_else(|| ProviderError::malformed("the list of models has no `data`"))?;
    Ok(list
        .iter()
        .filter_map(|entry| match word(entry, "id") {
            "" => None,
            id => model_info(id, entry),
        })
        .collect())
}

/// Lists the texts of the system messages, for formats that keep them apart from the conversation.
fn system_texts(messages: &[ModelMessage]) -> impl Iterator<Item = &str> {
    messages.iter().filter_map(|message| match message {
        ModelMessage::System(text) => Some(text.as_str()),
        ModelMessage::User(_) | ModelMessage::Assistant(_) | ModelMessage::ToolResult { .. } => {
            None
        }
    })
}

/// Reads a member that is a text; anything else counts as empty.
fn word<'a>(holder: &'a Value, name: &str) -> &'a str {
    holder.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
