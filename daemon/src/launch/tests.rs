//! What children may see.

use super::*;

fn launch(env: &[(&str, &str)]) -> Launch {
    let env = env
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Launch::new(PathBuf::from("/w"), env, LaunchOptions::default())
}

#[test]
fn children_do_not_inherit_keys() {
    let launch = launch(&[
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
        ("GH_TOKEN", "k"),
        ("SOME_PASSWORD", "k"),
    ]);
    assert_eq!(seen(&launch, ""), ["PATH"]);
}

#[test]
fn children_do_not_inherit_a_models_address_with_a_key_and_no_output_shows_it() {
    let launch = launch(&[
        ("ANTHROPIC_BASE_URL", "https://gateway.example/v1"),
        ("DATABASE_URL", "postgres://postgres:postgres@localhost/app"),
        ("HTTPS_PROXY", "http://me:pass4proxy9@proxy:3128"),
        (
            "OPENAI_BASE_URL",
            "http://user:base-pw-77@127.0.0.1:1/v1?key=url-key-88",
        ),
    ]);
    let kept = ["ANTHROPIC_BASE_URL", "DATABASE_URL", "HTTPS_PROXY"];
    assert_eq!(seen(&launch, ""), kept);
    let mut secrets = launch.secret_values();
    secrets.sort();
    assert_eq!(secrets, ["base-pw-77", "pass4proxy9", "url-key-88"]);
}

/// The names that children see, with this configuration file.
fn seen(launch: &Launch, config: &str) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let environment = launch.child_environment(&Config::load(home.path()));
    environment.into_keys().collect()
}

#[test]
fn children_do_not_inherit_what_was_named_as_a_secret() {
    let env = [("PATH", "/bin"), ("MINE", "k"), ("LLM", "k"), ("LOUD", "1")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = LaunchOptions {
        auth_token_env: Some("MINE".to_owned()),
        ..LaunchOptions::default()
    };
    let launch = Launch::new(PathBuf::from("/w"), env.into(), options);
    let config = "[provider.work]\ntype = \"openai\"\nbase_url = \"http://localhost\"\napi_key_env = \"LLM\"\n";
    assert_eq!(seen(&launch, config), ["LOUD", "PATH"]);
}

#[test]
fn private_variables_are_known_by_name_and_by_value() {
    let env = [
        ("PATH", "/usr/bin:/bin"),
        ("LOOPD_HOME", "/home/somebody/.loopd-0123456789"),
        ("OPENAI_API_KEY", "k"),
        ("MINE", "k"),
        ("ODD", "sk-0123456789abcdef"),
        ("HTTPS_PROXY", "http://me:pass@proxy:3128"),
        ("NO_PROXY", "localhost"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let env = BTreeMap::from(env);
    assert_eq!(
        private_variables(&env, Some("MINE")),
        ["HTTPS_PROXY", "MINE", "ODD", "OPENAI_API_KEY"]
    );
}
