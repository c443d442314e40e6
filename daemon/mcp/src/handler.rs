//! What a server may ask of us and tell us, beside answering.

// Sampling, roots and logging belong to the older generation of the protocol, which is still spoken.
#![expect(deprecated, reason = "servers of the older generation use them")]

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ResourceUpdatedNotificationParam, TaskStatusNotificationParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::asking::Asking;
use crate::log::ServerLog;
use crate::port::{CallRef, Elicitation, ElicitationAnswer, HostSession, ServerNews};

/// The most reports of progress that wait for a call; further ones are dropped.
const MOST_PROGRESS: usize = 16;
/// The most reports of progress that came before anybody knew their call.
const MOST_UNCLAIMED: usize = 32;
/// The longest text that a log line or a report of progress may have.
const LONGEST_TEXT: usize = 2_000;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

impl Progress {
    /// Returns the report in one line.
    pub fn text(&self) -> String {
        let amount = match self.total {
            Some(total) => format!("{}/{total}", self.done),
            None => self.done.to_string(),
        };
        match &self.message {
            Some(message) => format!("{message} ({amount})"),
            None => amount,
        }
    }
}

/// Answers the server of one connection.
pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) session: Arc<dyn HostSession>,
    pub(crate) log: ServerLog,
    pub(crate) calls: Arc<Calls>,
    pub(crate) asking: Asking,
    /// Cancelled when the connection has ended.
    pub(crate) closed: CancellationToken,
    /// Woken when the server says that its tools or prompts have changed.
    pub(crate) lists_changed: Arc<Notify>,
    /// Woken when the server says something about a task.
    pub(crate) tasks_changed: Notify,
}

/// The calls that run on a connection.
#[derive(Default)]
pub(crate) struct Calls {
    inner: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    sinks: HashMap<ProgressToken, mpsc::Sender<Progress>>,
    unclaimed: VecDeque<(ProgressToken, Progress)>,
    /// What the calls belong to, each with a number of its own, and what is cancelled with each.
    labels: HashMap<u64, (CallRef, CancellationToken)>,
    next: u64,
    /// When the last call began or ended.
    used: Option<Instant>,
}

/// Takes the reports of progress of one call, as long as it lives.
pub(crate) struct CallGuard {
    calls: Arc<Calls>,
    number: u64,
    token: Option<ProgressToken>,
}

impl Calls {
    /// Notes that a call begins.
    pub(crate) fn begin(self: &Arc<Self>, label: CallRef) -> CallGuard {
        let mut running = self.inner.lock();
        running.next += 1;
        running.used = Some(Instant::now());
        let number = running.next;
        running
            .labels
            .insert(number, (label, CancellationToken::new()));
        CallGuard {
            calls: self.clone(),
            number,
            token: None,
        }
    }

    /// Returns since when no call runs; `None` if one does.
    pub(crate) fn rests_since(&self) -> Option<Instant> {
        let running = self.inner.lock();
        if running.labels.is_empty() {
            running.used
        } else {
            None
        }
    }

    /// Returns the call that a question of the server belongs to, the only one that runs, and what is
    /// cancelled when it ends.
    fn asker(&self) -> (CallRef, CancellationToken) {
        let running = self.inner.lock();
        let mut labels = running.labels.values();
        match (labels.next(), labels.next()) {
            (Some(only), None) => only.clone(),
            _ => (CallRef::default(), CancellationToken::new()),
        }
    }

    fn progress(&self, token: ProgressToken, progress: Progress) {
        let mut running = self.inner.lock();
        if let Some(sink) = running.sinks.get(&token) {
            // A report that does not fit is dropped: the next one says more.
            sink.try_send(progress).ok();
            return;
        }
        if running.unclaimed.len() >= MOST_UNCLAIMED {
            running.unclaimed.pop_front();
        }
        running.unclaimed.push_back((token, progress));
    }
}

