//! What the two formats of OpenAI share: the list of models, token counts and parts of requests.
//!
//! `openai_chat` and `openai_responses` call it.

pub(super) mod models;

use std::borrow::Cow;

use serde_json::{Value, json};

use loopd_kernel::model::{ToolSpec, Usage};

/// Takes the token counts of a reply and what the Copilot API charges for it.
pub(super) fn take_usage(kept: &mut Usage, usage: Option<&Value>, charged: Option<&Value>) {
    if let Some(usage) = usage.filter(|usage| usage.is_object()) {
        *kept = Usage {
            nano_credits: kept.nano_credits,
            ..read_usage(usage)
        };
    }
    let charged = charged.and_then(|charged| charged.get("total_nano_aiu"));
    if let Some(nano_credits) = charged.and_then(Value::as_u64) {
        kept.nano_credits = nano_credits;
    }
}

/// Reads the counts under the names of both formats and of compatible servers.
fn read_usage(usage: &Value) -> Usage {
    let count = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| usage.pointer(pointer).and_then(Value::as_u64))
            .unwrap_or(0)
    };
    Usage {
        input_tokens: count(&["/prompt_tokens", "/input_tokens"]),
        output_tokens: count(&["/completion_tokens", "/output_tokens"]),
        cache_read_tokens: count(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
        ]),
        cache_write_tokens: count(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_input_tokens",
            "/cache_creation_input_tokens",
        ]),
        reasoning_tokens: count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ]),
        nano_credits: 0,
    }
}

/// Gives the schema of a tool's arguments, also for a tool that takes none.
pub(super) fn parameters(tool: &ToolSpec) -> Cow<'_, Value> {
    if tool.parameters.is_null() {
        Cow::Owned(json!({ "type": "object", "properties": {} }))
    } else {
        Cow::Borrowed(&tool.parameters)
    }
}

/// Writes a file as an address that contains it.
pub(super) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}
