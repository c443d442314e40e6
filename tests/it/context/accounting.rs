//! How much of the context is used, and by what.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::foreign_tokens;

const INFO: &str = "session.metadata.contextInfo";
const ATTRIBUTION: &str = "session.metadata.getContextAttribution";
const HEAVIEST: &str = "session.metadata.getContextHeaviestMessages";
const RECOMPUTE: &str = "session.metadata.recomputeContextTokens";

#[tokio::test]
async fn a_session_tells_what_takes_how_much_of_its_context() {
    let daemon = Daemon::playing([
        Turn::user("look").calls([call("c1", "view", json!({"path": "notes.txt"}))]),
        Turn::results(["word"]).says("It says word."),
    ])
    .await;
    std::fs::write(daemon.file("notes.txt"), "word ".repeat(400)).unwrap();
    std::fs::write(daemon.file("AGENTS.md"), "Use tabs, please.").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    let limits = json!({"promptTokenLimit": 0, "outputTokenLimit": 0});
    let before = session.call(INFO, limits.clone()).await;
    assert_eq!(before, json!({"contextInfo": null}));
    let before = session.call(ATTRIBUTION, json!({})).await;
    assert_eq!(before, json!({"contextAttribution": null}));
    let before = session.call(HEAVIEST, json!({})).await;
    assert_eq!(before, json!({"totalTokens": 0, "messages": []}));
    session.ask("look").await;

    let info = session.call(INFO, limits).await["contextInfo"].clone();
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let total = number(&info, "totalTokens");
    assert_eq!(
        total,
        number(&info, "systemTokens")
            + number(&info, "conversationTokens")
            + number(&info, "toolDefinitionsTokens")
    );
    assert_eq!(number(&info, "promptTokenLimit"), 128_000);
    assert_eq!(number(&info, "compactionThreshold"), 102_400);
    assert_eq!(number(&info, "bufferTokens"), 6_400);
    assert_eq!(info["modelName"], "scripted");
    let given = json!({"promptTokenLimit": 10_000, "outputTokenLimit": 2_000});
    let given = session.call(INFO, given).await["contextInfo"].clone();
    assert_eq!(number(&given, "limit"), 12_000);
    assert_eq!(number(&given, "compactionThreshold"), 8_000);
    assert_eq!(number(&given, "bufferTokens"), 2_500);

    let told = session.call(ATTRIBUTION, json!({})).await["contextAttribution"].clone();
    assert_eq!(number(&told, "totalTokens"), total);
    let parts = &told["categories"];
    assert!(number(parts, "customInstructions") > 5, "{parts}");
    assert_eq!(
        total,
        number(parts, "systemPrompt")
            + number(parts, "customInstructions")
            + number(parts, "systemTools")
            + number(parts, "messages")
    );
    assert_eq!(
        number(parts, "freeSpace") + number(parts, "buffer") + total,
        128_000
    );
    let entries = told["entries"].as_array().unwrap();
    let entry = |id: &str| {
        let found = entries.iter().find(|entry| entry["id"] == id);
        found.unwrap_or_else(|| panic!("no {id} in {told}"))
    };
    assert!(number(entry("tool:view"), "tokens") > 350, "{told}");
    assert_eq!(entry("tool:view")["attributes"]["messageCount"], "1");
    assert_eq!(entry("toolDefinition:view")["parentId"], "toolDefinitions");
    assert!(number(entry("message:user"), "tokens") > 0);

    let heavy = session.call(HEAVIEST, json!({"limit": 2})).await;
    let messages = heavy["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["role"], "tool");
    let label = messages[0]["label"].as_str().unwrap();
    assert!(label.starts_with("tool: view: 1. word word"), "{label}");
    let wrong = session.refused(HEAVIEST, json!({"limit": 0})).await;
    assert!(wrong.message.contains("1 or more"), "{}", wrong.message);

    let again = session.call(RECOMPUTE, json!({"modelId": "other"})).await;
    assert_eq!(
        number(&again, "totalTokens"),
        number(&again, "systemTokenCount") + number(&again, "messagesTokenCount")
    );
    daemon.finish().await;
}

#[tokio::test]
async fn after_three_calls_the_next_prompt_is_known_to_a_few_per_cent() {
    for factor in [0.8, 1.0, 1.35] {
        let script = Script::answering(move |request| {
            let words = "and so it goes on with the story of the dragon ".repeat(6);
            Turn::any()
                .says(&words)
                .uses(foreign_tokens(request, factor), 70)
        });
        let daemon = Daemon::with(script.await).await;
        let mut session = daemon.client().create(json!({})).await;
        for round in 0..6 {
            let prompt = format!("{round}: tell me more, {}", "please ".repeat(40 * round));
            session.ask(&prompt).await;
        }
        let events = session.events();
        let of_kind = |kind: &str| {
            let events = events.iter().filter(|event| event["type"] == kind);
            events
                .map(|event| event["data"].clone())
                .collect::<Vec<_>>()
        };
        let expected = of_kind("session.usage_info");
        let reported = of_kind("assistant.usage");
        assert_eq!(expected.len(), 6);
        for (expected, reported) in expected.iter().zip(&reported).skip(3) {
            let expected = expected["currentTokens"].as_f64().unwrap();
            let reported = reported["inputTokens"].as_f64().unwrap();
            let off = (expected - reported).abs() / reported;
            assert!(off < 0.05, "{factor}: {expected} instead of {reported}");
        }
        daemon.finish().await;
    }
}

#[tokio::test]
async fn what_was_learnt_about_a_model_survives_a_restart() {
    let script = Script::answering(|request| {
        let words = "and so it goes on with the story of the dragon ".repeat(6);
        Turn::any()
            .says(&words)
            .uses(foreign_tokens(request, 1.3), 70)
    });
    let mut daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    for prompt in ["one", "two", "three"] {
        session.ask(prompt).await;
    }
    let limits = json!({"promptTokenLimit": 0, "outputTokenLimit": 0});
    let before = session.call(INFO, limits.clone()).await;
    daemon.restart().await;
    let session = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(session.call(INFO, limits).await, before);
    daemon.finish().await;
}
