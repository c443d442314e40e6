use serde_json::{Value, json};

use super::*;

fn agent(id: &str, status: &str, more: Value, children: Value) -> Value {
    let mut task = json!({
        "type": "agent", "id": id, "toolCallId": "t", "description": "looks around",
        "status": status, "startedAt": "2026-01-01T00:00:00.000Z", "activeTimeMs": 65_000,
        "agentType": "explore", "prompt": "look",
    });
    let Value::Object(more) = more else {
        return Value::Null;
    };
    task.as_object_mut().unwrap().extend(more);
    json!({
        "task": task, "latestIntent": "grep  parser", "toolCalls": 3, "tokens": 12_345,
        "children": children,
    })
}

fn shell(id: &str, command: &str) -> Value {
    json!({
        "task": {
            "type": "shell", "id": id, "description": command, "status": "running",
            "startedAt": "2026-01-01T00:00:00.000Z", "command": command,
            "attachmentMode": "attached",
        },
        "toolCalls": 0, "tokens": 0,
    })
}

fn texts(tasks: Value, width: usize) -> Vec<String> {
    let tasks: Vec<TaskNode> = serde_json::from_value(tasks).unwrap();
    let now = Timestamp::parse("2026-01-01T00:00:05.000Z").unwrap();
    table(&tasks, now, width)
        .into_iter()
        .map(|line| line.text)
        .collect()
}

#[test]
fn nested_tasks_hang_below_those_that_started_them() {
    let leaf = agent(
        "a.b.c",
        "completed",
        json!({"latestResponse": "one\ntwo"}),
        json!([]),
    );
    let middle = agent("a.b", "running", json!({}), json!([leaf]));
    let other = agent("a.d", "failed", json!({"error": "no model"}), json!([]));
    let tasks = json!([
        agent("a", "idle", json!({}), json!([middle, other])),
        shell("0", "npm  test\n&& npm run build"),
    ]);
    let expected = [
        "TASK         TYPE     STATUS     CALLS  TOKENS       TIME  DOING",
        "a            explore  idle           3   12.3k  1 min 5 s  looks around",
        "├─ a.b       explore  running        3   12.3k  1 min 5 s  grep parser",
        "│  └─ a.b.c  explore  completed      3   12.3k  1 min 5 s  one two",
        "└─ a.d       explore  failed         3   12.3k  1 min 5 s  no model",
        "0            shell    running        -       -        5 s  npm test && npm run build",
    ];
    assert_eq!(texts(tasks, 160), expected);
}

#[test]
fn lines_are_cut_to_the_screen_and_have_no_control_characters() {
    let tasks = json!([shell("0", "printf \u{1b}[2J")]);
    let lines = texts(tasks.clone(), 160);
    let last = lines.last().unwrap();
    assert!(last.ends_with("printf \\x1b[2J"), "{lines:?}");
    for line in texts(tasks, 20) {
        assert_eq!(line.chars().count(), 20, "{line:?}");
        assert!(line.ends_with('…'), "{line:?}");
    }
}

#[test]
fn no_tasks_are_no_lines() {
    assert_eq!(texts(json!([]), 80), Vec::<String>::new());
}

#[test]
fn shells_of_agents_are_named_with_their_agents() {
    let inner = agent("a.b", "running", json!({}), json!([shell("1", "make")]));
    let outer = agent("a", "running", json!({}), json!([shell("1", "ls"), inner]));
    let shown = texts(json!([outer, shell("1", "cat"), shell("x:1", "top")]), 200);
    let width = shown.first().unwrap().find("TYPE").unwrap();
    let column = |line: &String| line.chars().take(width).collect::<String>();
    let ids = shown.iter().skip(1).map(column);
    let ids: Vec<String> = ids.map(|id| id.trim_end().to_owned()).collect();
    assert_eq!(
        ids,
        ["a", "├─ a:1", "└─ a.b", "   └─ a.b:1", "1", "x:1"],
        "{shown:?}"
    );
}
