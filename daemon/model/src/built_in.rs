//! What the built-in models share: they have a name but no address, and a reply is a turn.
//!
//! `offline` and `replay` call it.

use loopd_kernel::model::{
    AssistantTurn, Finish, ImageLimits, ModelInfo, ModelReply, ModelRequest, Usage,
};

use super::EndpointDescription;

const CONTEXT_TOKENS: u64 = 128_000;

pub(super) fn describe(model: &'static str) -> EndpointDescription {
    EndpointDescription {
        provider_type: model,
        wire_api: None,
        base_url: None,
        path: None,
    }
}

/// Describes a built-in model that sees no images.
pub(super) fn model_info(model: &str, name: &str) -> ModelInfo {
    ModelInfo {
        id: model.to_owned(),
        name: name.to_owned(),
        vision: false,
        images: ImageLimits::default(),
        max_context_tokens: Some(CONTEXT_TOKENS),
        max_output_tokens: None,
        reasoning_efforts: Vec::new(),
    }
}

/// Makes a reply of a turn; its id names the model and the length of the conversation.
pub(super) fn reply(
    model: &str,
    request: &ModelRequest,
    turn: AssistantTurn,
    usage: Usage,
) -> ModelReply {
    let finish = if turn.calls.is_empty() {
        Finish::Stop
    } else {
        Finish::ToolCalls
    };
    ModelReply {
        turn,
        usage,
        finish,
        api_call_id: Some(format!("{model}-{}", request.messages.len())),
        provider_call_id: None,
    }
}
