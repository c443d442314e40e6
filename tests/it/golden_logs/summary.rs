//! What a log comes to, in words that do not depend on how the code is cut: folded alone, and as a
//! daemon shows it after loading.

use std::collections::{BTreeMap, BTreeSet};

use loopd_kernel::context;
use loopd_kernel::state::{Phase, State};
use loopd_proto::event::read_durable;
use loopd_proto::id::{Seq, SessionId};
use loopd_store::{Batch, SessionRecord, StoredEvent};
use loopd_tests::validator::as_chat;
use loopd_tests::{Daemon, Script, Session, Turn, fold_lines};
use serde_json::{Map, Value, json};

/// The stored events of one session.
pub(super) struct Log {
    pub(super) name: String,
    lines: Vec<String>,
}

impl Log {
    pub(super) fn read(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    fn fold(&self) -> State {
        fold_lines(self.id(), self.lines.iter().map(String::as_str))
    }

    /// The session's own id, which its first event says. A fork begins with the log of another one.
    fn id(&self) -> SessionId {
        SessionId::from(self.name.as_str())
    }

    fn stored(&self) -> Vec<StoredEvent> {
        let stored = |(at, line): (usize, &String)| {
            let event: Value = serde_json::from_str(line).unwrap();
            let (_, durable) = read_durable(line).unwrap();
            StoredEvent {
                seq: Seq(at as u64 + 1),
                id: event["id"].as_str().unwrap().into(),
                kind: event["type"].as_str().unwrap().into(),
                visible: durable.visibility(),
                json: line.as_str().into(),
            }
        };
        self.lines.iter().enumerate().map(stored).collect()
    }

    /// What the store kept beside the events, as far as loading needs it.
    fn record(&self, state: &State) -> SessionRecord {
        let enlisted = self.lines.iter().find_map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            (event["type"] == "loopd.enlisted").then(|| event["data"].clone())
        });
        let member = |name: &str| Some(enlisted.as_ref()?[name].as_str()?.to_owned());
        SessionRecord {
            id: self.id(),
            created_ms: state.created.0,
            modified_ms: state.created.0,
            name: None,
            summary: None,
            cwd: Some(state.cwd.clone()),
            parent: member("parent").map(|id| SessionId::from(id.as_str())),
            client_name: None,
            git_root: None,
            repository: None,
            branch: None,
            agent: member("task"),
            event_count: self.lines.len() as u64,
        }
    }
}

/// What all sessions of a story come to.
pub(super) async fn of_story(logs: &[Log]) -> Value {
    let script = Script::answering(|_| Turn::any().says("nobody asked")).await;
    let daemon = Daemon::builder().script(script).start().await;
    for log in logs {
        let batch = Batch {
            record: log.record(&log.fold()),
            after: Seq::START,
            events: log.stored(),
        };
        daemon.app.services.store.append(batch).await.unwrap();
    }
    let mut sessions = Map::new();
    for log in logs {
        let state = log.fold();
        let summary = json!({"folded": folded(&state), "loaded": loaded(&daemon, log).await});
        sessions.insert(log.name.clone(), summary);
    }
    daemon.finish().await;
    Value::Object(sessions)
}

