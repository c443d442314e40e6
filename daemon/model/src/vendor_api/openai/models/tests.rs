//! Lists of models.

use super::*;
use crate::error::ProviderError;
use crate::vendor_api::model_list;

fn parse(body: &[u8]) -> Result<Vec<ModelInfo>, ProviderError> {
    model_list(body, model_info)
}

fn bare(id: &str) -> ModelInfo {
    ModelInfo {
        id: id.to_owned(),
        name: id.to_owned(),
        vision: false,
        images: ImageLimits::default(),
        max_context_tokens: None,
        max_output_tokens: None,
        reasoning_efforts: Vec::new(),
    }
}

#[test]
fn a_plain_list_has_ids_only() {
    let body = br#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":""},{"name":"no id"}]}"#;
    assert_eq!(parse(body), Ok(vec![bare("b"), bare("a")]));
}

#[test]
fn a_copilot_list_says_what_models_can_do() {
    let body = br#"{"data":[
        {"id":"claude","name":"Claude","capabilities":{"type":"chat",
            "supports":{"vision":true,"reasoning_effort":["low","high"]},
            "limits":{"max_context_window_tokens":128000,"max_output_tokens":16000,"vision":{
                "supported_media_types":["image/png","image/x"],"max_prompt_images":5,"max_prompt_image_size":3145728}}}},
        {"id":"small","name":"Small","capabilities":{"supports":{"reasoning_effort":true},"limits":{}}},
        {"id":"embed","capabilities":{"type":"embeddings"}}
    ]}"#;
    let claude = ModelInfo {
        name: "Claude".to_owned(),
        vision: true,
        images: ImageLimits {
            bytes: Some(3_145_728),
            count: Some(5),
            formats: ImageFormats::of(["image/png"]),
        },
        max_context_tokens: Some(128_000),
        max_output_tokens: Some(16_000),
        reasoning_efforts: vec!["low".to_owned(), "high".to_owned()],
        ..bare("claude")
    };
    let small = ModelInfo {
        name: "Small".to_owned(),
        ..bare("small")
    };
    assert_eq!(parse(body), Ok(vec![claude, small]));
}

#[test]
fn context_sizes_of_other_servers_are_found() {
    let body = br#"{"data":[{"id":"a","context_length":1},{"id":"b","max_model_len":2},{"id":"c","meta":{"n_ctx":3,"n_ctx_train":9}}]}"#;
    let sizes: Vec<_> = parse(body)
        .unwrap()
        .iter()
        .map(|model| model.max_context_tokens)
        .collect();
    assert_eq!(sizes, [Some(1), Some(2), Some(3)]);
}

#[test]
fn models_that_take_images_are_found() {
    let body = br#"{"data":[{"id":"a","architecture":{"input_modalities":["text","image"]}},
        {"id":"b","architecture":{"input_modalities":["text"]}}]}"#;
    let vision: Vec<_> = parse(body)
        .unwrap()
        .iter()
        .map(|model| model.vision)
        .collect();
    assert_eq!(vision, [true, false]);
}
