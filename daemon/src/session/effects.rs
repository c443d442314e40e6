//! Starts the effects that the kernel asks for. Each effect is a task of the session and reports a
//! command, also when it panics.

mod compaction;
mod model_call;
mod room;
mod tool_calls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_proto::event::fact::Asked;
use loopd_proto::id::MessageId;
use loopd_proto::permission::Approval;
use tokio::sync::mpsc;

use super::Message;
use super::actor::Actor;
use super::ask::ElicitationAnswer;
use super::hooks::{SelectedAgentHooks, report_found};
use super::instructions;
use super::mcp::lookup::look_and_start;
use super::skills;
use super::subagents::roster::RosterLookup;
use super::toolset::Toolset;
use super::work::Work;
use crate::discovery::hooks::HookKind;
use crate::hook::{HookCell, HookLookup};
use crate::mcp::{McpLookup, RequiredServers};
use crate::skill::{SkillCell, SkillLookup};
use crate::subagent::CancelledBy;
use crate::tool::mcp::McpTools;
use crate::turn::prepare::{self, PrepareInput, PromptHooks};
use crate::turn::route::Route;
use loopd_kernel::command::{Command, Effect, LogLevel, ModelFailure, Prepared, RememberScope};
use loopd_kernel::state::TurnKey;
use loopd_kernel::tasks::Task;

/// How long an abort waits for running tools to report how they ended.
const ABORT_GRACE: Duration = Duration::from_millis(250);

/// How long an abort waits for sub-agents to report how far they got: they stop their own tools and
/// look at their worktrees first.
const AGENT_GRACE: Duration = Duration::from_secs(3);

/// The grace time of a call whose output hooks have to see before the model may.
const REVIEW_GRACE: Duration = Duration::from_secs(2);

/// Sends the results of effects to the mailbox of the session.
#[derive(Clone)]
pub(super) struct Reporter(pub(super) mpsc::Sender<Message>);

impl Reporter {
    pub(super) async fn report(&self, command: Command) {
        // The send fails if the session has ended.
        self.0.send(Message::Report(Box::new(command))).await.ok();
    }
}

impl Actor {
    /// Starts an effect, which reports its result to the mailbox.
    pub(super) fn start(&mut self, effect: Effect) {
        if let Some(work) = self.begin(effect) {
            self.spawn_reporting(work);
        }
    }

