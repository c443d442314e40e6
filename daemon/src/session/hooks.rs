//! Hooks in a session: which are in force, and the effects that ask them.

mod notice;
mod of_agent;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::hook::HookEnd;
use loopd_proto::id::ToolCallId;
use tokio::sync::oneshot;

use self::notice::Notice;
pub(super) use self::of_agent::SelectedAgentHooks;
use super::actor::Actor;
use super::clients::attach::DetachReason;
use super::effects::Reporter;
use super::journal::Outgoing;
use super::work::Work;
use super::{Done, Message, SessionError};
use crate::client::ClientId;
use crate::discovery::hooks::{HookKind, HookMatcher, LocalHttp, of_agent};
use crate::hook::{
    BackgroundHooks, HookAgent, HookCell, HookContext, HookInput, HookLookup, Hooks, Transcript,
    places_of, review_kind,
};
use crate::trust;
use crate::turn::prepare::PromptHooks;
use loopd_kernel::command::{CallOutcome, Command, LogLevel};
use loopd_kernel::hook::{Guarded, HookDenial, HookPermission, HookVerdict, StopAnswered};
use loopd_kernel::model::ToolCall;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::state::TurnKey;

/// Where the answer to a command goes.
type CommandReply = oneshot::Sender<Result<Done, SessionError>>;

/// How long the hooks at the end of a session may take in all.
const END_WAIT: Duration = Duration::from_secs(10);

/// What a session knows of its hooks.
pub(super) struct SessionHooks {
    /// The hooks of files, those of parents included.
    pub(super) files: HookCell,
    /// Whether a client's hooks guard the session at the top.
    pub(super) guarded_above: bool,
    transcript: Transcript,
    /// Whether the hooks are those of a parent and below.
    pub(super) inherited: bool,
    /// Whether the hooks know that the session, or the sub-agent, has begun.
    pub(super) begun: bool,
    /// Whether the hooks know that the session ends.
    ended: bool,
    /// The hooks that the session does not wait for.
    background: BackgroundHooks,
    /// The calls that hooks are being asked about, and the clients that are asked.
    asking: HashMap<ToolCallId, Vec<ClientId>>,
}

impl SessionHooks {
    pub(super) fn new(transcript: Transcript) -> Self {
        Self {
            files: HookCell::default(),
            guarded_above: false,
            transcript,
            inherited: false,
            begun: false,
            ended: false,
            asking: HashMap::new(),
            background: BackgroundHooks::default(),
        }
    }
}

impl Actor {
    /// Returns the hooks in force.
    pub(super) fn hooks(&self) -> Hooks {
        let attachments = self.clients.attachments().iter();
        let answering = attachments.filter(|attachment| attachment.offer.hooks);
        Hooks {
            clients: answering.map(|it| it.client.clone()).collect(),
            guarded_by_client: self.is_guarded_by_client(),
            files: self.hooks.files.hooks(),
        }
    }

    fn is_guarded_by_client(&self) -> bool {
        self.state.guarded_by_client || self.hooks.guarded_above
    }

    /// Returns whether hooks of this kind have something to say about a subject.
    pub(super) fn has_hooks(&self, kind: HookKind, subject: Option<&str>) -> bool {
        let mut attachments = self.clients.attachments().iter();
        attachments.any(|attachment| attachment.offer.hooks)
            || (kind.is_guard() && self.is_guarded_by_client())
            || (!self.hooks.files.is_empty() && self.hooks().has(kind, subject))
    }

    pub(super) fn hook_context(&self) -> HookContext {
        let parent = self.subagents.parent();
        HookContext {
            hooks: self.hooks(),
            session: self.state.id.clone(),
            top: parent.map_or_else(|| self.state.id.clone(), |parent| parent.top().clone()),
            agent: self.state.subagent.as_ref().map(|own| HookAgent {
                id: own.task.to_string(),
                name: own.profile.agent_type.clone(),
            }),
            cwd: self.state.cwd.clone(),
            is_planning: self.planning() != Planning::No,
            project: self
                .state
                .context
                .git_root
                .as_ref()
                .map_or_else(|| PathBuf::from(&self.state.cwd), PathBuf::from),
            launch: self.clients.launch().cloned(),
            transcript: self.hooks.transcript.clone(),
            audience: self.clients.audience().clone(),
            tip: self.state.tip.clone(),
            services: self.services.clone(),
            cancel: self.running.turn(),
            progress: Arc::default(),
            redaction: self.redaction(),
            background: self.hooks.background.handle(),
        }
    }

