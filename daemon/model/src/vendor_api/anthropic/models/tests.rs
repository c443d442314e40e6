//! Names and lists of models.

use super::*;
use crate::vendor_api::model_list;

#[test]
fn a_name_tells_the_limits() {
    let cases = [
        ("claude-3-haiku-20240307", 4_096, ThinkingStyle::None),
        ("claude-3-5-sonnet-20241022", 8_192, ThinkingStyle::None),
        ("claude-3-7-sonnet-latest", 64_000, ThinkingStyle::Budget),
        ("claude-opus-4-20250514", 32_000, ThinkingStyle::Budget),
        ("claude-opus-4-1-20250805", 32_000, ThinkingStyle::Budget),
        ("claude-sonnet-4.5", 64_000, ThinkingStyle::Budget),
        ("claude-opus-4-6", 64_000, ThinkingStyle::Adaptive),
        ("claude-opus-5-20270101", 64_000, ThinkingStyle::Adaptive),
        ("claude-2.1", 4_096, ThinkingStyle::None),
        ("some-model-7", 8_192, ThinkingStyle::None),
    ];
    for (name, limit, style) in cases {
        assert_eq!(output_limit(name), limit, "{name}");
        assert_eq!(thinking_style(name), style, "{name}");
    }
}

#[test]
fn a_list_is_read_in_order() {
    let body = br#"{"data":[
        {"type":"model","id":"claude-opus-4-6","display_name":"Claude Opus 4.6","max_input_tokens":1000000,"max_tokens":128000},
        {"type":"model","id":"claude-3-5-haiku-20241022","display_name":"Claude Haiku 3.5"},
        {"type":"model","id":""}],"has_more":false}"#;
    let list = model_list(body, |id, entry| Some(model_info(id, entry))).unwrap();
    let seen: Vec<_> = list
        .iter()
        .map(|model| {
            (
                model.name.as_str(),
                model.max_context_tokens,
                model.max_output_tokens,
                model.reasoning_efforts.len(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("Claude Opus 4.6", Some(1_000_000), Some(128_000), 3),
            ("Claude Haiku 3.5", Some(200_000), Some(8_192), 0),
        ]
    );
}
