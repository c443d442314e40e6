//! What the daemon tells of its settings, of providers that could be used, and of agents in a folder.

use loopd_tests::{Daemon, Script};
use serde_json::{Value, json};

#[tokio::test]
async fn the_file_of_settings_is_shown_with_what_can_be_set() {
    let daemon = Daemon::builder()
        .script(Script::play([]).await)
        .config("unattended_timeout = 60\n[agents]\nmax_depth = 3\n")
        .start()
        .await;
    let client = daemon.client();
    let shown = client.call("loopd.config", json!({})).await;
    assert_eq!(shown["exists"], true, "{shown}");
    assert_eq!(shown.get("problem"), None, "{shown}");
    assert_eq!(
        shown["set"],
        json!([{"key": "unattended_timeout", "value": 60}, {"key": "agents.max_depth", "value": 3}])
    );
    let settings = shown["settings"].as_array().unwrap();
    let depth = settings.iter().find(|it| it["key"] == "agents.max_depth");
    assert_eq!(depth.unwrap()["default"], "6");
    let file = daemon.home().join("config.toml");
    std::fs::write(&file, "unattended = 3\n").unwrap();
    let shown = client.call("loopd.config", json!({})).await;
    let problem = shown["problem"].as_str().unwrap();
    assert!(
        problem.contains("line 1") && problem.contains("`unattended`"),
        "{problem}"
    );
    assert_eq!(shown["set"], json!([]));
    daemon.finish().await;
}

#[tokio::test]
async fn providers_that_could_be_used_are_listed_and_only_servers_here_are_asked() {
    let script = Script::play([]).await;
    let host = script.url().trim_start_matches("http://").to_owned();
    let daemon = Daemon::builder()
        .script(script)
        .env("OLLAMA_HOST", &host)
        .env("GROQ_API_KEY", "gsk-0123456789")
        .env("GH_TOKEN", "ghp-0123456789")
        .start()
        .await;
    let client = daemon.client();
    let listed = client.call("loopd.modelSources", json!({})).await;
    let text = listed.to_string();
    assert!(!text.contains("0123456789"), "{text}");
    let sources = listed["sources"].as_array().unwrap();
    let of = |name: &str| sources.iter().find(|it| it["name"] == name).cloned();
    let ollama = of("ollama").unwrap();
    assert_eq!(ollama["models"], json!(["scripted"]), "{ollama}");
    assert_eq!(ollama["baseUrl"], json!(format!("http://{host}/v1")));
    let groq = of("groq").unwrap();
    assert_eq!(
        (groq["variable"].as_str(), &groq["models"]),
        (Some("GROQ_API_KEY"), &json!([]))
    );
    assert_eq!(
        groq["config"],
        "[provider.groq]\nbase_url = \"https://api.groq.com/openai/v1\"\napi_key_env = \"GROQ_API_KEY\"\n"
    );
    let copilot = of("copilot").unwrap();
    assert_eq!(
        copilot["config"],
        "[provider.copilot]\ntype = \"copilot\"\napi_key_env = \"GH_TOKEN\"\n"
    );
    assert_eq!(of("openrouter"), None::<Value>);
    let params = json!({"modelsOf": "nobody"});
    let error = client.refused("loopd.modelSources", params).await;
    assert!(error.message.contains("none of the sources"), "{error}");
    let params = json!({"modelsOf": "ollama"});
    let listed = client.call("loopd.modelSources", params).await;
    assert_eq!(listed["sources"][0]["models"], json!(["scripted"]));
    daemon.finish().await;
}

#[tokio::test]
async fn the_agents_of_a_folder_are_listed_with_the_built_in_ones_and_broken_files() {
    let daemon = Daemon::playing([]).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = "---\nname: helper\ndescription: Helps.\n---\nYou help.\n";
    std::fs::write(folder.join("helper.agent.md"), agent).unwrap();
    std::fs::write(folder.join("broken.agent.md"), "---\nname: [\n---\n").unwrap();
    let client = daemon.client();
    let listed = client.call("loopd.agents", json!({})).await;
    let agents = listed["agents"].as_array().unwrap();
    let of = |name: &str| agents.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("helper")["builtIn"], false);
    assert_eq!(of("helper")["selectable"], true);
    assert_eq!(of("helper")["description"], "Helps.");
    assert_eq!(of("explore")["builtIn"], true);
    let problems = listed["problems"].to_string();
    assert!(problems.contains("broken.agent.md"), "{problems}");
    let params = json!({"workingDirectory": "elsewhere"});
    let listed = client.call("loopd.agents", params).await;
    assert!(!listed.to_string().contains("helper.agent.md"));
    daemon.finish().await;
}
