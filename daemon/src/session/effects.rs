//! Starts what the kernel wants done. Each effect is a task of the session's own set; it reports
//! back as a command, also when it panics.

use std::time::Duration;

use loopd_proto::event::fact::Asked;
use loopd_proto::id::MessageId;
use loopd_proto::permission::PermissionRequest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Message;
use super::actor::Actor;
use super::ask::ElicitationAnswer;
use super::subagents::roster::RosterLookup;
use super::toolset::{Origin, Toolset};
use super::work::Work;
use crate::subagent::CancelledBy;
use crate::tool::ask_user::AskUserArgs;
use crate::tool::{ToolContext, Web};
use crate::turn::model_call::{self, ModelCallInput};
use crate::turn::prepare::{self, PrepareInput};
use crate::turn::route::Route;
use crate::turn::tool_call::{self, CallInput};
use loopd_kernel::command::{
    Assessed, CallNeed, CallOutcome, Command, Effect, ModelFailure, Prepared, RememberScope,
};
use loopd_kernel::context;
use loopd_kernel::model::{Delivery, ModelRequest, ToolCall};
use loopd_kernel::policy;
use loopd_kernel::state::TurnKey;

/// How long an abort waits for running tools to say how they ended.
const ABORT_GRACE: Duration = Duration::from_millis(250);

/// How many pieces of partial output may wait for one call; a tool drops what is more.
const PARTIAL_OUTPUTS: usize = 16;

/// Reports into the session's mailbox.
#[derive(Clone)]
pub(super) struct Reporter(pub(super) mpsc::Sender<Message>);

impl Reporter {
    pub(super) async fn report(&self, command: Command) {
        // A session that has ended does not want to know.
        self.0.send(Message::Report(Box::new(command))).await.ok();
    }
}

impl Actor {
    /// Starts an effect that only looks; what it came to when that took no waiting at all.
    ///
    /// Preparing a plain message and assessing a plain call need nothing from outside. Decided in
    /// the same transaction as what asked for them, they save a commit each.
    pub(super) fn try_at_once(&mut self, effect: Effect) -> Option<Command> {
        let work = match effect {
            Effect::Prepare { messages } => self.prepare(messages),
            Effect::Assess { turn, call } => self.assess(turn, call),
            other => {
                self.start(other);
                return None;
            }
        };
        match work.at_once() {
            Ok(command) => command,
            Err(work) => {
                self.spawn_reporting(work);
                None
            }
        }
    }

