#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use loopd_proto::event::task::TaskStarted;
use loopd_proto::id::{MessageId, Seq};
use loopd_proto::run_scope::RunScope;
use serde_json::json;

use super::{KeptScopes, MOST_KEPT};
use crate::state::Run;
use crate::tasks::Tasks;

fn restricted(message: &MessageId) -> Run {
    Run {
        messages: vec![message.clone()],
        scopes: vec![RunScope {
            tools: Some(vec!["view".to_owned()]),
            ..RunScope::default()
        }],
        ..Run::default()
    }
}

fn is_restricted(kept: &KeptScopes, message: &MessageId) -> bool {
    let mut run = Run::default();
    kept.restore(message, &mut run);
    !run.scopes.is_empty()
}

#[test]
fn what_a_task_may_go_on_with_stays_restricted_whatever_comes_after() {
    let (of_task, other) = (MessageId::new("of-task"), MessageId::new("other"));
    let started: TaskStarted = serde_json::from_value(json!({
        "id": "1", "description": "work", "startedAt": "1970-01-01T00:00:00.000Z",
        "work": { "kind": "shell", "shellId": "1", "command": "make", "attachment": "attached" },
    }))
    .unwrap();
    let mut tasks = Tasks::default();
    tasks.started(&started, Some(of_task.clone()), Seq(1));
    let mut kept = KeptScopes::default();
    for message in [&of_task, &other] {
        kept.keep(&restricted(message), &tasks);
    }
    for number in 0..2 * MOST_KEPT {
        kept.keep(&restricted(&MessageId::new(number.to_string())), &tasks);
    }
    assert!(is_restricted(&kept, &of_task));
    assert!(!is_restricted(&kept, &other));
    assert_eq!(kept.0.len(), MOST_KEPT);
}
