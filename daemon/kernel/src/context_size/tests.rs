use super::*;

fn counted(system: u64, tools: u64, conversation: u64) -> CountedTokens {
    CountedTokens {
        system,
        tools,
        conversation,
    }
}

/// Reports requests of a conversation that grows, to a model that has so many tokens where we count
/// one, and so many besides.
fn after_reports(conversations: &[u64], factor: f64, besides: u64) -> ContextSize {
    let mut size = ContextSize::default();
    for (at, conversation) in conversations.iter().enumerate() {
        let input = besides + rounded(number(*conversation) * factor);
        let seq = Seq(at as u64);
        size.call_begins();
        size.reported("m", input, counted(400, 600, *conversation), seq);
    }
    size
}

#[test]
fn before_the_first_report_a_request_is_as_large_as_it_was_counted() {
    let size = ContextSize::default().of_request("m", counted(400, 600, 50));
    assert_eq!(size.total(), 1_050);
    assert_eq!((size.system, size.tools), (400, 600));
}

#[test]
fn after_three_reports_the_next_request_is_known() {
    for (factor, besides) in [
        (1.0, 1_000),
        (1.3, 1_400),
        (0.8, 700),
        (1.1, 500),
        (2.0, 2_600),
    ] {
        let size = after_reports(&[40, 300, 900], factor, besides);
        let next = size.of_request("m", counted(400, 600, 4_000));
        let truth = number(besides) + 4_000.0 * factor;
        let off = (number(next.total()) - truth).abs() / truth;
        assert!(
            off < 0.01,
            "{factor} {besides}: {next:?} instead of {truth}"
        );
    }
}

#[test]
fn the_first_report_shows_what_a_request_has_besides_the_conversation() {
    // The provider does not give the model its tools.
    let size = after_reports(&[200], 1.0, 420);
    assert_eq!(size.of_request("m", counted(400, 600, 260)).total(), 680);
    // More tools than then are counted as we count them.
    assert_eq!(size.of_request("m", counted(400, 700, 260)).total(), 780);
    // Another model has nothing to do with it.
    assert_eq!(size.of_request("n", counted(400, 600, 260)).total(), 1_260);
}

#[test]
fn a_report_that_cannot_be_about_the_request_is_not_believed() {
    for reported in [0, 10, 99_000] {
        let mut size = ContextSize::default();
        size.reported("m", reported, counted(400, 600, 500), Seq(1));
        let next = size.of_request("m", counted(400, 600, 500));
        assert_eq!(next.total(), 1_500, "{reported}");
    }
}

#[test]
fn a_jump_that_text_cannot_explain_does_not_spoil_the_factor() {
    let mut size = after_reports(&[40, 300, 900], 1.2, 1_000);
    // An image of 5,000 tokens came along.
    size.reported("m", 1_000 + 6_100 + 1_080, counted(400, 600, 1_000), Seq(9));
    assert!(
        (size.factor("m") - 1.2).abs() < 0.01,
        "{}",
        size.factor("m")
    );
}

#[test]
fn only_so_many_models_are_remembered() {
    let mut size = ContextSize::default();
    for model in 0..100 {
        let model = format!("model-{model:03}");
        size.reported(&model, 1_500, counted(400, 600, 500), Seq(1));
    }
    assert_eq!(size.calibrations.len(), MOST_MODELS);
}
