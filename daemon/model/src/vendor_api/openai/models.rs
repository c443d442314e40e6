//! Reads entries of a list of models, as the Copilot API and other compatible servers write them.
//!
//! What a server does not say stays unknown.

use serde_json::Value;

use loopd_kernel::model::{ImageFormats, ImageLimits, ModelInfo};

/// Reads one entry of the list of models.
pub(in crate::vendor_api) fn model_info(id: &str, model: &Value) -> Option<ModelInfo> {
    is_chat(model).then(|| described(id, model))
}

/// Leaves out models that only make embeddings and the like, where the server says so.
fn is_chat(model: &Value) -> bool {
    model
        .pointer("/capabilities/type")
        .and_then(Value::as_str)
        .is_none_or(|kind| kind == "chat")
}

fn sees_images(model: &Value) -> bool {
    let supported = model.pointer("/capabilities/supports/vision");
    let modalities = model.pointer("/architecture/input_modalities");
    supported.and_then(Value::as_bool).unwrap_or(false)
        || modalities
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(|modality| modality == "image"))
}

fn image_limits(model: &Value) -> ImageLimits {
    let vision = model.pointer("/capabilities/limits/vision");
    let number = |name: &str| vision?.get(name)?.as_u64().filter(|number| *number > 0);
    let types = vision.and_then(|vision| vision.get("supported_media_types")?.as_array());
    ImageLimits {
        bytes: number("max_prompt_image_size"),
        count: number("max_prompt_images"),
        formats: types.and_then(|types| ImageFormats::of(types.iter().filter_map(Value::as_str))),
    }
}

fn described(id: &str, model: &Value) -> ModelInfo {
    let number = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| model.pointer(pointer).and_then(Value::as_u64))
    };
    ModelInfo {
        id: id.to_owned(),
        name: model
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or(id)
            .to_owned(),
        vision: sees_images(model),
        images: image_limits(model),
        max_context_tokens: number(&[
            "/capabilities/limits/max_context_window_tokens",
            "/context_length",
            "/max_model_len",
            "/meta/n_ctx",
            "/meta/n_ctx_train",
        ]),
        max_output_tokens: number(&[
            "/capabilities/limits/max_output_tokens",
            "/top_provider/max_completion_tokens",
        ]),
        reasoning_efforts: model
            .pointer("/capabilities/supports/reasoning_effort")
            .and_then(Value::as_array)
            .map(|efforts| {
                efforts
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