    /// Returns the hooks around prompts, if there are any.
    pub(super) fn prompt_hooks(&mut self, looks: bool) -> Option<PromptHooks> {
        let is_new = self.state.totals.user_requests == 0;
        let (start, prompts) = match &self.state.subagent {
            Some(own) => {
                let name = Some(own.profile.agent_type.as_str());
                (
                    self.has_hooks(HookKind::SubagentStart, name) && is_new,
                    false,
                )
            }
            None => (
                self.has_hooks(HookKind::SessionStart, None),
                self.has_hooks(HookKind::UserPromptSubmitted, None)
                    || self.has_hooks(HookKind::UserPromptTransformed, None),
            ),
        };
        // What a lookup finds may be for any of them.
        let begins = (start || looks) && !self.hooks.begun;
        if !begins && !prompts && !looks {
            return None;
        }
        self.hooks.begun = true;
        Some(PromptHooks {
            context: self.hook_context(),
            begins: begins.then_some(if is_new { "new" } else { "resume" }),
        })
    }

    /// Returns a lookup of the hooks in files; `None` if there are none. A sub-agent has the hooks of
    /// its parents.
    pub(super) fn hook_lookup(&self) -> Option<HookLookup> {
        if self.subagents.is_child() {
            return None;
        }
        let launch = self.clients.launch()?;
        let options = &self.state.options;
        let wants = options
            .enable_file_hooks
            .unwrap_or(options.enable_config_discovery == Some(true));
        let named = options
            .plugin_directories
            .iter()
            .flatten()
            .map(PathBuf::from);
        let plugins = launch.plugins().into_iter().chain(named).collect();
        let cwd = Path::new(&self.state.cwd);
        let places = places_of(launch.env(), &self.services.home, cwd, wants, plugins);
        let cell = self.hooks.files.clone();
        // A session that begins also looks for guards that were there once.
        let may_lack = !self.hooks.begun && wants;
        (places.has_files() || !cell.is_empty() || may_lack).then(|| HookLookup {
            cell,
            store: self.services.store.clone(),
            places,
        })
    }

    /// Looks for hooks when a client attaches before a prompt has looked: nothing that is at work, and
    /// no sub-agent that the client starts or lets go on, may run without them.
    pub(super) async fn look_for_hooks(&mut self) {
        if self.hooks.begun {
            return;
        }
        if let Some(agent_hooks) = self.selected_agent_hooks() {
            if let Some(lookup) = self.roster_lookup() {
                lookup.run().await;
            }
            agent_hooks.take().await;
        }
        let Some(lookup) = self.hook_lookup() else {
            return;
        };
        if self.state.is_busy() {
            report_notices(lookup.run().await, &self.reporter()).await;
        } else {
            // The next prompt tells what is wrong with files.
            lookup.load().await;
        }
    }

    /// Adds the hooks of the agent's own definition, below those of its parents.
    pub(super) fn take_agent_hooks(&mut self) {
        let Some(own) = &self.state.subagent else {
            return;
        };
        let roster = self.subagents.roster();
        let Some(agent) = roster.get(&own.profile.agent_type) else {
            return;
        };
        if agent.hooks.is_none() {
            return;
        }
        let root = trust::project_root(Path::new(&self.state.cwd));
        let mut content = of_agent(agent, LocalHttp::Refused, &root);
        for hook in &mut content.hooks {
            // The agent's own stop is the stop of a sub-agent.
            if hook.kind == HookKind::AgentStop {
                hook.kind = HookKind::SubagentStop;
                hook.matcher = HookMatcher::Every;
            }
        }
        self.hooks.files.set(content.hooks);
    }

    /// Tells the hooks what people are notified of by committed events.
    pub(super) fn notify_hooks(&mut self, events: &[Outgoing]) {
        if !self.has_hooks(HookKind::Notification, None) {
            return;
        }
        for event in events {
            let Some(notice) = Notice::of(event) else {
                continue;
            };
            let context = self.hook_context();
            let reporter = self.reporter();
            self.running.spawn(async move {
                let told = context.notified(&notice.kind, notice.title, &notice.message);
                let (context, ended) = told.await;
                if !context.is_empty() {
                    reporter
                        .report(Command::HooksNoted { context, ended })
                        .await;
                }
            });
        }
    }

