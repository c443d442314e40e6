use serde_json::{Value, json};

use super::*;
use crate::tool::fixture::{Fixture, granted};

#[test]
fn tools_are_listed_in_the_order_models_know() {
    let catalog = Catalog::new();
    let expected = [
        "bash",
        "read_bash",
        "write_bash",
        "stop_bash",
        "list_bash",
        "view",
        "create",
        "edit",
        "ask_user",
        "exit_plan_mode",
        "grep",
        "glob",
        "apply_patch",
        "web_fetch",
        "sql",
        "todowrite",
        "todoread",
        "skill",
        "report_intent",
        "context_board",
        "task",
        "read_agent",
        "write_agent",
        "list_agents",
        "stop_agent",
        "task_complete",
    ];
    assert_eq!(catalog.names(), expected);
    let specs: Vec<String> = catalog
        .specs()
        .into_iter()
        .map(|spec| spec.name.clone())
        .collect();
    assert_eq!(specs, expected);
    for name in expected {
        assert_eq!(catalog.get(name).unwrap().name(), name);
    }
}

#[test]
fn lists_of_tools_may_name_every_tool() {
    let catalog = Catalog::new();
    let mut names = catalog.names();
    names.sort_unstable();
    assert_eq!(names, loopd_kernel::policy::tool_list::BUILT_IN);
}

#[test]
fn files_of_hooks_may_name_every_tool() {
    for name in Catalog::new().names() {
        let mut known = crate::discovery::hooks::known_tools();
        assert!(known.any(|tool| tool == name), "{name} is not known");
    }
}

#[test]
fn the_tools_that_write_files_say_so() {
    let catalog = Catalog::new();
    let writers: Vec<&str> = catalog
        .tools()
        .filter(|tool| tool.writes())
        .map(DynTool::name)
        .collect();
    assert_eq!(writers, ["create", "edit", "apply_patch"]);
}

#[test]
fn arguments_have_the_names_that_models_use() {
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "bash",
            &["command"],
            &[
                "command",
                "description",
                "detach",
                "initial_wait",
                "mode",
                "shellId",
            ],
        ),
        ("read_bash", &["shellId"], &["delay", "shellId"]),
        ("write_bash", &["shellId"], &["delay", "input", "shellId"]),
        ("stop_bash", &["shellId"], &["shellId"]),
        ("view", &["path"], &["path", "view_range"]),
        ("create", &["path", "file_text"], &["file_text", "path"]),
        (
            "edit",
            &["path"],
            &["edits", "new_str", "old_str", "path", "replace_all"],
        ),
        (
            "ask_user",
            &["question"],
            &["allow_freeform", "choices", "question"],
        ),
        (
            "grep",
            &["pattern"],
            &[
                "-A",
                "-B",
                "-C",
                "-i",
                "-n",
                "glob",
                "head_limit",
                "multiline",
                "output_mode",
                "path",
                "pattern",
                "type",
            ],
        ),
        ("glob", &["pattern"], &["path", "pattern"]),
        ("apply_patch", &["patch"], &["patch"]),
        (
            "web_fetch",
            &["url"],
            &["max_length", "raw", "start_index", "url"],
        ),
        ("sql", &["query"], &["description", "query"]),
        ("todowrite", &["todos"], &["todos"]),
        ("report_intent", &["intent"], &["intent"]),
        (
            "context_board",
            &["command"],
            &["command", "ids", "scope", "text"],
        ),
        (
            "task",
            &["description", "prompt"],
            &[
                "agent_type",
                "cwd",
                "description",
                "isolation",
                "mode",
                "model",
                "name",
                "prompt",
            ],
        ),
        (
            "read_agent",
            &["agent_id"],
            &["agent_id", "since_turn", "timeout", "wait"],
        ),
        (
            "write_agent",
            &["agent_id", "message"],
            &["agent_id", "message"],
        ),
        ("stop_agent", &["agent_id"], &["agent_id"]),
    ];
    let catalog = Catalog::new();
    for (name, required, all) in table {
        let schema = catalog.get(name).unwrap().parameters();
        assert_eq!(schema.get("type"), Some(&json!("object")), "{name}");
        assert_eq!(schema.get("required"), Some(&json!(required)), "{name}");
        let properties = schema.get("properties").and_then(Value::as_object).unwrap();
        let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, *all, "{name}");
        for (property, schema) in properties {
            let described = schema.get("description").is_some();
            assert!(described, "{name}.{property} is not explained");
        }
    }
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_fails_with_advice() {
    let fixture = Fixture::new();
    let tool = Catalog::new().get("ask_user").unwrap();
    let args = json!({"question": "Which?", "choices": ["a", "b"], "allow_freeform": false});
    let outcome = tool.run(&granted(None), args, &fixture.context).await;
    assert_eq!(outcome.status, crate::tool::Status::Failure);
    assert!(outcome.text.contains("no connected client can answer"));
}