    pub(super) fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Prepare { messages } => {
                let work = self.prepare(messages);
                self.spawn_reporting(work);
            }
            Effect::CallModel(turn) => self.call_model(turn),
            Effect::Assess { turn, call } => {
                let work = self.assess(turn, call);
                self.spawn_reporting(work);
            }
            Effect::Run { turn, call, grant } => self.run_call(turn, call, grant),
            Effect::CancelTurn => {
                self.turn.cancel();
                self.turn = CancellationToken::new();
            }
            Effect::StartGrace(turn) => {
                let reporter = self.reporter();
                self.effects.spawn(async move {
                    tokio::time::sleep(ABORT_GRACE).await;
                    reporter.report(Command::GraceOver { turn }).await;
                });
            }
            Effect::AskClients(Asked::UserInput(asked)) => {
                for client in self.clients.answering_users() {
                    self.ask(&client, &asked);
                }
            }
            Effect::AskClients(Asked::Elicitation(_)) => {
                // The event that announced it is the question.
            }
            Effect::Withdraw(request) => {
                self.question_waiters.withdraw(&request);
            }
            Effect::Resolve {
                request,
                action,
                content,
            } => {
                let answer = ElicitationAnswer { action, content };
                self.question_waiters.form_answered(&request, answer);
            }
            Effect::GrantAbove(grant) => self.grant_above(grant),
            Effect::CancelAgents => {
                let agents = self.subagents.runs().clone();
                self.effects.spawn(async move {
                    agents.cancel_all(CancelledBy::SessionEnds).await;
                });
            }
            Effect::Remember(approval, scope) => {
                let scope = match scope {
                    RememberScope::Location(key) => key,
                    RememberScope::Always => crate::approvals::EVERYWHERE.to_owned(),
                };
                let store = self.services.store.clone();
                let session = self.state.id.clone();
                self.effects.spawn(async move {
                    if let Err(error) =
                        crate::approvals::remember(store.as_ref(), &scope, &approval).await
                    {
                        tracing::error!(%session, %error, "an approval could not be remembered");
                    }
                });
            }
        }
    }

    pub(super) fn reporter(&self) -> Reporter {
        Reporter(self.mailbox.clone())
    }

    pub(super) fn route(&self) -> Route {
        Route {
            session: Some(match self.subagents.parent() {
                // The one that clients know.
                Some(parent) => parent.top().clone(),
                None => self.state.id.clone(),
            }),
            agent: self.origin(),
            options: self.options.clone(),
            cwd: self.state.cwd.clone(),
            launch: self.clients.launch().cloned(),
            api_token: self.clients.api_token().cloned(),
            token_clients: self.clients.token_clients().clone(),
            services: self.services.clone(),
        }
    }

    pub(super) fn toolset(&self) -> Toolset {
        let backend = self.shell_backend();
        Toolset::of(
            &self.state,
            &self.services,
            self.clients.attachments(),
            backend,
            &self.subagents.roster(),
        )
    }

    /// Where and for whom a tool runs, and where its partial output comes out.
    fn tool_context(&self, call: &ToolCall) -> (ToolContext, mpsc::Receiver<String>) {
        let (partial, output) = mpsc::channel(PARTIAL_OUTPUTS);
        let context = ToolContext {
            cwd: self.state.cwd.clone().into(),
            env: self.child_environment(),
            scratch: self.services.scratch_folder(&self.state.id),
            cancel: self.turn.clone(),
            web: self
                .clients
                .launch()
                .map(|launch| Web::new(launch.http.clone())),
            partial,
            shells: self.shells.clone(),
            agents: self.subagents.runs().clone(),
            lease: self.subagents.parent().map(|parent| parent.lease().clone()),
            backend: self.shell_backend(),
            call: call.id.clone(),
            unreadable: policy::unreadable(&self.leave().permissions).into(),
        };
        (context, output)
    }

    /// Runs work beside the session and reports what it came to.
    fn spawn_reporting(&mut self, work: Work) {
        let reporter = self.reporter();
        let at_work = self.services.keep_alive.work();
        self.effects.spawn(async move {
            let _at_work = at_work;
            if let Some(command) = work.done().await {
                reporter.report(command).await;
            }
        });
    }

    fn prepare(&mut self, messages: Vec<loopd_proto::event::fact::PendingMessage>) -> Work {
        self.take_headers(messages.iter().map(|message| &message.id));
        let tools = self.toolset();
        let client_tools = tools.client_names();
        let gone: Vec<String> = self.told_tools.difference(&client_tools).cloned().collect();
        let input = PrepareInput {
            messages,
            now: self.services.clock.now(),
            cwd: self.state.cwd.clone(),
            session: self.state.id.clone(),
            options: self.state.options.clone(),
            agent: self.state.agent.clone(),
            mode: self.state.mode,
            model: self.state.model.clone(),
            reasoning_effort: self.state.reasoning_effort.clone(),
            profile: self.state.subagent.as_ref().map(|own| own.profile.clone()),
            // A fork goes on with what its parent was told, to the letter.
            system: self.state.system.clone().filter(|_| self.is_fork()),
            tools_gone: gone,
            tool_names: tools.names().map(str::to_owned).collect(),
            transformers: self.clients.all().cloned().collect(),
            route: self.route(),
        };
        if !input.messages.is_empty() {
            // A notification tells nothing of tools; the next message will.
            self.told_tools = client_tools;
        }
        let roster_lookup = self.roster_lookup();
        let cancel = self.turn.clone();
        let ids: Vec<MessageId> = input.messages.iter().map(|m| m.id.clone()).collect();
        let messages = ids.clone();
        Work::new(
            async move {
                tokio::select! {
                    () = cancel.cancelled() => None,
                    outcome = prepared(input, roster_lookup) => Some(match outcome {
                        Ok(prepared) => Command::Prepared(prepared),
                        Err(failure) => Command::PrepareFailed { messages: ids, failure },
                    }),
                }
            },
            move || Command::PrepareFailed {
                messages,
                failure: internal_failure(),
            },
        )
    }

    fn is_fork(&self) -> bool {
        let subagent = self.state.subagent.as_ref();
        subagent.is_some_and(|own| own.profile.fork)
    }

    fn call_model(&mut self, turn: TurnKey) {
        let tools = self.toolset();
        let model = self.state.model.clone().unwrap_or_default();
        let messages = context::messages(&self.state);
        let request = ModelRequest {
            model,
            messages,
            tools: tools.specs(),
            delivery: if self.state.options.streaming == Some(true) {
                Delivery::Streamed
            } else {
                Delivery::Whole
            },
            reasoning_effort: self.state.reasoning_effort.clone(),
            headers: self.request_headers(),
        };
        let input = ModelCallInput {
            turn: turn.clone(),
            request,
            message: self.services.clock.id().into(),
            session: self.state.id.clone(),
            tip: self.state.tip.clone(),
            audience: self.clients.audience().clone(),
            services: self.services.clone(),
            route: self.route(),
            conversation_tokens: context::conversation_tokens(&self.state),
        };
        let cancel = self.turn.clone();
        let failed = turn;
        let work = Work::new(
            async move {
                tokio::select! {
                    () = cancel.cancelled() => None,
                    command = model_call::call(input) => Some(command),
                }
            },
            move || Command::ModelFailed {
                turn: failed,
                failure: internal_failure(),
            },
        );
        self.spawn_reporting(work);
    }

    /// The headers of the message that started this interaction.
    fn request_headers(&self) -> Vec<(String, String)> {
        self.headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn assess(&self, turn: TurnKey, call: ToolCall) -> Work {
        let tools = self.toolset();
        let context = self.tool_context(&call);
        // With nobody attached the question waits for somebody; with people attached who all do
        // not answer permissions, it would wait for ever.
        let can_ask = !self.is_attended() || self.clients.answer_permissions();
        let bypass = self.clients.launch().is_some_and(|launch| launch.yolo);
        let leave = self.state.subagent.as_ref().map(|_| self.leave());
        let (can_ask, bypass) = match &leave {
            // What the launch allows is part of what the session at the top hands down.
            Some(leave) if self.subagents.is_child() => {
                (self.can_ask_above() && leave.may_ask, false)
            }
            Some(leave) => (can_ask && leave.may_ask, false),
            None => (can_ask, bypass),
        };
        let inherited = leave.map(|leave| Box::new(leave.permissions));
        let id = call.id.clone();
        let (failed_turn, failed_call) = (turn.clone(), id.clone());
        Work::new(
            async move {
                let need = match tools.get(&call.name).map(|entry| &entry.origin) {
                    None => CallNeed::Refused(tool_call::unknown_tool(&call.name, tools.names())),
                    Some(Origin::BuiltIn(tool)) => {
                        tool_call::need(tool.as_ref(), &call.arguments, &context.0).await
                    }
                    Some(Origin::AskUser) => CallNeed::Nothing,
                    Some(Origin::Client(tool)) if tool.skip_permission => CallNeed::Nothing,
                    Some(Origin::Client(tool)) => {
                        CallNeed::Permission(PermissionRequest::CustomTool {
                            tool_call_id: None,
                            tool_name: tool.name.clone(),
                            tool_description: tool.description.clone(),
                            args: Some(call.arguments.clone()),
                        })
                    }
                };
                Some(Command::Assessed(Assessed {
                    turn,
                    call: id,
                    need,
                    can_ask,
                    bypass,
                    inherited,
                }))
            },
            move || crashed_call(failed_turn, failed_call),
        )
    }

    fn run_call(&mut self, turn: TurnKey, call: ToolCall, grant: Option<PermissionRequest>) {
        let tools = self.toolset();
        let (context, partial) = self.tool_context(&call);
        let input = CallInput {
            call: call.clone(),
            grant,
            context,
            partial,
            session: self.state.id.clone(),
            tip: self.state.tip.clone(),
            audience: self.clients.audience().clone(),
            services: self.services.clone(),
            redaction: self.redaction(),
        };
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        let work = Work::new(
            async move {
                let id = call.id.clone();
                let outcome = match tools.get(&call.name).map(|entry| &entry.origin) {
                    None => tool_call::unknown_tool(&call.name, tools.names()),
                    Some(Origin::Client(_)) => {
                        return Some(Command::CallClient { turn, call: id });
                    }
                    Some(Origin::AskUser) => {
                        match serde_path_to_error::deserialize::<_, AskUserArgs>(&call.arguments) {
                            Ok(args) => {
                                return Some(Command::AskUser {
                                    turn,
                                    call: id,
                                    question: args.question,
                                    choices: args.choices,
                                    allow_freeform: args.allow_freeform.unwrap_or(true),
                                });
                            }
                            Err(error) => CallOutcome::failure(
                                "failure",
                                format!("The arguments of ask_user are not valid: {error}"),
                            ),
                        }
                    }
                    Some(Origin::BuiltIn(tool)) => tool_call::run(tool.as_ref(), input).await,
                };
                Some(Command::ToolFinished {
                    turn,
                    call: id,
                    outcome,
                })
            },
            move || crashed_call(failed_turn, failed_call),
        );
        self.spawn_reporting(work);
    }
}

/// Makes messages ready while the agents are looked up.
async fn prepared(
    input: PrepareInput,
    roster_lookup: Option<RosterLookup>,
) -> Result<Prepared, ModelFailure> {
    let looked_up = async {
        if let Some(roster_lookup) = roster_lookup {
            roster_lookup.run().await;
        }
    };
    let (prepared, ()) = tokio::join!(prepare::prepare(input), looked_up);
    prepared
}

fn crashed_call(turn: TurnKey, call: loopd_proto::id::ToolCallId) -> Command {
    Command::ToolFinished {
        turn,
        call,
        outcome: CallOutcome::failure(
            "failure",
            "The tool crashed inside the daemon; this is a bug of loopd. Try another way.",
        ),
    }
}

fn internal_failure() -> ModelFailure {
    ModelFailure {
        kind: "internal".to_owned(),
        code: None,
        message: "the model call crashed inside the daemon; this is a bug of loopd".to_owned(),
        status: None,
        provider_call_id: None,
        model: None,
    }
}