    /// Asks the hooks about a call before it starts.
    pub(super) fn guard(&mut self, turn: TurnKey, call: ToolCall) -> Option<Work> {
        if self.hooks.asking.contains_key(&call.id) {
            return None;
        }
        let context = self.hook_context();
        let asked = context.hooks.clients.iter().map(|client| client.id());
        self.hooks.asking.insert(call.id.clone(), asked.collect());
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        Some(
            Work::new(
                async move {
                    let input =
                        HookInput::of_call(HookKind::PreToolUse, &call, serde_json::json!({}));
                    Some(match context.guard(&input).await {
                        Ok(end) => Command::Guarded(Box::new(Guarded {
                            turn,
                            call: call.id,
                            verdict: end.verdict,
                            arguments: end.arguments,
                            context: end.context,
                            ended: end.ended,
                        })),
                        Err(_) => Command::GuardAbsent {
                            turn,
                            call: call.id,
                        },
                    })
                },
                move || crashed_guard(failed_turn, failed_call),
            )
            .that_waits(),
        )
    }

    /// Notes what a report about hooks means for the running effects, before it is decided.
    pub(super) fn before_deciding(&mut self, command: &Command) {
        match command {
            Command::Guarded(guarded) => {
                self.hooks.asking.remove(&guarded.call);
                if guarded.arguments.is_some() {
                    // The call runs with what the hook wrote, not with what the model wrote.
                    self.running.forget_arguments(&guarded.call);
                }
            }
            Command::GuardAbsent { call, .. } => {
                let asked = self.hooks.asking.remove(call).unwrap_or_default();
                let mut answering = self.hooks().clients.into_iter();
                if answering.any(|client| !asked.contains(&client.id())) {
                    // Another client came while those were asked that have left now.
                    let reporter = self.reporter();
                    self.running.spawn(async move {
                        reporter.report(Command::GuardsChanged).await;
                    });
                }
            }
            _ => {}
        }
    }

    /// Asks the hooks before a person is asked.
    pub(super) fn ask_hooks(&self, asked: HookPermission) -> Work {
        let context = self.hook_context();
        let call = self.state.turn().and_then(|turn| turn.call(&asked.call));
        let call = call.map(|call| call.call.clone());
        let unanswered = asked.clone();
        Work::new(
            async move {
                let call = call?;
                let more = serde_json::json!({ "permissionRequest": asked.request });
                let input = HookInput::of_call(HookKind::PermissionRequest, &call, more);
                let (verdict, ended) = match context.guard(&input).await {
                    Ok(end) => (end.verdict, end.ended),
                    // Only calls that the client has guarded get here; a person may still decide.
                    Err(_) => (HookVerdict::None, Vec::new()),
                };
                Some(Command::HooksAnswered {
                    asked: Box::new(asked),
                    verdict,
                    ended,
                })
            },
            move || Command::HooksAnswered {
                asked: Box::new(unanswered),
                verdict: crashed(),
                ended: Vec::new(),
            },
        )
        .that_waits()
    }

    /// Asks the hooks whether the loop may end.
    pub(super) fn ask_stop(&self, turn: TurnKey) -> Work {
        let context = self.hook_context();
        let blocks = self.state.run().map_or(0, |run| run.stop_blocks);
        let answer = self
            .state
            .history
            .last_text()
            .unwrap_or_default()
            .to_owned();
        let crashed = turn.clone();
        Work::new(
            async move {
                let cancel = context.cancel.clone();
                tokio::select! {
                    () = cancel.cancelled() => None,
                    end = context.may_stop(&answer, blocks) => {
                        Some(Command::StopAnswered(StopAnswered {
                            turn,
                            block: end.block,
                            ended: end.ended,
                        }))
                    }
                }
            },
            move || {
                Command::StopAnswered(StopAnswered {
                    turn: crashed,
                    block: None,
                    ended: Vec::new(),
                })
            },
        )
    }

    /// Returns what shows the result of a call to the hooks, if there are any for it.
    pub(super) fn reviewer(
        &self,
        call: &ToolCall,
        outcome: Option<&CallOutcome>,
    ) -> Option<HookContext> {
        let kinds = match outcome {
            Some(outcome) => [review_kind(outcome)?, HookKind::PostToolUseFailure],
            None => [HookKind::PostToolUse, HookKind::PostToolUseFailure],
        };
        let has = |kind| self.has_hooks(kind, Some(&call.name));
        kinds.into_iter().any(has).then(|| self.hook_context())
    }

