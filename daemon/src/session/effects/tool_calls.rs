//! The two effects of a tool call: assessing its permission, and running it once permitted.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use loopd_mcp::Server;
use loopd_proto::id::{TaskId, ToolCallId};
use tokio::sync::mpsc;

use super::super::actor::Actor;
use super::super::work::Work;
use super::Reporter;
use crate::discovery::hooks::HookKind;
use crate::hook::HookContext;
use crate::redaction::Redaction;
use crate::session::{SessionError, SessionHandle};
use crate::tool::mcp::McpTool;
use crate::tool::source::ResolvedTool;
use crate::tool::{
    AssessContext, DynTool, Partial, PermitCheck, ShellLookup, ToolContext, Web, task, todo,
};
use crate::turn::argument_limit::refused_arguments;
use crate::turn::tool_call::{self, CallInput};
use loopd_kernel::command::{
    AssessAgain, Assessed, CallNeed, CallOutcome, CallStatusReport, Command, GrantCheck, Refusal,
};
use loopd_kernel::hook::HookVerdict;
use loopd_kernel::model::ToolCall;
use loopd_kernel::policy;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::policy::planning::ToolClaim;
use loopd_kernel::policy::restrict::EffectivePermissions;
use loopd_kernel::research::{CallPath, refusal};
use loopd_kernel::state::TurnKey;
use loopd_kernel::texts;
use loopd_kernel::tool_call::{Ahead, ToolOrigin};

/// The most pieces of partial output that may wait for one call; the tool drops further pieces.
const PARTIAL_OUTPUTS: usize = 16;

impl Actor {
    /// Finds out which permission a call needs. The tool's name is resolved here and nowhere else.
    pub(super) fn assess(&self, turn: TurnKey, call: ToolCall, hooks: HookVerdict) -> Work {
        let tools = self.toolset();
        let cut = self.state.answer_cut.filter(|_| call.arguments.is_string());
        let refused = match cut {
            Some(cut) => Some(cut.told_of_cut_call()),
            None => refused_arguments(&call.arguments).map(str::to_owned),
        };
        let tool = match refused {
            Some(reason) => Err(CallOutcome::failure("failure", reason)),
            None if tools.resolve(&call.name).is_none()
                && let Some(work) = self.await_servers(&turn, &call, &hooks) =>
            {
                return work;
            }
            None => tools
                .resolve(&call.name)
                .ok_or_else(|| tool_call::unknown_tool(&call.name, tools.names())),
        };
        let tool = tool.and_then(|tool| match self.refused_by_research(&call) {
            Some(reason) => Err(CallOutcome::failure("failure", reason)),
            None => Ok(tool),
        });
        let origin = tool
            .as_ref()
            .map_or(ToolOrigin::BuiltIn, ResolvedTool::origin);
        let claim = tool
            .as_ref()
            .map_or(ToolClaim::Nothing, ResolvedTool::claim);
        let call = self.running.with_arguments(call);
        let effective = self.effective_permissions();
        // Only a call that runs compares its grant with what the request showed.
        let context = self.assess_context(&effective, Redaction::default());
        // With no client attached, the request waits for one. If clients are attached but none
        // answers permission requests, it would wait for ever.
        let can_ask = if self.subagents.is_child() {
            self.can_ask_above()
        } else {
            !self.is_attended() || self.clients.answer_permissions()
        };
        let can_ask = can_ask && effective.may_ask;
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        Work::new(
            async move {
                let (need, ahead) = match tool {
                    Ok(tool) => tool_call::to_call_need(tool.need(&call.arguments, &context).await),
                    Err(outcome) => (CallNeed::Refused(outcome), Ahead::Nothing),
                };
                Some(Command::Assessed(Box::new(Assessed {
                    turn,
                    call: call.id,
                    origin,
                    need,
                    claim,
                    ahead,
                    can_ask,
                    hooks,
                })))
            },
            move || crashed_call(failed_turn, failed_call),
        )
    }

