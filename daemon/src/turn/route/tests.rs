//! Which provider is chosen, depending on configuration and launch.

use std::path::PathBuf;

use loopd_proto::session::ModelConfig;
use loopd_store::{Location, SqliteStore};

use super::*;
use crate::front::rpc::server::Server;
use crate::launch::LaunchOptions;
use loopd_model::test_server::{Scripted, TestServer};

type Variables<'a> = &'a [(&'a str, &'a str)];

async fn services(config: &str) -> Arc<Services> {
    let home = tempfile::tempdir().unwrap();
    if !config.is_empty() {
        std::fs::write(home.path().join("config.toml"), config).unwrap();
    }
    let store = SqliteStore::open(Location::Memory).await.unwrap();
    let server = Server::with_store(home.path(), Arc::new(store), None).unwrap();
    server.services.clone()
}

async fn route(env: Variables<'_>, config: &str, options: SessionOptions) -> Route {
    let env = env
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let launch = Launch::new(PathBuf::from("/w"), env, LaunchOptions::default());
    Route {
        agent: None,
        session: Some("s".into()),
        options,
        cwd: "/w".to_owned(),
        launch: Some(Arc::new(launch)),
        api_token: None,
        token_clients: TokenClients::new(),
        services: services(config).await,
    }
}

fn provider(name: &str, url: &str) -> ProviderConfig {
    ProviderConfig {
        name: Some(name.to_owned()),
        base_url: Some(url.to_owned()),
        api_key: Some("secret-key".to_owned()),
        ..ProviderConfig::default()
    }
}

fn model(provider: &str, id: &str, wire: Option<&str>) -> ModelConfig {
    ModelConfig {
        id: id.to_owned(),
        provider: provider.to_owned(),
        wire_model: wire.map(str::to_owned),
        max_output_tokens: Some(99),
        ..ModelConfig::default()
    }
}

fn two_providers() -> SessionOptions {
    SessionOptions {
        providers: Some(vec![
            provider("a", "http://a/v1"),
            provider("b", "http://b/v1"),
        ]),
        models: Some(vec![
            model("a", "big", Some("wire-big")),
            model("b", "big", None),
            model("b", "only", None),
        ]),
        ..SessionOptions::default()
    }
}

#[tokio::test]
async fn a_model_id_finds_its_provider_and_its_name_there() {
    let route = route(&[], "", two_providers()).await;
    let cases = [
        ("a/big", "http://a/v1", "wire-big", Some(99)),
        ("b/big", "http://b/v1", "big", Some(99)),
        ("only", "http://b/v1", "only", Some(99)),
        ("b/unlisted/x", "http://b/v1", "unlisted/x", None),
    ];
    for (id, url, wire, limit) in cases {
        let target = route.target(id).unwrap();
        assert_eq!(target.base_url, url, "{id}");
        assert_eq!(target.wire_model, wire, "{id}");
        assert_eq!(target.facts.max_output_tokens, limit, "{id}");
    }
    let failure = route.target("c/big").unwrap_err();
    assert_eq!(failure.kind, "model_not_found");
    for word in ["`a`, `b`", "a/big", "b/only"] {
        assert!(failure.message.contains(word), "{}", failure.message);
    }
}

#[tokio::test]
async fn one_provider_serves_the_whole_session_under_its_own_name() {
    let mut config = provider("default", "http://x");
    config.wire_model = Some("deployment".to_owned());
    config.model_id = Some("known".to_owned());
    let options = SessionOptions {
        provider: Some(config),
        ..SessionOptions::default()
    };
    let route = route(&[("COPILOT_API_URL", "http://c")], "", options).await;
    assert_eq!(route.default_model().await.unwrap(), "known");
    let target = route.target("known").unwrap();
    assert_eq!(target.wire_model, "deployment");
    assert_eq!(target.base_url, "http://x");
}

