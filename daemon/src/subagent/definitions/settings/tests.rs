use loopd_proto::params::tool::SubagentEntry;

use super::*;

#[test]
fn variables_of_the_launch_win_and_are_kept_in_range() {
    let file = AgentSettings {
        max_depth: 3,
        max_concurrent: 7,
        small_model: Some("tiny".to_owned()),
        ..AgentSettings::default()
    };
    let with = |variables: &[(&str, &'static str)]| {
        let read = file.with(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        });
        assert_eq!(read.small_model.as_deref(), Some("tiny"));
        (read.max_depth, read.max_concurrent, read.fork)
    };
    assert_eq!(with(&[]), (3, 7, false));
    assert_eq!(
        with(&[
            ("COPILOT_SUBAGENT_MAX_DEPTH", "2"),
            ("COPILOT_SUBAGENT_MAX_CONCURRENT", "9"),
            ("LOOPD_AGENTS_FORK", "true"),
        ]),
        (2, 9, true)
    );
    assert_eq!(
        with(&[
            ("COPILOT_SUBAGENT_MAX_DEPTH", "2"),
            ("LOOPD_AGENTS_MAX_DEPTH", "4"),
            ("LOOPD_AGENTS_MAX_CONCURRENT", "100000"),
        ]),
        (4, 256, false)
    );
    let wrong = [
        ("LOOPD_AGENTS_MAX_DEPTH", "-5"),
        ("LOOPD_AGENTS_MAX_CONCURRENT", "many"),
        ("LOOPD_AGENTS_FORK", "maybe"),
    ];
    assert_eq!(with(&wrong), (1, 7, false));
}

#[test]
fn a_session_has_its_own_limits_and_models() {
    let mut file = AgentSettings::default();
    for (agent, model) in [("explore", "quick"), ("code-review", "careful")] {
        file.models.insert(agent.to_owned(), model.to_owned());
    }
    let entry = |model: Option<&str>| SubagentEntry {
        model: model.map(str::to_owned),
        ..SubagentEntry::default()
    };
    let agents = [
        ("Explore".to_owned(), entry(Some("quicker"))),
        ("code-review".to_owned(), entry(None)),
    ];
    let session = SubagentSettings {
        agents: Some(agents.into()),
        max_concurrency: Some(1_000),
        max_depth: Some(2),
        ..SubagentSettings::default()
    };
    let limited = file.of_session(Some(&session));
    assert_eq!((limited.max_depth, limited.max_concurrent), (2, 256));
    assert_eq!(file.of_session(None), file);
    let preferred = |agent| file.preferred(agent, Some(&session));
    assert_eq!(preferred("explore"), Some("quicker"));
    assert_eq!(preferred("Code Review"), Some("careful"));
    assert_eq!(preferred("research"), None);
    assert_eq!(file.preferred("explore", None), Some("quick"));
}
