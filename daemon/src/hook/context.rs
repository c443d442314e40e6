//! Dispatches one event to all its hooks, at the same time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{Either, join_all};
use loopd_proto::event::Ephemeral;
use loopd_proto::event::hook::{HookEnd, HookError, HookProgress, HookStart};
use loopd_proto::event::session::Warning;
use loopd_proto::id::{EventId, SessionId};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::background::BackgroundHandle;
use super::command::{self, HookCommand};
use super::file_watch::{FileWatch, FilesChanged};
use super::handler_name::{HandlerId, HandlerName};
use super::handlers::{FileHook, HookClient, Hooks};
use super::http;
use super::input::HookInput;
use super::output::{HookFailure, HookOutput};
use super::transcript::Transcript;
use super::vocabulary::{OddMember, odd_members};
use crate::client::{AskError, ClientId};
use crate::discovery::hooks::{HookAction, HookKind, HookOrigin, MatchSubject, PayloadForm};
use crate::launch::Launch;
use crate::mcp::McpCell;
use crate::publish::{Audience, say};
use crate::redaction::Redaction;
use crate::services::Services;
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::tool_call::McpToolRef;

/// The most progress lines that people are shown of the hooks of one event.
const MOST_PROGRESS: usize = 200;

/// The surroundings of a session, as its hooks need them.
#[derive(Clone)]
pub struct HookContext {
    pub hooks: Hooks,
    /// The clients that the session has now, of those that answer hooks.
    pub present: watch::Receiver<Vec<ClientId>>,
    /// The session in which something happens.
    pub session: SessionId,
    /// The sub-agent that the session belongs to.
    pub agent: Option<HookAgent>,
    pub cwd: String,
    /// Whether the session may only look and plan.
    pub is_planning: bool,
    /// The servers whose tools may be called.
    pub mcp: McpCell,
    /// The built-in tools that apps have replaced by tools of their own.
    pub replaced: Arc<[String]>,
    /// The folder that relative paths in files of hooks start from.
    pub project: PathBuf,
    /// Whose environment commands see.
    pub launch: Option<Arc<Launch>>,
    pub transcript: Transcript,
    pub audience: Audience,
    pub tip: Option<EventId>,
    pub services: Arc<Services>,
    /// Ends commands of hooks with the turn.
    pub cancel: CancellationToken,
    pub progress: Arc<AtomicUsize>,
    /// The secrets that events must not show.
    pub redaction: Redaction,
    /// Runs the hooks that nobody waits for.
    pub background: BackgroundHandle,
}

/// The sub-agent that an event happens in.
#[derive(Debug, Clone)]
pub struct HookAgent {
    pub id: String,
    pub name: String,
    pub display_name: String,
}

/// What one hook said, or why it said nothing.
pub struct HookOutcome {
    pub(super) source: HandlerName,
    /// Who was asked; `None` if it was not there.
    pub(super) handler: Option<HandlerId>,
    pub(super) result: Result<HookOutput, HookFailure>,
    end: HookEnd,
    /// The hook, if it is one of a file.
    hook: Option<Arc<FileHook>>,
}

impl HookOutcome {
    /// Returns the clients that have to answer and are not there.
    pub(super) fn absent(&self) -> Option<&ClientGuards> {
        match &self.result {
            Err(HookFailure::Absent(missing)) => Some(missing),
            Ok(_) | Err(HookFailure::Failed(_) | HookFailure::Changed(_)) => None,
        }
    }
}

impl HookContext {
    /// Asks all hooks of the event, those of whoever owns the machine first, then clients, then the
    /// others. The order of the answers is the order of the hooks.
    pub async fn dispatch(&self, input: &HookInput) -> Vec<HookOutcome> {
        let outcomes = self.dispatch_except(None, input).await;
        for outcome in &outcomes {
            self.tell_odd(input.kind, outcome);
        }
        outcomes
    }

    /// Tells people what an answer says that does not do what it seems to ask for.
    pub(super) fn tell_odd(&self, kind: HookKind, outcome: &HookOutcome) {
        let odd = outcome.result.iter().flat_map(|output| &output.odd);
        for odd in odd.map(OddMember::told) {
            let hook = outcome.hook.as_ref();
            if hook.is_none_or(|hook| hook.is_news(&odd)) {
                let hook = outcome.source.with_kind(kind);
                self.warn("hook_answer", format!("The {hook}: {odd}."));
            }
        }
    }