    /// Shows the result of a client's tool to the hooks before it is recorded. Returns the answer
    /// back if there is nothing to show.
    pub(super) fn review_answer(
        &mut self,
        command: Box<Command>,
        reply: CommandReply,
    ) -> Option<(Box<Command>, CommandReply)> {
        let Command::AnswerTool { request, outcome } = &*command else {
            return Some((command, reply));
        };
        let mut calls = self.state.calls();
        let call = calls.find(|call| call.waits_for(request));
        let call = call.map(|call| call.call.clone());
        let context = call
            .as_ref()
            .and_then(|call| self.reviewer(call, Some(outcome)));
        let (Some(call), Some(context)) = (call, context) else {
            return Some((command, reply));
        };
        let mailbox = self.mailbox.clone();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            let Command::AnswerTool { request, outcome } = *command else {
                return;
            };
            let end = context.review(&call, outcome).await;
            let reviewed = Message::Reviewed {
                command: Box::new(Command::AnswerTool {
                    request,
                    outcome: end.outcome,
                }),
                context: end.context,
                ended: end.ended,
                reply,
            };
            // The send fails if the session has ended.
            mailbox.send(reviewed).await.ok();
        });
        None
    }

    /// Returns the kind of hook that is told when the loop is about to end.
    pub(super) fn stop_kind(&self) -> HookKind {
        match &self.state.subagent {
            Some(_) => HookKind::SubagentStop,
            None => HookKind::AgentStop,
        }
    }

    /// Stores what hooks said about a result.
    pub(super) async fn record_hooks(&mut self, context: Vec<String>, ended: Vec<HookEnd>) {
        if !context.is_empty() || !ended.is_empty() {
            self.report(Command::HooksNoted { context, ended }).await;
        }
    }

    /// Lets hooks that guard the session decide about the calls that wait for them.
    pub(super) async fn guards_changed(&mut self) {
        let mut attachments = self.clients.attachments().iter();
        let answers = attachments.any(|attachment| attachment.offer.hooks);
        if answers && !self.state.guarded_by_client && !self.subagents.is_child() {
            self.report(Command::SetClientGuard(true)).await;
            self.hand_down();
        }
        let waits = self.state.calls().any(|call| call.stage.is_guarding());
        if waits && (answers || !self.is_guarded_by_client()) {
            self.report(Command::GuardsChanged).await;
        }
    }

    /// Tells the hooks that the session ends, and detaches the client after that. Returns whether
    /// there is anything to wait for.
    pub(super) fn end_hooks_first(
        &mut self,
        client: ClientId,
        reason: DetachReason,
        reply: &mut Option<oneshot::Sender<()>>,
    ) -> bool {
        let ends = reason == DetachReason::Destroy && !self.clients.has_others_than(client);
        let is_told = self.hooks.ended || self.subagents.is_child();
        if !ends || is_told || !self.has_hooks(HookKind::SessionEnd, None) {
            return false;
        }
        self.hooks.ended = true;
        let context = self.hook_context();
        let mailbox = self.mailbox.clone();
        let reply = reply.take();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            let told = context.session_ends("user_exit", None);
            if tokio::time::timeout(END_WAIT, told).await.is_err() {
                tracing::warn!(session = %context.session, "the hooks at the end of a session took too long");
            }
            let detach = Message::Detach {
                client,
                reason,
                reply,
            };
            // The send fails if the session has ended.
            mailbox.send(detach).await.ok();
        });
        true
    }
}

/// Reports what is wrong with files of hooks.
pub(super) async fn report_notices(notices: Vec<String>, reporter: &Reporter) {
    for message in notices {
        reporter
            .report(Command::Log {
                level: LogLevel::Warning,
                kind: "hook_file".to_owned(),
                message,
                url: None,
                tip: None,
                stored: false,
            })
            .await;
    }
}

fn crashed_guard(turn: TurnKey, call: ToolCallId) -> Command {
    Command::Guarded(Box::new(Guarded {
        turn,
        call,
        verdict: crashed(),
        arguments: None,
        context: Vec::new(),
        ended: Vec::new(),
    }))
}

fn crashed() -> HookVerdict {
    let text = "Denied: asking the hooks crashed inside the daemon; this is a bug of loopd";
    HookVerdict::Deny(HookDenial {
        reason: text.to_owned(),
        told: text.to_owned(),
        stops: false,
    })
}
