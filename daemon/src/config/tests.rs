//! The configuration file.

use super::*;

#[test]
fn a_file_names_providers_and_where_their_keys_are() {
    let text = r#"
model = "work/claude-sonnet-4-5"
[provider.work]
type = "anthropic"
api_key_env = "WORK_KEY"
"#;
    let settings = ModelSettings::read(text, "config.toml");
    assert_eq!(settings.problem, None);
    assert_eq!(settings.model.as_deref(), Some("work/claude-sonnet-4-5"));
    let config = Config {
        models: settings,
        ..Config::default()
    };
    assert_eq!(config.key_variables().collect::<Vec<_>>(), ["WORK_KEY"]);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let cases = [
        ("model = \"m\"\nmodle = 1\n", "line 2", "modle"),
        ("[provider.a]\nbase_url = 3\n", "line 2", "string"),
        ("[provider.a]\n\nbase = \"x\"\n", "line 3", "base"),
        ("model = \n", "line 1", ""),
        ("[provider.\"a/b\"]\n", "", "another name"),
    ];
    for (text, line, word) in cases {
        let problem = ModelSettings::read(text, "config.toml").problem.unwrap();
        assert!(problem.starts_with("config.toml"), "{problem}");
        assert!(problem.contains(line), "{problem}");
        assert!(problem.contains(word), "{problem}");
    }
}

#[test]
fn a_key_in_the_file_is_refused_and_not_repeated() {
    let text = "[provider.a]\napi_key = \"sk-very-secret\"\n";
    let problem = ModelSettings::read(text, "config.toml").problem.unwrap();
    assert!(problem.contains("api_key_env"), "{problem}");
    assert!(!problem.contains("very-secret"), "{problem}");
}

#[test]
fn no_file_is_no_problem_and_a_broken_one_does_not_stop_the_daemon() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(Config::load(home.path()).models.problem, None);
    std::fs::write(home.path().join(FILE), "nonsense").unwrap();
    assert!(Config::load(home.path()).models.problem.is_some());
}

#[test]
fn the_file_says_what_commands_run_on() {
    let read = |text: &str| ShellSettings::read(text).backend;
    assert_eq!(read(""), ShellBackend::Terminal);
    assert_eq!(
        read("[shell]\nbackend = \"process\"\n"),
        ShellBackend::Process
    );
    let problem = ModelSettings::read("[shell]\nbackend = \"tty\"\n", "config.toml").problem;
    assert!(problem.unwrap().contains("line 2"));
    assert_eq!(ShellBackend::parse("process"), Some(ShellBackend::Process));
    assert_eq!(ShellBackend::parse("else"), None);
}