    /// Whether hooks of files have to be asked about this event and are waited for.
    pub(super) fn has_files_for(&self, input: &HookInput) -> bool {
        let of_servers = self.of_servers(input);
        let cwd = Path::new(&self.cwd);
        let mut files = self.hooks.files_for(input, cwd, &of_servers);
        files.any(|hook| !hook.definition.in_background)
    }

    /// Does the same without one of the hooks.
    pub(super) async fn dispatch_except(
        &self,
        except: Option<HandlerId>,
        input: &HookInput,
    ) -> Vec<HookOutcome> {
        let cwd = Path::new(&self.cwd);
        let of_servers = self.of_servers(input);
        let files = self.hooks.files_for(input, cwd, &of_servers);
        let files = files.filter(|hook| Some(HandlerId::of(hook)) != except && hook.take());
        let (beside, files): (Vec<_>, Vec<_>) =
            files.partition(|hook| hook.definition.in_background);
        for hook in beside {
            self.start(hook, input);
        }
        let clients = !self.hooks.clients.is_empty() && input.is_read_with_transcript();
        if clients || !files.is_empty() {
            let wrong = self.transcript.update(self.services.store.as_ref()).await;
            if let Some(told) = wrong {
                self.warn("transcript", told);
            }
        }
        let is_policy = |hook: &&Arc<FileHook>| hook.definition.source.origin == HookOrigin::Policy;
        let (policy, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_policy);
        let run = |hook: &'_ Arc<FileHook>| Either::Right(self.run(hook.clone(), input));
        let clients = self.hooks.clients.iter();
        let clients = clients.filter(|asked| Some(HandlerId::Client(asked.client.id())) != except);
        let clients = clients.map(|client| Either::Left(self.ask(client, input)));
        let policy = policy.into_iter().map(run);
        let files = files.into_iter().map(run);
        let mut outcomes = join_all(policy.chain(clients).chain(files)).await;
        for outcome in &mut outcomes {
            if let Ok(output) = &mut outcome.result {
                output.odd = odd_members(input.kind, output);
            }
        }
        if input.kind.is_guard() && !self.hooks.missing.is_empty() {
            outcomes.push(self.absent(input));
        }
        outcomes
    }

    /// Returns the tools of MCP servers that an event may be about.
    pub(super) fn of_servers(&self, input: &HookInput) -> Vec<McpToolRef> {
        let is_tool = input.kind.subject() == Some(MatchSubject::Tool);
        let tool = input.subject.as_deref().filter(|_| is_tool);
        tool.map(|tool| self.mcp.tools_named(tool))
            .unwrap_or_default()
    }

    fn absent(&self, input: &HookInput) -> HookOutcome {
        HookOutcome {
            source: HandlerName::Client,
            handler: None,
            result: Err(HookFailure::Absent(self.hooks.missing.clone())),
            hook: None,
            end: self.end(input, self.services.clock.id().to_string()),
        }
    }

    async fn ask(&self, asked: &HookClient, input: &HookInput) -> HookOutcome {
        let payload = input.for_client(self, self.services.clock.now());
        let end = self.begin(input, &payload);
        let asking = asked
            .client
            .invoke_hook(&asked.session, input.kind.native_name(), &payload);
        let limit = self.services.config.hooks.client_timeout();
        let answer = tokio::select! {
            answer = timeout(limit, asking) => match answer {
                Ok(Ok(output)) => HookOutput::of(output),
                Ok(Err(AskError::Gone)) => {
                    Err(HookFailure::Absent(ClientGuards::of([asked.name.as_str()])))
                }
                Ok(Err(AskError::Failed(cause) | AskError::TooLarge(cause))) => {
                    Err(HookFailure::failed(cause))
                }
                Err(_) => Err(HookFailure::failed(format!(
                    "the client did not answer within {} s",
                    limit.as_secs()
                ))),
            },
            () = left(self.present.clone(), asked.client.id()) => {
                Err(HookFailure::Absent(ClientGuards::of([asked.name.as_str()])))
            }
            () = self.cancel.cancelled() => {
                Err(HookFailure::failed("the turn was stopped while the client was asked"))
            }
        };
        let handler = HandlerId::Client(asked.client.id());
        self.ended(HandlerName::Client, handler, answer, end)
    }

