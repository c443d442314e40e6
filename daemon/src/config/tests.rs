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
    let settings = Config::read(text, "config.toml").models;
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
        ("fallback_models = [\"a\", \"\"]\n", "", "fallback_models"),
        (
            "fallback_models = [\"b/x\"]\n[provider.a]\nbase_url = \"http://x\"\n",
            "",
            "[provider.b]",
        ),
        ("[agents]\nmax_depth = 0\n", "line 2", "from 1 to 32"),
        ("[agents]\nmax_depth = -1\n", "line 2", "-1 is out of range"),
        (
            "[agents]\nfork = true\nmax_concurrent = 257\n",
            "line 3",
            "from 1 to 256",
        ),
        (
            "[agents]\nmax_fleet_todos = 0\n",
            "line 2",
            "from 1 to 10000",
        ),
        ("[agents]\nmax_wakes = 0\n", "line 2", "from 1 to 10000"),
        ("[agents]\nfork = \"yes\"\n", "line 2", "true or false"),
        ("[agents]\nsmall = \"x\"\n", "line 2", "small_model"),
        ("[agents.models]\nexplore = 1\n", "line 2", "string"),
    ];
    for (text, line, word) in cases {
        let problem = Config::read(text, "config.toml").models.problem.unwrap();
        assert!(problem.starts_with("config.toml"), "{problem}");
        assert!(problem.contains(line), "{problem}");
        assert!(problem.contains(word), "{problem}");
    }
}

#[test]
fn a_key_in_the_file_is_refused_and_not_repeated() {
    let text = "[provider.a]\napi_key = \"sk-very-secret\"\n";
    let problem = Config::read(text, "config.toml").models.problem.unwrap();
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
fn what_is_wrong_with_the_file_now_is_told_and_that_it_was_changed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(FILE);
    let config = Config::load(home.path());
    assert_eq!(config.problem_now(home.path()), None);
    std::fs::write(&file, "unattended_timeot = 5\n").unwrap();
    let problem = config.problem_now(home.path()).unwrap();
    assert!(
        problem.contains("line 1") && problem.contains("unattended_timeot"),
        "{problem}"
    );
    std::fs::write(&file, "unattended_timeout = 5\n").unwrap();
    let problem = config.problem_now(home.path()).unwrap();
    assert!(problem.contains("was changed"), "{problem}");
    assert_eq!(Config::load(home.path()).problem_now(home.path()), None);
}

#[test]
fn commands_in_plan_mode_have_a_network_only_where_it_is_allowed() {
    let read = |text: &str| Config::read(text, "config.toml").shell.sandbox_network();
    assert_eq!(read(""), NetworkAccess::Denied);
    assert_eq!(
        read("[shell]\nplan_network = true\n"),
        NetworkAccess::Allowed
    );
}

#[test]
fn the_file_says_what_commands_run_on() {
    let read = |text: &str| Config::read(text, "config.toml").shell.backend;
    assert_eq!(read(""), ShellBackend::Terminal);
    assert_eq!(
        read("[shell]\nbackend = \"process\"\n"),
        ShellBackend::Process
    );
    let problem = Config::read("[shell]\nbackend = \"tty\"\n", "config.toml")
        .models
        .problem;
    assert!(problem.unwrap().contains("line 2"));
    assert_eq!(ShellBackend::parse("process"), Some(ShellBackend::Process));
    assert_eq!(ShellBackend::parse("else"), None);
}

#[test]
fn the_file_says_how_agents_run() {
    let text = "[agents]\nsmall_model = \"tiny\"\nmax_depth = 3\nmulti_turn = false\n\
        costly_models = [\"*opus*\"]\n[agents.models]\nexplore = \"quick\"\n";
    let agents = Config::read(text, "config.toml").agents;
    assert_eq!(Config::read(text, "config.toml").models.problem, None);
    assert_eq!(agents.small_model.as_deref(), Some("tiny"));
    assert_eq!(
        (agents.max_depth, agents.fork, agents.multi_turn),
        (3, false, false)
    );
    assert_eq!(agents.costly_models, ["*opus*"]);
    assert_eq!(agents.preferred("Explore", None), Some("quick"));
    let usual = Config::read("", "config.toml").agents;
    assert_eq!(
        (usual.max_depth, usual.fork, usual.multi_turn),
        (6, false, true)
    );
    assert!((4..=256).contains(&usual.max_concurrent));
    assert_eq!(
        Config::read("[agents]\nmax_depth = 99\n", "config.toml").agents,
        usual
    );
}