fn folded(state: &State) -> Value {
    let phase = match &state.phase {
        Phase::Idle => "idle",
        Phase::Preparing(_) => "preparing",
        Phase::Commanding(_) => "commanding",
        Phase::Turn(_) => "turn",
        Phase::Rewinding(_) => "rewinding",
    };
    let calls = state.calls().map(|call| call.call.id.to_string());
    let calls: Vec<String> = calls.collect();
    let permissions = state.open_permissions().map(|(id, _)| id.to_string());
    let permissions: Vec<String> = permissions.collect();
    let forms = state.questions.forms().map(|form| &form.request_id);
    let inputs = state.questions.user_inputs().map(|asked| &asked.request_id);
    let questions: BTreeSet<String> = forms.chain(inputs).map(ToString::to_string).collect();
    json!({
        "events": state.seq.0, "visible": state.visible, "phase": phase,
        "history": as_chat(&context::messages(state)),
        "callsOfTheTurn": calls, "openPermissions": permissions, "openQuestions": questions,
        "queued": state.queue.len(), "steering": state.steering.len(),
        "outcome": state.last_outcome, "error": state.last_error,
        "permissions": state.permissions, "options": state.options, "cwd": state.cwd,
        "name": state.name.as_ref().map(|name| (&name.text, name.by_user)),
        "mode": state.mode, "model": state.model, "effort": state.reasoning_effort,
        "agent": state.agent, "plan": state.plan_exists, "closed": state.closed,
        "tasks": tasks(state),
        "guardFolders": state.guard_folders, "vouchedHooks": state.vouched_hooks, "stopBlocks": state.stop_blocks,
        "autopilot": {
            "paused": state.autopilot.paused, "request": state.autopilot.request,
            "continues": state.autopilot.continues, "all": state.autopilot.all,
            "completion": state.autopilot.completion, "stopped": state.autopilot.stopped,
        },
        "totals": {
            "messages": state.totals.user_requests, "calls": state.totals.tool_calls,
            "nanoCredits": state.totals.nano_credits, "models": state.totals.models,
            "lines": state.totals.code_changes,
        },
    })
}

fn tasks(state: &State) -> BTreeMap<String, Value> {
    let task = |task: &loopd_kernel::tasks::Task| {
        let status = match task.ending() {
            Some(ending) => json!({"ended": ending.outcome, "exitCode": ending.exit_code,
                                   "reason": ending.reason}),
            None if task.is_idle() => json!("idle"),
            None => json!("running"),
        };
        let summary = json!({
            "status": status, "description": task.description, "told": !task.is_undelivered(),
            "answer": task.latest_response(),
        });
        (task.id.to_string(), summary)
    };
    state.tasks.iter().map(task).collect()
}

/// What a client is shown that comes to look at the session, after a daemon has loaded it.
async fn loaded(daemon: &Daemon, log: &Log) -> Value {
    let client = daemon.client();
    let offer = json!({
        "sessionId": log.name, "loopdObserver": true, "disableResume": true,
        "continuePendingWork": true, "requestPermission": true,
    });
    client.call("session.resume", offer).await;
    let session = client.session(&log.name);
    let look = async |method: &str| session.call(method, json!({})).await;
    let queue = look("session.queue.pendingItems").await;
    let pending = look("session.permissions.pendingRequests").await;
    let current = look("session.model.getCurrent").await;
    let state = daemon.state(&log.name).await;
    let history = as_chat(&context::messages(&state));
    let unchanged = history == as_chat(&context::messages(&log.fold()));
    let summary = json!({
        "processing": look("session.metadata.isProcessing").await["processing"],
        "name": look("session.name.get").await["name"],
        "mode": look("session.mode.get").await,
        "model": current["modelId"],
        "approval": look("session.permissions.getMode").await["mode"],
        "paths": look("session.permissions.paths.list").await,
        "queue": texts(&queue["items"]), "steering": queue["steeringMessages"],
        "pending": ids(&pending["items"]), "shown": shown_again(&session),
        "history": if unchanged { json!("as folded") } else { json!(history) },
        "tasks": tasks(&state),
        "addedByLoading": added(&session, log).await,
    });
    client.vanish().await;
    summary
}

fn texts(items: &Value) -> Vec<Value> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["displayText"].clone()).collect()
}

fn ids(items: &Value) -> Vec<Value> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["requestId"].clone()).collect()
}

/// The questions that the newcomer was shown.
fn shown_again(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let asked = events.filter(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        kind.ends_with(".requested")
    });
    asked
        .map(|event| event["data"]["requestId"].clone())
        .collect()
}

/// The kinds of the visible events that loading added: what a crash left open is closed.
async fn added(session: &Session, log: &Log) -> Vec<Value> {
    let visible = |line: &&String| !line.contains("\"type\":\"loopd.");
    let before = log.lines.iter().filter(visible).count();
    let events = session.messages().await.into_iter().skip(before);
    events.map(|event| event["type"].clone()).collect()
}