    /// Starts a hook that nobody waits for.
    fn start(&self, hook: &Arc<FileHook>, input: &HookInput) {
        let Some(place) = self.background.place() else {
            let name = hook.name();
            let message = format!("{name} was not started: too many hooks run in the background.");
            self.warn("hook_failed", message);
            return;
        };
        let context = Self {
            cancel: self.background.end(),
            ..self.clone()
        };
        let (hook, input) = (hook.clone(), input.clone());
        self.background.start(async move {
            let _place = place;
            let outcome = context.run(hook, &input).await;
            if let Err(failure) = &outcome.result {
                context.warn_of(input.kind, &outcome.source, failure.cause());
            }
            context.close(outcome, false);
        });
    }

    /// Runs a hook of a file, unless the files that it names have changed since it was trusted.
    async fn run(&self, hook: Arc<FileHook>, input: &HookInput) -> HookOutcome {
        let definition = &hook.definition;
        let clock = &self.services.clock;
        let payload = input.for_file(definition.form, self, clock.now());
        let end = self.begin(input, &payload);
        let started = clock.instant();
        if let Some(message) = &definition.status_message {
            self.show_progress(message, Some(true));
        }
        let mut result = self.act(&hook, &payload).await;
        if let (Ok(output), Some(tool)) = (&mut result, &input.subject) {
            let told = input.typed_command();
            let start = input.typed_start();
            let taken = match (definition.form, &told) {
                (PayloadForm::Claude, told) => {
                    output.take_own_arguments(tool);
                    match told {
                        Some(_) => output.take_typed_input(start),
                        None => Ok(()),
                    }
                }
                (PayloadForm::Native, Some(told)) => output.take_typed_command(told, start),
                (PayloadForm::Native, None) => Ok(()),
            };
            if let Err(failure) = taken {
                result = Err(failure);
            }
        }
        let time = clock.instant().duration_since(started);
        self.services.hook_times.took(&definition.hash, time);
        let name = match &result {
            Err(HookFailure::Changed(_)) if definition.source.origin == HookOrigin::App => {
                HandlerName::AppChanged { name: hook.name() }
            }
            Err(HookFailure::Changed(_)) => match &definition.source.folder {
                Some(folder) => HandlerName::Changed {
                    name: hook.name(),
                    folder: folder.clone(),
                },
                None => HandlerName::OwnChanged { name: hook.name() },
            },
            _ if definition.is_new => HandlerName::OwnNew {
                name: hook.name(),
                on_failure: definition.on_failure,
            },
            _ => HandlerName::File {
                name: hook.name(),
                on_failure: definition.on_failure,
            },
        };
        let outcome = self.ended(name, HandlerId::of(&hook), result, end);
        HookOutcome {
            hook: Some(hook),
            ..outcome
        }
    }

    /// Does what the hook says, if it is what was trusted and stays that until it has ended.
    pub(super) async fn act(
        &self,
        hook: &Arc<FileHook>,
        payload: &Value,
    ) -> Result<HookOutput, HookFailure> {
        if hook.definition.missing {
            let since = match hook.definition.source.folder {
                Some(_) if hook.definition.source.origin == HookOrigin::App => {
                    "since an app named its folder"
                }
                Some(_) => "since it was trusted",
                None => "since loopd last used it",
            };
            return Err(HookFailure::Changed(format!(
                "this guard was changed, moved, deleted or turned off {since}"
            )));
        }
        if let Some(why) = &hook.definition.unusable {
            return Err(HookFailure::failed(format!("it cannot be used: {why}")));
        }
        let is_own = hook.definition.source.folder.is_none();
        if is_own && hook.definition.named_files.is_empty() {
            // Nothing of it can be exchanged.
            return self.perform(hook, payload).await;
        }
        let (watched, now) = (hook.clone(), self.services.clock.now());
        let watch = blocking(move || FileWatch::begin(&watched.definition, now)).await?;
        let result = self.perform(hook, payload).await;
        blocking(move || watch.end()).await?;
        result
    }

    /// Runs the command of a hook, or sends the payload to its address.
    async fn perform(
        &self,
        hook: &Arc<FileHook>,
        payload: &Value,
    ) -> Result<HookOutput, HookFailure> {
        match &hook.definition.action {
            HookAction::Script { script, place } => {
                let command = HookCommand {
                    program: "bash".into(),
                    args: vec!["-c".to_owned(), script.clone()],
                    place,
                };
                command::run(self, hook, command, payload).await
            }
            HookAction::Program {
                program,
                args,
                place,
            } => {
                let command = HookCommand {
                    program: program.into(),
                    args: args.clone(),
                    place,
                };
                command::run(self, hook, command, payload).await
            }
            HookAction::Http {
                url,
                headers,
                allowed_env,
            } => http::post(self, hook, url, headers, allowed_env, payload).await,
            // The prompt is what the hook has to say.
            HookAction::Prompt { prompt } => Ok(HookOutput {
                text: Some(prompt.clone()),
                ..HookOutput::default()
            }),
        }
    }