    /// Begins an effect. Carries it out if that takes no time, else returns the work that remains.
    pub(super) fn begin(&mut self, effect: Effect) -> Option<Work> {
        match effect {
            Effect::Prepare { messages } => return Some(self.prepare(messages)),
            Effect::CallModel(turn) => {
                self.look_at_files(&turn);
                return Some(self.call_model(turn));
            }
            Effect::RestoreFiles(rewinding) => return Some(self.restore_files(*rewinding)),
            Effect::Guard { turn, call } => return self.guard(turn, call),
            Effect::AskHooks(asked) => return Some(self.ask_hooks(asked)),
            Effect::AskStop(turn) => return Some(self.ask_stop(turn)),
            Effect::Assess { turn, call, hooks } => return Some(self.assess(turn, call, hooks)),
            Effect::Run {
                turn,
                call,
                origin,
                grant,
            } => return Some(self.run_call(turn, call, origin, grant)),
            Effect::AwaitProvider { turn, until } => {
                return Some(self.await_provider(turn, until));
            }
            Effect::KeepOutputs { turn, results } => {
                return Some(self.keep_outputs(turn, &results));
            }
            Effect::StartGrace(turn) => return Some(grace(turn, self.grace_time())),
            Effect::Summarise(id) => return self.summarise(&id),
            Effect::MakeTitle { name, message } => self.make_title(name, &message),
            Effect::CancelSummary => self.running.cancel_summary(),
            Effect::OpenShellAhead => self.shells.open_spare(&self.agent_command_context()),
            Effect::CancelTurn => self.running.cancel_turn(),
            Effect::AskClients(Asked::UserInput(asked)) => {
                for client in self.clients.answering_users() {
                    self.ask(&client, &asked);
                }
            }
            Effect::AskClients(Asked::ExitPlanMode(plan)) => {
                if plan.is_new {
                    self.keep_plan(&plan.asked.plan_content);
                }
                for client in self.clients.answering_plans() {
                    self.ask_about_plan(&client, &plan.asked);
                }
            }
            Effect::AskClients(Asked::AutoModeSwitch(asked)) => {
                for client in self.clients.answering_switches() {
                    self.ask_for_model(&client, &asked);
                }
            }
            Effect::AskClients(Asked::Elicitation(_) | Asked::Guard(_)) => {
                // Clients see the form in the event that announced it.
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
            Effect::PartDecided { request, decided } => self.part_decided(&request, decided),
            Effect::RejoinAgent { task, waits } => return self.rejoin_agent(&task, waits),
            Effect::GrantAbove(grant) => self.grant_above(grant),
            Effect::CancelAgents => {
                let agents = self.subagents.runs().clone();
                self.running.spawn(async move {
                    agents.cancel_all(CancelledBy::SessionEnds).await;
                });
            }
            Effect::Remember(approval, scope) => self.remember(approval, scope),
            Effect::StartWorker(order) => self.start_worker(order),
            Effect::ContinueWorker {
                todo,
                task,
                message,
            } => self.continue_worker(todo, task, message),
            Effect::CancelWorkers(workers) => self.cancel_workers(workers),
            Effect::RunCommand(command) if command.by_daemon => {
                return Some(self.run_queued_command(command));
            }
            Effect::RunCommand(command) => self.offer_queued_command(&command),
        }
        None
    }

    /// Stores an approval that outlasts this session.
    fn remember(&mut self, approval: Approval, scope: RememberScope) {
        let scope = match scope {
            RememberScope::Location(key) => key,
            RememberScope::Always => crate::approvals::EVERYWHERE.to_owned(),
        };
        let store = self.services.store.clone();
        let session = self.state.id.clone();
        self.running.spawn(async move {
            if let Err(error) = crate::approvals::remember(store.as_ref(), &scope, &approval).await
            {
                tracing::error!(%session, %error, "an approval could not be remembered");
            }
        });
    }

    pub(super) fn reporter(&self) -> Reporter {
        Reporter(self.mailbox.clone())
    }

    pub(super) fn route(&self) -> Route {
        Route {
            session: Some(match self.subagents.parent() {
                // Clients know only the session at the top.
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

    pub(super) fn toolset(&self) -> Toolset<'_> {
        let backend = self.shell_backend();
        Toolset::of(
            &self.state,
            &self.services,
            self.clients.attachments(),
            backend,
            self.subagents.roster(),
            self.planning(),
            &self.skills_view(),
        )
        .with_mcp(McpTools::new(self.mcp.cell.tools()))
    }

    /// Runs work beside the actor and reports its result.
    pub(super) fn spawn_reporting(&mut self, work: Work) {
        let reporter = self.reporter();
        let at_work = work.keep_alive(&self.services.keep_alive);
        self.running.spawn_in_transaction(async move {
            let _at_work = at_work;
            if let Some(command) = work.done().await {
                reporter.report(command).await;
            }
        });
    }

    fn prepare(&mut self, messages: Vec<loopd_proto::event::fact::PendingMessage>) -> Work {
        self.running
            .take_headers(messages.iter().map(|message| &message.id));
        let hook_lookup = self.hook_lookup();
        let agent_hooks = self.selected_agent_hooks();
        let looks = hook_lookup.is_some() || agent_hooks.is_some();
        self.hooks.looking.store(looks, Ordering::Relaxed);
        let client_tools = self.toolset().client_names();
        let hooks = self.prompt_hooks(looks);
        let input = self.prepare_input(messages, hooks);
        if !input.messages.is_empty() {
            // A notification does not tell the model about tools; the next message does.
            self.running.tell_tools(client_tools);
        }
        self.begin_preparing(Box::new(input), hook_lookup, agent_hooks)
    }

    /// Returns what messages are prepared with; without messages, the system message.
    fn prepare_input(
        &self,
        messages: Vec<loopd_proto::event::fact::PendingMessage>,
        hooks: Option<PromptHooks>,
    ) -> PrepareInput {
        let tools = self.toolset();
        let gone = self.running.tools_gone(&tools.client_names());
        let given_instructions = self.given_instructions(&messages);
        PrepareInput {
            messages,
            now: self.services.clock.now(),
            cwd: self.state.cwd.clone(),
            session: self.state.id.clone(),
            options: self.state.options.clone(),
            agent: self.state.agent_in_force().map(str::to_owned),
            mode: self.state.mode,
            planning: self.planning(),
            model: self.state.model_in_force().map(str::to_owned),
            reasoning_effort: self.effort_in_force(),
            profile: self.state.subagent.as_ref().map(|own| own.profile.clone()),
            // A fork continues with exactly the system message of its parent.
            system: self.state.system.clone().filter(|_| self.is_fork()),
            tools_gone: gone,
            tool_names: tools.names().map(str::to_owned).collect(),
            transformers: self.clients.all().cloned().collect(),
            route: self.route(),
            hooks,
            skills: self.skills_view(),
            task_skill: self.task_skill(),
            instructions: self.instruction_lookup(),
            given_instructions,
        }
    }

    fn begin_preparing(
        &mut self,
        input: Box<PrepareInput>,
        hook_lookup: Option<HookLookup>,
        agent_hooks: Option<SelectedAgentHooks>,
    ) -> Work {
        let lookups = Box::new(PromptLookups {
            mcp: self.mcp_lookup(),
            required: self.required_servers(),
            roster: self.roster_lookup(),
            hooks: hook_lookup,
            agent_hooks,
            files: self.hooks.files.clone(),
            looking: self.hooks.looking.clone(),
            skills: self.skill_lookup(),
            skill_cell: self.skills.cell.clone(),
        });
        let cancel = self.running.turn();
        let reporter = self.reporter();
        let ids: Vec<MessageId> = input.messages.iter().map(|m| m.id.clone()).collect();
        let messages = ids.clone();
        Work::new(
            async move {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    outcome = prepared(input, lookups, reporter) => Some(match outcome {
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

    /// Returns the reasoning effort in force. That of the session was chosen for its own model.
    pub(super) fn effort_in_force(&self) -> Option<String> {
        let own = self.state.reasoning_effort.clone();
        own.filter(|_| self.state.scoped_model().is_none())
    }

    fn grace_time(&self) -> Duration {
        let mut agents = self.state.tasks.running();
        let mut running = self.state.calls().filter(|call| call.may_run());
        if agents.any(Task::is_waited_for) {
            AGENT_GRACE
        } else if running.any(|call| self.has_hooks(HookKind::PostToolUse, Some(&call.call.name))) {
            REVIEW_GRACE
        } else {
            ABORT_GRACE
        }
    }

    fn is_fork(&self) -> bool {
        let subagent = self.state.subagent.as_ref();
        subagent.is_some_and(|own| own.profile.fork)
    }
}

/// Gives running tools a moment to report how they ended.
fn grace(turn: TurnKey, time: Duration) -> Work {
    let over = turn.clone();
    Work::new(
        async move {
            tokio::time::sleep(time).await;
            Some(Command::GraceOver { turn })
        },
        move || Command::GraceOver { turn: over },
    )
}

/// What is looked up on disk when messages are prepared.
struct PromptLookups {
    mcp: Option<McpLookup>,
    required: Option<RequiredServers>,
    roster: Option<RosterLookup>,
    hooks: Option<HookLookup>,
    agent_hooks: Option<SelectedAgentHooks>,
    /// Where the hooks are that were found.
    files: HookCell,
    /// Whether hooks are still being looked for.
    looking: Arc<AtomicBool>,
    skills: Option<SkillLookup>,
    /// Remembers what people were told about skills.
    skill_cell: SkillCell,
}

/// Prepares messages while the sub-agent definitions are looked up. The hooks and servers of a selected
/// agent are in its definition, which is looked up before then. Lookups are rare and large, so each is boxed
/// when it runs: every turn has such a future.
async fn prepared(
    mut input: Box<PrepareInput>,
    mut lookups: Box<PromptLookups>,
    reporter: Reporter,
) -> Result<Prepared, ModelFailure> {
    if (lookups.agent_hooks.is_some() || lookups.required.is_some())
        && let Some(roster_lookup) = lookups.roster.take()
    {
        Box::pin(roster_lookup.run()).await;
    }
    if let Some(agent_hooks) = lookups.agent_hooks.take() {
        agent_hooks.take();
    }
    if let Some(lookup) = lookups.hooks.take() {
        Box::pin(async { report_found(lookup.run().await, &reporter).await }).await;
    }
    lookups.looking.store(false, Ordering::Relaxed);
    if let Some(hooks) = &mut input.hooks {
        hooks.context.hooks.files = lookups.files.hooks();
    }
    if let Some(lookup) = lookups.skills.take() {
        let (view, news) = lookup.run().await;
        input.skills = view;
        skills::report(news, &reporter).await;
    }
    let (roster, mcp, required) = (
        lookups.roster.take(),
        lookups.mcp.take(),
        lookups.required.take(),
    );
    let looked_up = async {
        if let Some(roster_lookup) = roster {
            Box::pin(roster_lookup.run()).await;
        }
    };
    let servers = async {
        if let Some(lookup) = mcp {
            Box::pin(look_and_start(lookup, &reporter)).await;
        }
        match required {
            Some(required) => required.connected().await.map_err(servers_missing),
            None => Ok(()),
        }
    };
    let (prepared, (), servers) = tokio::join!(prepare::prepare(*input), looked_up, servers);
    let (prepared, notices) = prepared?;
    servers?;
    let news = lookups.skill_cell.new_problems(notices.skills);
    skills::report(news, &reporter).await;
    instructions::report_warnings(notices.instructions, &reporter).await;
    for missing in notices.attachments {
        reporter.report(attachment_missing(&missing)).await;
    }
    Ok(prepared)
}

/// Tells people of an attachment that the model does not get.
fn attachment_missing(what: &str) -> Command {
    Command::Log {
        level: LogLevel::Warning,
        kind: "attachment_missing".to_owned(),
        message: format!("An attachment does not reach the model, which is told so: {what}"),
        url: None,
        tip: None,
        stored: true,
    }
}

/// The failure of a message whose agent lacks a server that it cannot work without.
fn servers_missing(message: String) -> ModelFailure {
    ModelFailure {
        kind: "mcp_servers".to_owned(),
        message,
        ..internal_failure()
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
        retry_after_seconds: None,
    }
}