#[tokio::test]
async fn the_launch_chooses_the_provider_if_the_session_defines_none() {
    let openai = ("OPENAI_API_KEY", "k1");
    let anthropic = ("ANTHROPIC_API_KEY", "k2");
    let copilot = ("COPILOT_API_URL", "http://c");
    let cases: [(Variables<'_>, &str, Format, &str); 8] = [
        (&[], "offline", Format::Offline, "offline"),
        (&[copilot, openai], "gpt", Format::Copilot, "gpt"),
        (&[openai, anthropic], "gpt", Format::Completions, "gpt"),
        (
            &[openai, anthropic],
            "claude-x",
            Format::Anthropic,
            "claude-x",
        ),
        (&[openai, anthropic], "anthropic/y", Format::Anthropic, "y"),
        (&[anthropic], "whatever", Format::Anthropic, "whatever"),
        (&[openai], "offline", Format::Offline, "offline"),
        (&[openai], "replay", Format::Replay, "replay"),
    ];
    for (env, model, format, wire) in cases {
        let route = route(env, "", SessionOptions::default()).await;
        let target = route.target(model).unwrap();
        assert_eq!(
            (target.format, target.wire_model.as_str()),
            (format, wire),
            "{env:?} {model}"
        );
    }
}

#[tokio::test]
async fn a_named_model_that_nothing_can_serve_is_refused_with_what_is_missing() {
    let nothing = route(&[], "", SessionOptions::default()).await;
    for (model, missing) in [
        ("gpt-5", "set OPENAI_API_KEY, or"),
        ("openai/o5", "set OPENAI_API_KEY, or"),
        ("claude-sonnet-4-5", "set ANTHROPIC_API_KEY, or"),
        ("mistral", "set OPENAI_API_KEY or ANTHROPIC_API_KEY"),
    ] {
        let failure = nothing.target(model).unwrap_err();
        assert_eq!(failure.kind, "model_not_found", "{model}");
        assert!(failure.message.contains(missing), "{}", failure.message);
        assert!(
            failure.message.contains(&format!("`{model}`")),
            "{}",
            failure.message
        );
    }
    for named in [
        route(&[("LOOPD_MODEL", "gpt-5")], "", SessionOptions::default()).await,
        route(&[], "model = \"gpt-5\"", SessionOptions::default()).await,
    ] {
        let model = named.default_model().await.unwrap();
        assert_eq!(
            named.choose(&model).await.err().unwrap().kind,
            "model_not_found"
        );
    }
    assert_eq!(nothing.default_model().await.unwrap(), "offline");
}

#[tokio::test]
async fn a_provider_of_the_session_gets_every_name_that_is_not_of_another() {
    let options = SessionOptions {
        provider: Some(provider("default", "http://x")),
        ..SessionOptions::default()
    };
    let route = route(&[], "", options).await;
    for model in ["offline", "replay", "anything"] {
        assert_eq!(route.target(model).unwrap().base_url, "http://x", "{model}");
    }
}

#[tokio::test]
async fn a_session_that_nobody_opened_reaches_only_the_built_in_model() {
    let mut route = route(&[("OPENAI_API_KEY", "k")], "", SessionOptions::default()).await;
    route.launch = None;
    assert_eq!(route.target("offline").unwrap().format, Format::Offline);
    assert!(
        route
            .target("gpt-5")
            .unwrap_err()
            .message
            .contains("resume")
    );
}

#[tokio::test]
async fn the_file_comes_before_the_environment() {
    let config = r#"
model = "mine/big"
[provider.another]
base_url = "http://another"
[provider.mine]
type = "openai"
wire_api = "responses"
base_url = "http://mine"
api_key_env = "MINE"
"#;
    let env = [("OPENAI_API_KEY", "k"), ("MINE", "m")];
    let with_key = route(&env, config, SessionOptions::default()).await;
    assert_eq!(with_key.default_model().await.unwrap(), "mine/big");
    let target = with_key.target("mine/big").unwrap();
    assert_eq!(target.format, Format::Responses);
    assert_eq!(target.key, Key::ApiKey(Secret::new("m")));
    assert_eq!(with_key.target("bare").unwrap().base_url, "http://mine");
    let without = route(&[], config, SessionOptions::default()).await;
    assert!(without.target("x").unwrap_err().message.contains("MINE"));
    let broken = route(&[], "modle = 1", SessionOptions::default()).await;
    assert!(broken.target("x").unwrap_err().message.contains("line 1"));
}

#[tokio::test]
async fn a_local_server_is_found_only_when_wanted() {
    let list = serde_json::json!({ "data": [{ "id": "llama" }] });
    let server = TestServer::start([Scripted::json(200, &list), Scripted::json(200, &list)]).await;
    let env = [("LOOPD_LOCAL", server.url())];
    let env: Vec<(&str, &str)> = env
        .iter()
        .map(|(name, url)| (*name, url.as_str()))
        .collect();
    let wanted = route(&env, "", SessionOptions::default()).await;
    assert_eq!(wanted.default_model().await.unwrap(), "llama");
    assert_eq!(wanted.target("llama").unwrap().base_url, server.url());
    assert_eq!(server.received().len(), 2);
    let unwanted = route(&[("LOOPD_LOCAL", "0")], "", SessionOptions::default()).await;
    assert_eq!(unwanted.default_model().await.unwrap(), "offline");
}

#[tokio::test]
async fn a_stored_provider_without_its_key_fails_with_an_authentication_error() {
    let options = SessionOptions {
        provider: Some(provider("default", "http://x")),
        ..SessionOptions::default()
    };
    let route = route(&[], "", options.without_secrets()).await;
    let failure = route.target("m").unwrap_err();
    assert_eq!(failure.kind, "authentication");
    assert!(failure.message.contains("http://x"));
}

#[tokio::test]
async fn an_unknown_provider_type_or_wire_api_is_refused_with_the_allowed_values() {
    for (kind, wire, word) in [
        ("gemini", None, "anthropic"),
        ("openai", Some("soap"), "responses"),
    ] {
        let mut config = provider("p", "http://x");
        config.kind = Some(kind.to_owned());
        config.wire_api = wire.map(str::to_owned);
        let options = SessionOptions {
            provider: Some(config),
            ..SessionOptions::default()
        };
        let route = route(&[], "", options).await;
        assert!(route.target("m").unwrap_err().message.contains(word));
    }
}

#[tokio::test]
async fn requests_have_the_client_in_the_user_agent_and_the_key_in_a_header() {
    let list = serde_json::json!({ "data": [{ "id": "m" }] });
    let server = TestServer::start([Scripted::json(200, &list)]).await;
    let options = SessionOptions {
        client_name: Some("editor\n7".to_owned()),
        provider: Some(provider("default", &server.url())),
        ..SessionOptions::default()
    };
    let route = route(&[], "", options).await;
    let models = route.models().await.unwrap();
    assert_eq!(models[0].id, "m");
    let received = server.received().remove(0);
    assert!(
        received
            .header("user-agent")
            .unwrap()
            .starts_with("editor7 loopd/")
    );
    assert_eq!(received.header("authorization"), Some("Bearer secret-key"));
}

#[test]
fn providers_and_models_of_clients_are_checked() {
    let known = SessionOptions {
        providers: Some(vec![provider("old", "http://old")]),
        ..SessionOptions::default()
    };
    let new = || vec![provider("new", "http://new")];
    let cases = [
        (vec![provider("a/b", "http://x")], vec![], "without `/`"),
        (vec![provider("a", "")], vec![], "baseUrl"),
        ([new(), new()].concat(), vec![], "twice"),
        (new(), vec![model("none", "m", None)], "no provider `none`"),
        (new(), vec![model("new", "", None)], "models[0].id"),
        (
            new(),
            vec![model("new", "m", None), model("new", "m", None)],
            "twice",
        ),
    ];
    for (providers, models, word) in cases {
        let problem = registry::check(&known, &providers, &models).unwrap_err();
        assert!(problem.contains(word), "{problem}");
    }
    let fine = [model("old", "m", None), model("new", "m", None)];
    assert_eq!(registry::check(&known, &new(), &fine), Ok(()));
}

#[tokio::test]
async fn a_recorded_conversation_can_be_replayed_by_another_launch() {
    use loopd_kernel::model::{Delivery, ModelMessage, ModelRequest, Part};
    use loopd_model::NoDeltas;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.yaml");
    let file = file.to_str().unwrap();
    let request = ModelRequest {
        model: "any".to_owned(),
        messages: vec![ModelMessage::User(vec![Part::Text("hello".to_owned())])],
        tools: Vec::new(),
        delivery: Delivery::Whole,
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
        tool_use: loopd_kernel::model::ToolUse::Free,
        headers: Vec::new(),
    };
    let mut answers = Vec::new();
    for (variable, model) in [(RECORD, "offline"), (REPLAY, "replay")] {
        let route = route(&[(variable, file)], "", SessionOptions::default()).await;
        let provider = route.choose(model).await.unwrap().provider;
        let reply = provider.call(&request, &mut NoDeltas).await.unwrap();
        answers.push((reply.turn.text, provider.name().to_owned()));
    }
    assert_eq!(answers[0].0, answers[1].0);
    assert_eq!([&answers[0].1, &answers[1].1], ["offline", "replay"]);
    let without = route(&[], "", SessionOptions::default()).await;
    let Err(failure) = without.choose("replay").await else {
        panic!("there is nothing to repeat");
    };
    assert!(failure.message.contains(REPLAY));
}