    /// Waits for MCP servers that start for the first time, if the call may be meant for one of them. It is
    /// assessed again when they are there.
    fn await_servers(&self, turn: &TurnKey, call: &ToolCall, hooks: &HookVerdict) -> Option<Work> {
        let servers = self.mcp.starting_for(&call.name);
        if servers.is_empty() {
            return None;
        }
        let cancel = self.running.turn();
        let (turn, call, hooks) = (turn.clone(), call.clone(), hooks.clone());
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        Some(Work::new(
            async move {
                let connected = join_all(servers.iter().map(Server::connected));
                tokio::select! {
                    _ = connected => {}
                    () = cancel.cancelled() => {}
                }
                let again = AssessAgain { turn, call, hooks };
                Some(Command::AssessAgain(Box::new(again)))
            },
            move || crashed_call(failed_turn, failed_call),
        ))
    }

    /// Returns what asks the hooks before a tool of an MCP server is called.
    fn mcp_hooks(&self, call: &ToolCall) -> Option<HookContext> {
        let has = self.has_hooks(HookKind::PreMcpToolCall, Some(&call.name));
        has.then(|| self.hook_context())
    }

    /// Returns why a call is not allowed while a research goes on.
    fn refused_by_research(&self, call: &ToolCall) -> Option<String> {
        let report = self.state.research_report()?;
        let path = call.arguments.get("path").and_then(|path| path.as_str());
        let path = path.map(|path| {
            let context = self.assess_context(&self.effective_permissions(), Redaction::default());
            context.resolve(path)
        });
        let folder = self.services.session_folder(&self.state.id);
        let outputs = [
            folder.join("agents"),
            self.services.scratch_folder(&self.state.id),
        ];
        let is_output = path
            .as_ref()
            .is_some_and(|path| outputs.iter().any(|folder| path.starts_with(folder)));
        let named = path.as_ref().map(|path| path.to_string_lossy());
        let path = named.as_deref().map(|path| CallPath { path, is_output });
        let before = self.state.agents_before(&call.id);
        refusal(report, &call.name, &call.arguments, path, before)
    }

    pub(in crate::session) fn assess_context(
        &self,
        effective: &EffectivePermissions,
        redaction: Redaction,
    ) -> AssessContext {
        AssessContext {
            cwd: self.state.cwd.clone().into(),
            scratch: self.services.scratch_folder(&self.state.id),
            guarded: policy::guarded(&effective.permissions).into(),
            open_shells: ShellLookup::new(self.shells.clone()),
            sandbox_network: self.services.config.shell.sandbox_network(),
            plan_file: self.services.plan_file(&self.state.id).into(),
            planning: effective.planning,
            changed_shells: self.state.changed_shells.clone(),
            redaction,
            skills: self.skills_view(),
        }
    }