    fn begin(&self, input: &HookInput, payload: &Value) -> HookEnd {
        let id = self.services.clock.id().to_string();
        self.say(Ephemeral::HookStart(HookStart {
            hook_invocation_id: id.clone(),
            hook_type: input.kind.native_name().to_owned(),
            input: Some(payload.clone()),
        }));
        self.end(input, id)
    }

    #[expect(clippy::unused_self, reason = "reads like its siblings")]
    fn end(&self, input: &HookInput, id: String) -> HookEnd {
        HookEnd {
            hook_invocation_id: id,
            hook_type: input.kind.native_name().to_owned(),
            success: true,
            output: None,
            error: None,
        }
    }

    fn ended(
        &self,
        source: HandlerName,
        handler: HandlerId,
        result: Result<HookOutput, HookFailure>,
        mut end: HookEnd,
    ) -> HookOutcome {
        match &result {
            Ok(output) => {
                end.output = output.shown();
                if let Some(message) = output.member("systemMessage").and_then(Value::as_str) {
                    self.warn("hook_message", format!("{}: {message}", source.shown()));
                }
            }
            Err(failure) => {
                end.success = false;
                end.error = Some(HookError {
                    message: failure.cause().to_owned(),
                    source: Some(source.shown().to_owned()),
                });
            }
        }
        HookOutcome {
            source,
            handler: Some(handler),
            result,
            end,
            hook: None,
        }
    }

    /// Tells clients how a hook ended, or returns the event to store if the hook changed something.
    pub(super) fn close(&self, outcome: HookOutcome, changed: bool) -> Option<HookEnd> {
        if changed {
            return Some(outcome.end);
        }
        self.say(Ephemeral::HookEnd(outcome.end));
        None
    }

    /// Reports a hook that failed and does not decide about anything.
    pub(super) fn warn_of(&self, kind: HookKind, source: &HandlerName, cause: &str) {
        self.warn(
            "hook_failed",
            format!("The {} failed: {cause}.", source.with_kind(kind)),
        );
    }

    pub(super) fn warn(&self, kind: &str, message: String) {
        self.say(Ephemeral::SessionWarning(Warning {
            warning_type: kind.to_owned(),
            message,
            url: None,
        }));
    }

    pub(super) fn say(&self, mut event: Ephemeral) {
        match &mut event {
            Ephemeral::HookStart(start) => {
                if let Some(input) = &mut start.input {
                    self.redaction.clean_value(input);
                }
            }
            Ephemeral::HookEnd(end) => {
                if let Some(output) = &mut end.output {
                    self.redaction.clean_value(output);
                }
                if let Some(error) = &mut end.error {
                    error.message = self.redaction.clean(&error.message).into_owned();
                }
            }
            Ephemeral::HookProgress(progress) => {
                progress.message = self.redaction.clean(&progress.message).into_owned();
            }
            Ephemeral::SessionWarning(warning) => {
                warning.message = self.redaction.clean(&warning.message).into_owned();
            }
            _ => {}
        }
        say(
            &self.services.clock,
            &self.audience,
            &self.session,
            self.tip.clone(),
            &event,
        );
    }

    /// Shows people what a hook does now, up to a number of times.
    pub(super) fn show_progress(&self, message: &str, temporary: Option<bool>) {
        if self.progress.fetch_add(1, Ordering::Relaxed) < MOST_PROGRESS {
            self.say(Ephemeral::HookProgress(HookProgress {
                message: loopd_proto::visible::for_person(message),
                temporary,
            }));
        }
    }
}

/// Resolves when a client has left the session.
async fn left(mut present: watch::Receiver<Vec<ClientId>>, client: ClientId) {
    let left = present.wait_for(|present| !present.contains(&client));
    if left.await.is_err() {
        // The session has ended, and so does whoever asks.
        std::future::pending::<()>().await;
    }
}

/// Looks at the files of a hook beside the runtime.
async fn blocking<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, FilesChanged> + Send + 'static,
) -> Result<T, HookFailure> {
    let looked = tokio::task::spawn_blocking(look).await;
    let looked = looked.map_err(|error| HookFailure::Changed(error.to_string()))?;
    looked.map_err(|changed| HookFailure::Changed(changed.to_string()))
}
