//! What the tests of hooks share: an app that answers `hooks.invoke`, and files of hooks.

use std::sync::{Arc, Mutex};

use loopd_tests::script::Call;
use loopd_tests::{Client, Daemon, Script, Session, Turn, call, within};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What an app answers to one hook.
pub(crate) enum HookReply {
    /// It has nothing to say.
    Nothing,
    Output(Value),
    /// The whole answer, which may not be what the protocol says.
    Whole(Value),
    /// Its handler fails with this text.
    Fails(&'static str),
    /// It never answers.
    Never,
}

#[derive(Default)]
struct Asked {
    inputs: Mutex<Vec<(String, Value)>>,
    changes: watch::Sender<usize>,
}

/// An app that answers the hooks of one connection.
pub(crate) struct HookApp {
    asked: Arc<Asked>,
    task: JoinHandle<()>,
}

impl HookApp {
    /// Answers all hooks of a connection with a function of kind and input.
    pub(crate) fn on(
        client: &Client,
        mut reply: impl FnMut(&str, &Value) -> HookReply + Send + 'static,
    ) -> Self {
        let asked = Arc::<Asked>::default();
        let (noted, client) = (asked.clone(), client.clone());
        let task = tokio::spawn(async move {
            loop {
                let request = client.request("hooks.invoke").await;
                let kind = request.params["hookType"].as_str().unwrap().to_owned();
                let input = request.params["input"].clone();
                let reply = reply(&kind, &input);
                noted.inputs.lock().unwrap().push((kind, input));
                noted.changes.send_modify(|count| *count += 1);
                match reply {
                    HookReply::Nothing => request.answer(json!({})),
                    HookReply::Output(output) => request.answer(json!({ "output": output })),
                    HookReply::Whole(answer) => request.answer(answer),
                    HookReply::Fails(why) => request.refuse(-32603, why),
                    HookReply::Never => {}
                }
            }
        });
        Self { asked, task }
    }

    /// Answers one kind of hook always the same, and has nothing to say to the others.
    pub(crate) fn saying(client: &Client, kind: &'static str, output: Value) -> Self {
        Self::on(client, move |asked, _| {
            if asked == kind {
                HookReply::Output(output.clone())
            } else {
                HookReply::Nothing
            }
        })
    }

    /// Has nothing to say.
    pub(crate) fn silent(client: &Client) -> Self {
        Self::on(client, |_, _| HookReply::Nothing)
    }

    /// Returns what the app was asked about this kind so far.
    pub(crate) fn inputs(&self, kind: &str) -> Vec<Value> {
        let inputs = self.asked.inputs.lock().unwrap();
        let of_kind = inputs.iter().filter(|(asked, _)| asked == kind);
        of_kind.map(|(_, input)| input.clone()).collect()
    }

    /// Waits until the app was asked so many times about this kind; returns the last input of them.
    pub(super) async fn asked(&self, kind: &str, times: usize) -> Value {
        let mut changes = self.asked.changes.subscribe();
        let wait = async {
            loop {
                if let Some(input) = self.inputs(kind).get(times - 1) {
                    return input.clone();
                }
                changes.changed().await.unwrap();
            }
        };
        within(&format!("the hook {kind} to be asked {times} times"), wait).await
    }
}

impl Drop for HookApp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn bash(id: &str, command: &str) -> Call {
    call(id, "bash", json!({"command": command}))
}

/// A model that makes one call, and then has to get this result.
pub(super) fn one_call(call: Call, result: &str) -> [Turn; 2] {
    [
        Turn::user("go").calls([call]),
        Turn::results([result]).says("done"),
    ]
}

/// What a client offers that answers hooks and permission requests.
pub(super) fn offer() -> Value {
    json!({"hooks": true, "requestPermission": true, "continuePendingWork": true})
}

/// What a client offers that answers permission requests and no hooks. What is open stays open when
/// it comes.
pub(super) fn without_hooks() -> Value {
    json!({"requestPermission": true, "continuePendingWork": true})
}

/// A daemon, and a session whose client answers hooks.
pub(super) async fn hooked(turns: impl IntoIterator<Item = Turn>) -> (Daemon, Session) {
    let daemon = Daemon::playing(turns).await;
    let session = daemon.client().create(offer()).await;
    (daemon, session)
}

/// Writes a file of hooks into the home of the daemon, where those of the user are.
pub(crate) fn write_hooks(daemon: &Daemon, hooks: &Value) {
    let folder = daemon.home().join("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let text = serde_json::to_string_pretty(&json!({"version": 1, "hooks": hooks})).unwrap();
    std::fs::write(folder.join("test.json"), text).unwrap();
}

/// A daemon whose user has these hooks, and a session with a client without hooks.
pub(super) async fn with_files(
    hooks: Value,
    turns: impl IntoIterator<Item = Turn>,
) -> (Daemon, Session) {
    let builder = Daemon::builder().script(Script::play(turns).await);
    let daemon = builder.env("SECRET_KEY", "sk-hidden").start().await;
    write_hooks(&daemon, &hooks);
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let session = daemon.client().create(offer).await;
    (daemon, session)
}

/// Waits until a call waits for the hooks of a client.
pub(super) async fn waits(daemon: &Daemon, id: &str) {
    daemon
        .until(id, "a call that waits for its guard", |state| {
            state.calls().any(|call| call.stage.is_guarding())
        })
        .await;
}

/// Waits for the end of a call.
pub(super) async fn end_of(session: &mut Session, call: &str) -> Value {
    let what = format!("the end of the call {call}");
    let is_end = |event: &Value| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == call
    };
    session.next_where(&what, is_end).await["data"].clone()
}

/// Waits for a warning of this kind; returns its text.
pub(super) async fn warning(session: &mut Session, kind: &str) -> String {
    let is_it =
        |event: &Value| event["type"] == "session.warning" && event["data"]["warningType"] == kind;
    let what = format!("the warning {kind}");
    session.next_where(&what, is_it).await["data"]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Permits the next request for once; returns the request.
pub(super) async fn permit(session: &mut Session) -> Value {
    let (id, request) = session.permission().await;
    assert!(session.decide(&id, json!({"kind": "approve-once"})).await);
    request
}