    /// Returns the context that a tool runs in, and the receiver of its partial output.
    pub(in crate::session) fn tool_context(
        &self,
        call: &ToolCallId,
        redaction: Redaction,
    ) -> (ToolContext, mpsc::Receiver<Partial>) {
        let (partial, output) = mpsc::channel(PARTIAL_OUTPUTS);
        let context = ToolContext {
            assess: self.assess_context(&self.effective_permissions(), redaction),
            env: self.child_environment(),
            cancel: self.running.turn(),
            web: self
                .clients
                .launch()
                .map(|launch| Web::new(launch.http.clone())),
            partial,
            shells: self.shells.clone(),
            agents: self.subagents.runs().clone(),
            mcp_tasks: self.mcp.tasks.clone(),
            todos: self.session_todos(),
            lease: self.subagents.parent().map(|parent| parent.lease().clone()),
            backend: self.shell_backend(),
            captures: self.captures(),
            board: self.services.board(Path::new(&self.state.cwd)),
            permits: Arc::new(SessionPermits(SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            })),
            call: call.clone(),
            session: self.state.id.clone(),
            may_go_on: true,
        };
        (context, output)
    }

    /// Runs a call with the tool that it was assessed for, even if the name now means another tool.
    pub(super) fn run_call(
        &self,
        turn: TurnKey,
        call: ToolCall,
        origin: ToolOrigin,
        grant: Grant,
    ) -> Work {
        let (tool, mcp) = match origin {
            ToolOrigin::BuiltIn => (self.services.catalog.get(&call.name), None),
            // A client receives its tool calls by an event.
            ToolOrigin::Client => (None, None),
            ToolOrigin::Mcp => (None, self.mcp.tool_of(&grant)),
        };
        let before = mcp.as_ref().and_then(|_| self.mcp_hooks(&call));
        let id = call.id.clone();
        let call = self.running.with_arguments(call);
        let redaction = self.redaction();
        self.file_masks.set(redaction.clone());
        let (context, partial) = self.tool_context(&id, redaction.clone());
        let seen = call.clone();
        let input = CallInput {
            call,
            grant,
            context,
            partial,
            session: self.state.id.clone(),
            tip: self.state.tip.clone(),
            audience: self.clients.audience().clone(),
            services: self.services.clone(),
            redaction,
        };
        let (failed_turn, failed_call) = (turn.clone(), id.clone());
        let waits = tool.as_ref().is_some_and(|tool| tool.waits_for_agents());
        let hooks = self.reviewer(&seen, None);
        let captures = hooks.is_some().then(|| self.captures());
        let nearby = self.instructions_near(&id, input.grant.request());
        let reporter = self.reporter();
        let turn_before = self.todo_calls_before(&id, origin);
        let work = Work::new(
            async move {
                if let Some(before) = turn_before {
                    before.await;
                }
                let outcome = match (tool, mcp) {
                    (Some(tool), _) => tool_call::run(tool.as_ref(), input).await,
                    (None, Some(tool)) => run_mcp(tool, before, input, &reporter).await,
                    (None, None) => {
                        CallOutcome::failure("failure", texts::tool_is_gone(&input.call.name))
                    }
                };
                if let Some(nearby) = nearby.filter(|_| outcome.status == CallStatusReport::Success)
                {
                    nearby.report(&reporter).await;
                }
                let Some(context) = hooks else {
                    return Some(finished(turn, id, outcome));
                };
                let outcome = reviewed(&context, &seen, outcome, &reporter).await;
                if let Some(captures) = captures {
                    // A hook may have changed files, a formatter for example.
                    captures.touched();
                }
                Some(finished(turn, id, outcome))
            },
            move || crashed_call(failed_turn, failed_call),
        );
        if waits { work.that_waits() } else { work }
    }
}

/// Asks a session about calls that were permitted.
struct SessionPermits(SessionHandle);

impl std::fmt::Debug for SessionPermits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SessionPermits").field(self.0.id()).finish()
    }
}

impl PermitCheck for SessionPermits {
    fn still_permitted(&self, check: GrantCheck) -> BoxFuture<'static, Result<(), String>> {
        let asked = self.0.command(Command::CheckGrant(Box::new(check)));
        async move {
            match asked.await {
                Ok(_) => Ok(()),
                Err(SessionError::Refused(Refusal::GrantLost(why))) => Err(why),
                Err(error) => Err(format!(
                    "Nothing was run: the session could not be asked whether the command may still begin: {error}."
                )),
            }
        }
        .boxed()
    }
}

