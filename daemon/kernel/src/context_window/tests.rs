use serde_json::json;

use super::*;

#[test]
fn room_for_the_answer_is_left() {
    for (limit, output, prompt) in [
        (128_000, None, 128_000),
        (200_000, Some(8_000), 192_000),
        (200_000, Some(64_000), 168_000),
        (16_000, Some(16_000), 12_000),
        (0, Some(1), 0),
    ] {
        let window = ContextWindow { limit, output };
        assert_eq!(window.prompt_limit(), prompt, "{window:?}");
    }
}

#[test]
fn rules_are_those_of_the_session_as_far_as_it_sets_them() {
    let window = ContextWindow {
        limit: 100_000,
        output: None,
    };
    for (given, enabled, background, blocking) in [
        (json!({}), true, 80_000, 95_000),
        (json!({"enabled": false}), false, 80_000, 95_000),
        (
            json!({"backgroundCompactionThreshold": 0.005, "bufferExhaustionThreshold": 0.01}),
            true,
            500,
            1_000,
        ),
        // Nobody waits for what has not begun.
        (
            json!({"bufferExhaustionThreshold": 0.5}),
            true,
            50_000,
            50_000,
        ),
        // Logs of earlier versions may have anything here.
        (json!(true), true, 80_000, 95_000),
        (
            json!({"backgroundCompactionThreshold": 7}),
            true,
            80_000,
            95_000,
        ),
    ] {
        let rules = RoomRules::of(Some(&given));
        let found = (
            rules.enabled,
            rules.background_at(window),
            rules.blocking_at(window),
        );
        assert_eq!(found, (enabled, background, blocking), "{given}");
    }
}
