//! Asks the model for a summary of the conversation, and reads what is on disk and has to survive.

use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::compaction::CompactionTrigger;
use loopd_proto::event::skill::{SkillInvoked, SkillTrigger};
use loopd_proto::id::{RequestId, SessionId};
use tokio_util::sync::CancellationToken;

use crate::discovery::hooks::HookKind;
use crate::hook::HookContext;
use crate::session::actor::Actor;
use crate::session::budget::CallBudget;
use crate::session::work::Work;
use crate::skill::{LoadRequest, SkillView};
use crate::tool::exit_plan_mode::read_plan;
use crate::turn::prepare::{self, PrepareInput};
use crate::turn::side_call::{self, SideCall, SideFailure, SideReply};
use loopd_kernel::command::{
    Command, CompactionFailure, ModelFailure, RequestFacts, SideUsage, Summarised, Summary,
};
use loopd_kernel::compaction::RunningCompaction;
use loopd_kernel::compaction::request::Summarisable;
use loopd_kernel::model::{Finish, ModelRequest};
use loopd_kernel::texts;
use loopd_kernel::texts::compaction::{Surviving, SurvivingSkill};

/// How many tokens of the conversation are summarised although a provider takes less than was thought.
const LEAST_ROOM: u64 = 3_000;

/// How long a compaction may take in all.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The fewest and the most tokens that the reply with the summary may have.
const LEAST_OUTPUT: u64 = 2_048;
const MOST_OUTPUT: u64 = 16_384;

/// The kind of failure that says that a request is too long for its model.
const TOO_LONG: &str = "context_limit";

/// The kind of failure that says that no request was made, because nothing would have been in it.
const NO_ROOM: &str = "no_room";

impl Actor {
    /// Begins the model call for the summary of the running compaction.
    pub(super) fn summarise(&mut self, id: &RequestId) -> Option<Work> {
        let running = self.state.compaction.running.clone();
        let running = running.filter(|running| running.id == *id)?;
        let cancel = self.running.summary();
        let facts = self.request_facts();
        let output = (facts.window.limit / 6).clamp(LEAST_OUTPUT, MOST_OUTPUT);
        let known = facts.window.output.unwrap_or(u64::MAX);
        let output = output.min(known);
        let budget = self.side_budget(&facts.model, facts.size.total(), output);
        let hooks = self.has_hooks(HookKind::PreCompact, Some(word(running.trigger)));
        let hooks = hooks.then(|| HookContext {
            cancel: cancel.clone(),
            ..self.hook_context()
        });
        let fork = self.is_fork();
        let summarising = Summarising {
            conversation: Summarisable::of(&self.state),
            request: self.request_beside(&facts.model, output),
            disk: Disk {
                session: self.state.id.clone(),
                instructions: self.instructions_again().boxed(),
                plan: self
                    .state
                    .plan_exists
                    .then(|| PathBuf::from(self.services.plan_file(&self.state.id))),
                skills: self.skills_view(),
                active: self
                    .state
                    .skills
                    .loaded()
                    .iter()
                    .filter(|skill| skill.seq <= running.through)
                    .map(|skill| skill.invoked.clone())
                    .collect(),
                system: (!fork).then(|| self.prepare_input(Vec::new(), None)),
            },
            call: SideCallSource {
                route: self.route(),
                services: self.services.clone(),
            },
            running,
            facts,
            budget,
            hooks,
        };
        let crashed = id.clone();
        Some(Work::new(summarising.report(cancel), move || {
            Command::Summarised(Box::new(Summarised {
                id: crashed,
                outcome: Err(CompactionFailure::new(
                    "It crashed inside the daemon; this is a bug of loopd.",
                )),
                spent: Vec::new(),
                ended: Vec::new(),
            }))
        }))
    }
}

/// How hooks call what began a compaction.
fn word(trigger: CompactionTrigger) -> &'static str {
    match trigger {
        CompactionTrigger::Manual => "manual",
        CompactionTrigger::Threshold | CompactionTrigger::ContextLimitRetry => "auto",
    }
}

/// A compaction under way.
struct Summarising {
    running: RunningCompaction,
    facts: RequestFacts,
    conversation: Summarisable,
    /// The request but for its messages.
    request: ModelRequest,
    budget: Option<CallBudget>,
    hooks: Option<HookContext>,
    disk: Disk,
    call: SideCallSource,
}

/// Where side calls go.
struct SideCallSource {
    route: crate::turn::route::Route,
    services: std::sync::Arc<crate::services::Services>,
}

/// What of the disk survives a compaction.
struct Disk {
    session: SessionId,
    instructions: BoxFuture<'static, Option<String>>,
    plan: Option<PathBuf>,
    skills: SkillView,
    active: Vec<SkillInvoked>,
    /// How the system message is made; `None` if it stays.
    system: Option<PrepareInput>,
}

impl Summarising {
    async fn report(self, cancel: CancellationToken) -> Option<Command> {
        let id = self.running.id.clone();
        let mut summarised = Summarised {
            id,
            outcome: Err(CompactionFailure::new(format!(
                "It did not end within {} minutes.",
                LONGEST.as_secs() / 60
            ))),
            spent: Vec::new(),
            ended: Vec::new(),
        };
        tokio::select! {
            () = cancel.cancelled() => return None,
            _ = tokio::time::timeout(LONGEST, self.fill(&mut summarised)) => {}
        }
        Some(Command::Summarised(Box::new(summarised)))
    }

