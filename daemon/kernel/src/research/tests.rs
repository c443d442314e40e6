use serde_json::json;

use super::*;

#[test]
fn only_research_agents_outputs_and_the_report() {
    let at = |path: &'static str, is_output| Some(CallPath { path, is_output });
    let cases = [
        ("task", json!({"agent_type": "research"}), None, 0, None),
        (
            "task",
            json!({"agent_type": "research", "mode": "sync"}),
            None,
            4,
            None,
        ),
        (
            "task",
            json!({"subagent_type": "research"}),
            None,
            5,
            Some("At most 5"),
        ),
        (
            "task",
            json!({"agent_type": "explore"}),
            None,
            0,
            Some("only agents of the type research"),
        ),
        (
            "task",
            json!({}),
            None,
            0,
            Some("only agents of the type research"),
        ),
        (
            "task",
            json!({"agent_type": "research", "mode": "background"}),
            None,
            0,
            Some("Pass mode"),
        ),
        (
            "task",
            json!({"agent_type": "research", "run_in_background": true}),
            None,
            0,
            Some("Pass mode"),
        ),
        ("create", json!({}), at("/w/report.md", false), 0, None),
        (
            "create",
            json!({}),
            at("/w/other.md", false),
            0,
            Some("only the report can be written: /w/report.md"),
        ),
        ("create", json!({}), None, 0, Some("only the report")),
        ("view", json!({}), at("/home/agents/a.md", true), 0, None),
        ("view", json!({}), at("/w/report.md", false), 0, None),
        (
            "view",
            json!({}),
            at("/etc/passwd", false),
            0,
            Some("only the outputs"),
        ),
        ("report_intent", json!({}), None, 0, None),
        ("task_complete", json!({}), None, 0, None),
        ("grep", json!({}), None, 0, Some("grep cannot be used")),
    ];
    for (tool, arguments, path, before, expected) in cases {
        let refused = refusal("/w/report.md", tool, &arguments, path, before);
        match expected {
            None => assert_eq!(refused, None, "{tool} {arguments}"),
            Some(reason) => {
                let refused = refused.unwrap_or_default();
                assert!(refused.contains(reason), "{tool} {arguments}: {refused}");
            }
        }
    }
}