impl CallGuard {
    /// Returns the reports of progress with this token, also those that have come already.
    pub(crate) fn listen(&mut self, token: ProgressToken) -> mpsc::Receiver<Progress> {
        let (sink, reports) = mpsc::channel(MOST_PROGRESS);
        let mut running = self.calls.inner.lock();
        running.unclaimed.retain(|(of, progress)| {
            let is_ours = *of == token;
            if is_ours {
                sink.try_send(progress.clone()).ok();
            }
            !is_ours
        });
        running.sinks.insert(token.clone(), sink);
        drop(running);
        self.token = Some(token);
        reports
    }
}

impl CallGuard {
    /// Returns the further reports of progress of a call that goes on after its answer; `None` if it was
    /// never listened to.
    pub(crate) fn listen_again(&mut self) -> Option<mpsc::Receiver<Progress>> {
        let token = self.token.clone()?;
        Some(self.listen(token))
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut running = self.calls.inner.lock();
        if let Some((_, ended)) = running.labels.remove(&self.number) {
            ended.cancel();
        }
        running.used = Some(Instant::now());
        if let Some(token) = &self.token {
            running.sinks.remove(token);
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

impl Handler {
    /// Answers a question of the server.
    pub(crate) async fn elicit(&self, params: ElicitRequestParams) -> ElicitResult {
        let asked = match params {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => Elicitation::Form {
                message,
                schema: serde_json::to_value(&requested_schema).unwrap_or_default(),
            },
            ElicitRequestParams::UrlElicitationParams {
                message,
                url,
                elicitation_id,
                ..
            } => Elicitation::Url {
                message,
                url,
                id: elicitation_id,
            },
            _ => return ElicitResult::new(ElicitationAction::Decline),
        };
        let form = match &asked {
            Elicitation::Form { schema, .. } => Some(schema.clone()),
            Elicitation::Url { .. } => None,
        };
        let (call, ended) = self.calls.asker();
        let _open = self.asking.begin();
        let answer = tokio::select! {
            answer = self.session.elicit(&self.server, call, asked) => answer,
            // Nobody waits for the answer any more.
            () = ended.cancelled() => ElicitationAnswer::Cancelled,
            () = self.closed.cancelled() => ElicitationAnswer::Cancelled,
        };
        match answer {
            ElicitationAnswer::Accepted(content) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match form
                    .and_then(|form| with_defaults(content.clone(), &form))
                    .or(content)
                {
                    Some(content) => accepted.with_content(content),
                    None => accepted,
                }
            }
            ElicitationAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Lets the model of the session answer for the server.
    pub(crate) async fn sample(
        &self,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = serde_json::to_value(&params).unwrap_or_default();
        let (call, ended) = self.calls.asker();
        let _open = self.asking.begin();
        let gone = || Err("nobody waits for the answer any more".to_owned());
        let answer = tokio::select! {
            answer = self.session.sample(&self.server, call, request) => answer,
            () = ended.cancelled() => gone(),
            () = self.closed.cancelled() => gone(),
        };
        let answer = answer.map_err(|why| ErrorData::invalid_request(why, None))?;
        serde_json::from_value(answer).map_err(|error| {
            ErrorData::internal_error(format!("the answer does not fit: {error}"), None)
        })
    }

    /// Returns the directories that the session works in.
    pub(crate) fn roots(&self) -> ListRootsResult {
        let roots = self.session.roots().into_iter().map(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            json!({"uri": file_uri(&path.to_string_lossy()), "name": name})
        });
        let roots: Vec<Value> = roots.collect();
        serde_json::from_value(json!({"roots": roots})).unwrap_or_default()
    }

    fn tell(&self, news: ServerNews) {
        self.session.news(&self.server, news);
    }
}

/// Returns a half byte as a hexadecimal digit.
fn hex(half: u8) -> char {
    char::from_digit(u32::from(half), 16)
        .unwrap_or('0')
        .to_ascii_uppercase()
}

/// Writes a path as a `file://` address.
fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    uri
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        client_config()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sample(params).await
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answer = self.elicit(params) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let progress = Progress {
            done: params.progress,
            total: params.total,
            message: params.message.as_deref().map(short),
        };
        self.calls.progress(params.progress_token, progress);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(params.level).unwrap_or_default();
        let level = level.as_str().unwrap_or("info").to_owned();
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let text = short(&text);
        self.log.add(&format!("[{level}] {text}"));
        self.tell(ServerNews::Log { level, text });
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.tell(ServerNews::ResourceUpdated(params.uri));
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tell(ServerNews::ResourcesChanged);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
        self.tell(ServerNews::PromptsChanged);
    }

    async fn on_task_status(
        &self,
        _params: TaskStatusNotificationParams,
        _context: NotificationContext<RoleClient>,
    ) {
        // Those who follow tasks ask for what they need.
        self.tasks_changed.notify_waiters();
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        // The status of a task in the older dialect.
        if notification.method == "notifications/tasks/status" {
            self.tasks_changed.notify_waiters();
        }
    }
}

/// Returns what we tell servers about us.
pub(crate) fn client_config() -> ClientConfig {
    let config = json!({
        "protocolVersion": rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE,
        "capabilities": {
            "roots": {"listChanged": false},
            "elicitation": {"form": {}, "url": {}},
            "sampling": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
        "clientInfo": {"name": "loopd", "title": "loopd", "version": env!("CARGO_PKG_VERSION")},
    });
    serde_json::from_value(config).unwrap_or_default()
}

/// Fills in what a person left out of a form and the form has a default for.
fn with_defaults(content: Option<Value>, form: &Value) -> Option<Value> {
    let mut filled = match content {
        Some(Value::Object(filled)) => filled,
        None => serde_json::Map::new(),
        Some(_) => return None,
    };
    for (name, field) in form.get("properties")?.as_object()? {
        if let Some(default) = field.get("default")
            && !filled.contains_key(name)
        {
            filled.insert(name.clone(), default.clone());
        }
    }
    Some(Value::Object(filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_a_form_stand_for_what_was_left_out() {
        let form = serde_json::json!({"properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "integer", "default": 2},
            "c": {"type": "boolean"},
        }});
        let answered = serde_json::json!({"b": 3, "c": true});
        let filled = serde_json::json!({"a": "x", "b": 3, "c": true});
        assert_eq!(with_defaults(Some(answered), &form), Some(filled));
        let filled = serde_json::json!({"a": "x", "b": 2});
        assert_eq!(with_defaults(None, &form), Some(filled));
    }

    #[test]
    fn what_we_say_about_us_is_understood_by_the_library() {
        let config = client_config();
        assert_eq!(config.client_info.name, "loopd");
        assert!(config.capabilities.elicitation.is_some());
        assert!(config.capabilities.supports_tasks());
    }

    #[test]
    fn progress_that_comes_before_its_call_is_known_is_not_lost() {
        let calls = Arc::new(Calls::default());
        let token = || ProgressToken(rmcp::model::NumberOrString::Number(7));
        let progress = |done| Progress {
            done,
            total: Some(4.0),
            message: Some("counting".to_owned()),
        };
        calls.progress(token(), progress(1.0));
        let mut call = calls.begin(CallRef(Some("call".to_owned())));
        let mut reports = call.listen(token());
        calls.progress(token(), progress(2.5));
        assert_eq!(reports.try_recv(), Ok(progress(1.0)));
        let second = reports.try_recv();
        assert_eq!(
            second.map(|it| it.text()),
            Ok("counting (2.5/4)".to_owned())
        );
        assert_eq!(calls.asker().0, CallRef(Some("call".to_owned())));
        let ended = calls.asker().1;
        drop(call);
        assert!(calls.rests_since().is_some());
        assert_eq!(calls.asker().0, CallRef(None));
        assert!(ended.is_cancelled());
    }

    #[test]
    fn a_path_is_written_as_an_address() {
        assert_eq!(file_uri("/a b/c"), "file:///a%20b/c");
    }
}
