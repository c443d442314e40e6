//! Errors are written for people and models: no name of a type of ours is in them.

use loopd_proto::method;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Map, Value, json};

/// Asserts that a text speaks of values and not of types.
fn check(text: &str, about: &str) {
    for word in [
        "expected struct",
        "expected enum",
        "expected tuple",
        "expected unit",
        "expected newtype",
        "tagged enum",
    ] {
        assert!(!text.contains(word), "{about}: {text}");
    }
    let ends_like_a_type = ["Args", "Params"].iter().any(|end| {
        text.split(|c: char| !c.is_alphanumeric())
            .any(|word| word.ends_with(end) && word.len() > end.len())
    });
    assert!(!ends_like_a_type, "{about}: {text}");
    for number in ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64"] {
        let expected = format!("expected {number}");
        assert!(!text.contains(&expected), "{about}: {text}");
    }
}

fn wrong_values() -> [Value; 6] {
    [
        json!(5),
        json!("text"),
        json!([1]),
        json!({"a": 1}),
        json!(true),
        json!(-1.5),
    ]
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_named_in_plain_words() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let mut refused = 0;
    for row in method::ALL {
        // These take no parameters and do what they say.
        if ["top", "hutdown", "exit", "estroy", "elete"]
            .iter()
            .any(|end| row.name.ends_with(end))
        {
            continue;
        }
        for value in wrong_values() {
            let params = json!({"sessionId": value});
            if let Err(error) = client.try_call(row.name, params).await {
                check(&error.message, row.name);
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "only {refused} were refused");
    let members = [
        "model",
        "tools",
        "provider",
        "providers",
        "models",
        "systemMessage",
        "streaming",
        "customAgents",
        "mcpServers",
        "infiniteSessions",
        "requestPermission",
        "hooks",
        "commands",
        "availableTools",
        "excludedTools",
        "workingDirectory",
        "agent",
        "modelCapabilities",
        "skillDirectories",
        "disabledSkills",
        "largeOutput",
        "memory",
        "clientName",
        "limits",
    ];
    for member in members {
        for value in wrong_values() {
            let nested = [
                value.clone(),
                json!([value.clone()]),
                json!({"name": value.clone(), "type": value.clone(), "mode": value.clone()}),
                json!([{"name": value.clone(), "baseUrl": value.clone(), "id": value}]),
            ];
            for value in nested {
                let params = json!({ member: value });
                if let Err(error) = client.try_call("session.create", params).await {
                    check(&error.message, member);
                }
            }
        }
    }
    for value in wrong_values() {
        for member in [
            "attachments",
            "mode",
            "prompt",
            "requestHeaders",
            "responseFormat",
        ] {
            let list = [
                value.clone(),
                json!([value.clone()]),
                json!([{"type": value.clone()}]),
            ];
            for value in list {
                let params = json!({"prompt": "x", member: value});
                if let Err(error) = session.try_call("session.send", params).await {
                    check(&error.message, member);
                }
            }
        }
    }
    daemon.finish().await;
}

/// Returns arguments that do not fit the schema, one for each member and wrong value.
fn misfits(schema: &Value) -> Vec<Value> {
    let empty = Map::new();
    let members = schema["properties"].as_object().unwrap_or(&empty);
    let fitting = |schema: &Value| match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("x"),
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let base: Map<String, Value> = required
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), fitting(&members[name])))
        .collect();
    let mut list = vec![json!([]), json!("text"), json!(7)];
    for name in members.keys() {
        for value in [json!({"a": 1}), json!([[]]), json!(-1)] {
            let mut arguments = base.clone();
            arguments.insert(name.clone(), value);
            list.push(Value::Object(arguments));
        }
    }
    list
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named_in_plain_words() {
    let mut results = 0;
    let script = Script::answering(move |request| {
        results += request.last_results().len();
        if results > 0 {
            return Turn::any().says("done");
        }
        let tools = request.body["tools"].as_array().unwrap();
        let mut calls = Vec::new();
        for tool in tools {
            let name = tool["function"]["name"].as_str().unwrap();
            for arguments in misfits(&tool["function"]["parameters"]) {
                calls.push(call(&format!("c{}", calls.len()), name, arguments));
            }
        }
        Turn::any().calls(calls)
    })
    .await;
    let daemon = Daemon::with(script).await;
    // Whatever fits after all is denied.
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": false}))
        .await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    let wrong = results.iter().filter(|text| text.contains("are not valid"));
    assert!(wrong.clone().count() > 50, "{results:?}");
    for text in &results {
        check(text, "a tool");
    }
    daemon.finish().await;
}
