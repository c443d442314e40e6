//! What a server may ask of us and tell us, beside answering.

// Sampling, roots and logging belong to the older generation of the protocol, which is still spoken.
#![expect(deprecated, reason = "servers of the older generation use them")]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ResourceUpdatedNotificationParam,
    TaskStatusNotificationParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::asking::Asking;
use crate::calls::{Calls, Progress};
use crate::log::ServerLog;
use crate::port::{Elicitation, ElicitationAnswer, HostSession, ServerNews};
use crate::pushed::{self, PushLimit, PushedMessage};

/// The longest text that a log line or a report of progress may have.
const LONGEST_TEXT: usize = 2_000;
/// The most questions of a server that are open at a time, the longest text of one, and the largest form.
const MOST_QUESTIONS: usize = 8;
const LONGEST_QUESTION: usize = 8_000;
const LARGEST_FORM: usize = 64 * 1024;

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
    /// Whether the server may push messages.
    pub(crate) may_push: bool,
    pub(crate) push_limit: Mutex<PushLimit>,
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
        if let Err(why) = self.check_question(&asked) {
            self.log.add(&format!("a question was declined: {why}"));
            return ElicitResult::new(ElicitationAction::Decline);
        }
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

    /// Refuses a question that nobody can be expected to answer.
    fn check_question(&self, asked: &Elicitation) -> Result<(), String> {
        let (message, form) = match asked {
            Elicitation::Form { message, schema } => (message, schema.to_string().len()),
            Elicitation::Url { message, url, .. } => (message, url.len()),
        };
        if message.chars().count() > LONGEST_QUESTION {
            return Err(format!("it has more than {LONGEST_QUESTION} letters"));
        }
        if form > LARGEST_FORM {
            return Err(format!("its form has more than {LARGEST_FORM} bytes"));
        }
        if self.asking.open() >= MOST_QUESTIONS {
            return Err(format!("{MOST_QUESTIONS} questions are open already"));
        }
        Ok(())
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

    /// Takes a message that the server pushes, if it may.
    fn pushed(&self, params: Option<&Value>) {
        let refused = match PushedMessage::read(params) {
            _ if !self.may_push => "its entry does not say `\"push\": true`",
            Err(why) => why,
            Ok(_) if !self.push_limit.lock().take() => "it pushes too many",
            Ok(message) => return self.tell(ServerNews::Pushed(Box::new(message))),
        };
        // A server that never stops fills its own log only.
        self.log.add(&format!("a message was dropped: {refused}"));
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
        if notification.method == pushed::METHOD {
            self.pushed(notification.params.as_ref());
        }
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
    fn a_path_is_written_as_an_address() {
        assert_eq!(file_uri("/a b/c"), "file:///a%20b/c");
    }
}