    async fn fill(self, summarised: &mut Summarised) {
        let mut instructions: Vec<String> = self.running.instructions.iter().cloned().collect();
        if let Some(hooks) = &self.hooks {
            let given = self.running.instructions.as_deref();
            let said = hooks.before_compaction(word(self.running.trigger), given);
            let said = said.await;
            summarised.ended = said.ended;
            if let Some(why) = said.blocked {
                summarised.outcome = Err(CompactionFailure::new(why));
                return;
            }
            instructions.extend(said.instructions);
        }
        let Self {
            running,
            facts,
            conversation,
            request,
            budget,
            disk,
            call,
            ..
        } = self;
        let asked = Asked {
            conversation,
            request,
            instructions,
            call,
        };
        let room = room(&facts, running.trigger);
        let called = asked.ask(room, budget, &mut summarised.spent).await;
        summarised.outcome = match called {
            Ok((reply, _)) if reply.finish == Finish::ContentFilter => Err(CompactionFailure::new(
                "The provider did not let the summary through.",
            )),
            Ok((reply, left_out)) => {
                let (disk, system) = Box::pin(disk.read()).await;
                Ok(Summary {
                    text: reply.text,
                    left_out,
                    provider_call_id: reply.provider_call_id,
                    disk,
                    system,
                })
            }
            Err(failure) => Err(CompactionFailure {
                message: failure.failure.message,
                status: failure.failure.status,
            }),
        };
    }
}

/// Returns how many tokens of our own the conversation may have in the request for a summary.
fn room(facts: &RequestFacts, trigger: CompactionTrigger) -> u64 {
    let fixed = facts.size.system + facts.size.tools;
    let room = facts.window.prompt_limit().saturating_sub(fixed);
    let room = match trigger {
        CompactionTrigger::Threshold | CompactionTrigger::Manual => room,
        // The provider takes less than was thought. A short conversation is not what is too long.
        CompactionTrigger::ContextLimitRetry => {
            (room.min(facts.size.conversation) / 10 * 7).max(LEAST_ROOM)
        }
    };
    facts.in_own(room)
}

/// The question for a summary.
struct Asked {
    conversation: Summarisable,
    request: ModelRequest,
    instructions: Vec<String>,
    call: SideCallSource,
}

impl Asked {
    /// Asks the model; once more with half of the conversation if the request is too long. Returns also
    /// how many messages were left out of the request.
    async fn ask(
        &self,
        room: u64,
        budget: Option<CallBudget>,
        spent: &mut Vec<SideUsage>,
    ) -> Result<(SideReply, u64), SideFailure> {
        let reservation = match &budget {
            Some(budget) => {
                let reserved = budget.reserve(&self.request.model, || {}).await;
                Some(reserved.map_err(|failure| SideFailure {
                    failure,
                    used: None,
                })?)
            }
            None => None,
        };
        let mut called = self.ask_once(room).await;
        if let Err(failed) = &called
            && failed.failure.kind == TOO_LONG
        {
            spent.extend(failed.used.clone());
            called = self.ask_once(room / 2).await;
        }
        match &called {
            Ok((reply, _)) => spent.push(reply.used.clone()),
            Err(failure) => spent.extend(failure.used.clone()),
        }
        if let (Some(budget), Some(reservation), Some(used)) = (budget, reservation, spent.last()) {
            budget.settle_side(reservation, used).await;
        }
        called
    }

    async fn ask_once(&self, room: u64) -> Result<(SideReply, u64), SideFailure> {
        let Some(asked) = self.conversation.request(room, &self.instructions) else {
            return Err(SideFailure {
                failure: ModelFailure {
                    kind: NO_ROOM.to_owned(),
                    code: None,
                    message: texts::compaction::NO_ROOM.to_owned(),
                    status: None,
                    provider_call_id: None,
                    model: Some(self.request.model.clone()),
                    retry_after_seconds: None,
                },
                used: None,
            });
        };
        let reply = side_call::call(SideCall {
            request: ModelRequest {
                messages: asked.messages,
                ..self.request.clone()
            },
            route: self.call.route.clone(),
            services: self.call.services.clone(),
            sent: room,
        })
        .await?;
        Ok((reply, asked.left_out))
    }
}

impl Disk {
    /// Reads what survives, and makes the system message anew.
    async fn read(self) -> (Surviving, Option<String>) {
        let Self {
            session,
            instructions,
            plan,
            skills: view,
            active,
            system,
        } = self;
        let instructions = instructions.await;
        let plan = match &plan {
            Some(file) => read_plan(file).await,
            None => None,
        };
        let mut skills = Vec::with_capacity(active.len());
        for known in &active {
            if known.trigger == Some(SkillTrigger::ContextLoad) {
                continue;
            }
            let content = reread(&session, &view, known).await;
            let content = content.as_ref().unwrap_or(&known.content);
            skills.push(SurvivingSkill {
                name: known.name.clone(),
                text: texts::skill::context(&known.name, &known.path, content),
            });
        }
        let system = match system {
            Some(input) => match prepare::prepare(input).await {
                Ok((prepared, _)) => Some(prepared.system),
                Err(failure) => {
                    tracing::warn!(%session, why = failure.message, "the system message stays as it is");
                    None
                }
            },
            None => None,
        };
        let surviving = Surviving {
            instructions,
            plan,
            skills,
        };
        (surviving, system)
    }
}

/// Reads the text of a skill again. That of one which a person started has the words in it that the
/// person wrote, so that it stays.
async fn reread(session: &SessionId, skills: &SkillView, known: &SkillInvoked) -> Option<String> {
    if known.trigger != Some(SkillTrigger::AgentInvoked) {
        return None;
    }
    let request = LoadRequest {
        session,
        name: &known.name,
        arguments: "",
        trigger: SkillTrigger::AgentInvoked,
    };
    let loaded = skills.load(request).await;
    loaded.ok().map(|skill| skill.content)
}