impl Actor {
    /// Returns a wait for the calls before this one that use the todo list, if there are any. The calls of
    /// one message run at the same time, but what they do with the list has to be done in their order.
    fn todo_calls_before(
        &self,
        id: &ToolCallId,
        origin: ToolOrigin,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let uses_list = |name: &str| todo::NAMES.contains(&name);
        let own = self.state.calls().find(|call| call.call.id == *id)?;
        if origin != ToolOrigin::BuiltIn || !uses_list(&own.call.name) {
            return None;
        }
        let earlier = self.state.calls().take_while(|call| call.call.id != *id);
        let earlier = earlier.filter(|call| call.is_open() && uses_list(&call.call.name));
        let earlier: Vec<ToolCallId> = earlier.map(|call| call.call.id.clone()).collect();
        if earlier.is_empty() {
            return None;
        }
        let session = SessionHandle {
            id: self.state.id.clone(),
            mailbox: self.mailbox.clone(),
        };
        let mut ticks = self.ticks.subscribe();
        let cancelled = self.running.turn();
        Some(async move {
            let wait = async {
                loop {
                    let earlier = earlier.clone();
                    let is_open = session.state(move |state| {
                        let mut calls = state.calls();
                        calls.any(|call| call.is_open() && earlier.contains(&call.call.id))
                    });
                    // A session that has ended has no calls.
                    if !is_open.await.unwrap_or(false) || ticks.changed().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = wait => {}
                () = cancelled.cancelled() => {}
            }
        })
    }

    /// Goes on with a sub-agent that waits for an answer since before this session was opened again.
    /// Returns the work of the call that waits for it.
    pub(super) fn rejoin_agent(
        &self,
        task: &TaskId,
        waits: Option<(TurnKey, ToolCallId)>,
    ) -> Option<Work> {
        let task = self.state.tasks.get(task.as_str())?;
        let started = self.subagents.runs().rejoin(task)?;
        let (turn, call) = waits?;
        let (context, _) = self.tool_context(&call, self.redaction());
        let hooks = self.state.calls().find(|open| open.call.id == call);
        let hooks =
            hooks.and_then(|open| Some((open.call.clone(), self.reviewer(&open.call, None)?)));
        let reporter = self.reporter();
        let (failed_turn, failed_call) = (turn.clone(), call.clone());
        let work = Work::new(
            async move {
                let outcome = task::result(&started, &context).await;
                let outcome = tool_call::into_call_outcome(outcome, None);
                let outcome = match hooks {
                    Some((call, hooks)) => reviewed(&hooks, &call, outcome, &reporter).await,
                    None => outcome,
                };
                Some(finished(turn, call, outcome))
            },
            move || crashed_call(failed_turn, failed_call),
        );
        Some(work.that_waits())
    }
}

/// Shows a result to the hooks, and records what they said.
async fn reviewed(
    hooks: &HookContext,
    call: &ToolCall,
    outcome: CallOutcome,
    reporter: &Reporter,
) -> CallOutcome {
    let end = hooks.review(call, outcome).await;
    if !end.context.is_empty() || !end.ended.is_empty() {
        let noted = Command::HooksNoted {
            context: end.context,
            ended: end.ended,
        };
        reporter.report(noted).await;
    }
    end.outcome
}

/// Calls a tool of an MCP server, after the hooks have seen the call.
async fn run_mcp(
    mut tool: McpTool,
    hooks: Option<HookContext>,
    input: CallInput,
    reporter: &Reporter,
) -> CallOutcome {
    if let Some(hooks) = hooks {
        let end = hooks.before_mcp_call(&input.call, &tool.reference()).await;
        if !end.ended.is_empty() {
            let noted = Command::HooksNoted {
                context: Vec::new(),
                ended: end.ended,
            };
            reporter.report(noted).await;
        }
        if let Some(why) = end.denied {
            return CallOutcome::failure("denied", texts::denied_by_mcp_hook(&why));
        }
        tool.meta = end.meta;
    }
    tool_call::run(&tool as &dyn DynTool, input).await
}

fn finished(turn: TurnKey, call: ToolCallId, outcome: CallOutcome) -> Command {
    Command::ToolFinished {
        turn,
        call,
        outcome,
    }
}

fn crashed_call(turn: TurnKey, call: ToolCallId) -> Command {
    let outcome = CallOutcome::failure(
        "failure",
        "The tool crashed inside the daemon; this is a bug of loopd. Try another way.",
    );
    finished(turn, call, outcome)
}
