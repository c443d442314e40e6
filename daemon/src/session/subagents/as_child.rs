//! A session that is a sub-agent of another one: what it inherits from its parent, and what its
//! parent's run and the clients of the session at the top see of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use loopd_proto::event::Durable;
use loopd_proto::event::agent::{Stance, SubagentIdentity};
use loopd_proto::id::{RequestId, Seq, SessionId};
use loopd_proto::session::SessionOptions;
use tokio::sync::oneshot;

use super::above::{GuardsAbove, RestrictionsAbove};
use super::child::{Beginning, is_at_work, status};
use super::tree::Tree;
use crate::hook::{HookCell, HookClient};
use crate::mcp::McpCell;
use crate::publish::Upstream;
use crate::session::actor::Actor;
use crate::session::clients::SharedClients;
use crate::session::{Message, SessionError, SessionHandle};
use crate::skill::SkillCell;
use crate::subagent::child::{ChildStatus, RunLink};
use crate::subagent::definitions::Roster;
use crate::subagent::permissions::ParentPermissions;
use crate::subagent::{ChildError, SlotLease, Slots};
use loopd_kernel::command::{Command, LastingApproval, Refusal};
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::policy::copies::hold_in_copies;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::policy::restrict::{EffectivePermissions, keep_to_looking};
use loopd_kernel::tasks::Task;
use loopd_model::client_http::SubagentOrigin;

/// What a session hands down to its sub-agents, again whenever it changes.
#[derive(Clone)]
pub(in crate::session) struct Inheritance {
    /// The session at the top, which the clients know.
    pub(in crate::session) top: SessionId,
    pub(in crate::session) clients: SharedClients,
    /// The configuration with its secrets.
    pub(in crate::session) options: SessionOptions,
    pub(in crate::session) permissions: ParentPermissions,
    pub(in crate::session) streaming: bool,
    /// The sub-agents that may be started.
    pub(in crate::session) roster: Arc<Roster>,
    /// The skills, and the names of those that are out of use.
    pub(in crate::session) skills: SkillCell,
    pub(in crate::session) skills_off: BTreeSet<String>,
    /// The hooks of files, which hold for all below.
    pub(in crate::session) hooks: HookCell,
    /// The MCP servers, which serve all below.
    pub(in crate::session) mcp: McpCell,
    /// The apps whose hooks guard the session at the top.
    pub(in crate::session) guards: ClientGuards,
    /// What guards sessions above the one at the top; and the folders and agents whose guards are in
    /// force.
    pub(in crate::session) above: GuardsAbove,
    /// Counts how often the parent has handed down changes; the higher number is the newer one.
    generation: u64,
    /// The parent. One that was opened again counts from the beginning.
    from: SessionHandle,
}

impl Inheritance {
    pub(super) fn is_later_than(&self, other: &Self) -> bool {
        self.from.mailbox.same_channel(&other.from.mailbox) && self.generation > other.generation
    }

    /// Returns the clients that answer hooks, as those of the session at the top.
    pub(super) fn hook_clients(&self) -> Vec<HookClient> {
        self.clients.hook_clients(&self.top)
    }
}

/// The link of a sub-agent's session to its parent.
pub(in crate::session) struct ParentLink {
    tree: Arc<Tree>,
    run_link: RunLink,
    /// The last position of the log when the run began.
    since: Seq,
    top: SessionId,
    generation: u64,
    permissions: ParentPermissions,
    /// Whether the run that drove this session is over.
    rests: bool,
}

impl ParentLink {
    /// Returns the session at the top, which the clients know.
    pub(in crate::session) fn top(&self) -> &SessionId {
        &self.top
    }

    pub(in crate::session) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Returns whether no run of the parent drives this session now.
    pub(in crate::session) fn rests(&self) -> bool {
        self.rests
    }

    /// Returns the lease of the slot that the sub-agent works in.
    pub(in crate::session) fn lease(&self) -> &Arc<SlotLease> {
        self.run_link.lease()
    }
}

/// What a new or reopened sub-agent is given before its first prompt.
pub(in crate::session) struct Adoption {
    pub(super) inheritance: Inheritance,
    pub(super) tree: Arc<Tree>,
    pub(super) run_link: RunLink,
    pub(super) reply: oneshot::Sender<Result<Beginning, ChildError>>,
}

impl Adoption {
    /// Replies that the session ended before it became a sub-agent.
    pub(in crate::session) fn refuse(self, error: &SessionError) {
        // The send fails if the caller has stopped waiting.
        self.reply.send(Err(error.clone().into())).ok();
    }
}

impl Actor {
    /// Makes this session a sub-agent of a live session.
    pub(in crate::session) async fn adopt(&mut self, adoption: Adoption) {
        let Adoption {
            inheritance,
            tree,
            run_link,
            reply,
        } = adoption;
        // A change that was handed down during the start may have arrived before the adoption.
        let early = self.subagents.early.take();
        let later = early.filter(|early| early.is_later_than(&inheritance));
        let inheritance = later.unwrap_or(inheritance);
        self.subagents.parent = Some(ParentLink {
            tree,
            run_link,
            since: self.state.seq,
            top: inheritance.top.clone(),
            generation: inheritance.generation,
            permissions: inheritance.permissions.clone(),
            rests: false,
        });
        self.inherit(inheritance);
        self.show_questions_above().await;
        // The send fails if the caller has stopped waiting.
        reply.send(Ok(Beginning::of(&self.state))).ok();
        let turn = self.state.turn();
        if turn.is_some_and(|turn| turn.waits_until().is_some()) {
            // The daemon before this one ended while the sub-agent waited for its provider.
            Box::pin(self.report(Command::TakeUp)).await;
        }
    }

    /// Lets this session rest when the run that drives it ends, unless it has begun to work again.
    /// Returns the commands that still run.
    pub(in crate::session) fn release(&mut self) -> Option<Vec<Task>> {
        if is_at_work(&self.state) {
            return None;
        }
        if let Some(parent) = &mut self.subagents.parent {
            parent.rests = true;
        }
        let running = self.state.tasks.running();
        let commands = running.filter(|task| task.shell().is_some());
        Some(commands.cloned().collect())
    }

    /// Takes over what the parent hands down, and hands it down in turn.
    pub(in crate::session) fn inherit(&mut self, inheritance: Inheritance) {
        match &self.subagents.parent {
            None => {
                if self.subagents.above.is_some() {
                    self.take_above(&inheritance);
                }
                self.subagents.early = Some(inheritance);
                return;
            }
            Some(parent) if parent.generation > inheritance.generation => return,
            Some(_) => {}
        }
        self.subagents.above = None;
        self.options.provider = inheritance.options.provider;
        self.options.providers = inheritance.options.providers;
        self.options.models = inheritance.options.models;
        self.options.client_name = inheritance.options.client_name;
        self.options.subagents = inheritance.options.subagents;
        self.clients.inherit(inheritance.clients);
        if let Some(parent) = &mut self.subagents.parent {
            parent.generation = inheritance.generation;
            parent.permissions = inheritance.permissions;
        }
        self.follow_planning();
        self.subagents.roster.set(inheritance.roster);
        self.skills.cell = inheritance.skills;
        self.skills.off_above = inheritance.skills_off;
        if !self.hooks.inherited {
            self.hooks.inherited = true;
            self.hooks.files = inheritance.hooks.below();
            self.mcp.inherit(&inheritance.mcp);
        }
        self.take_agent_hooks();
        self.hooks.guards_at_top = inheritance.guards;
        self.hooks.above = inheritance.above;
        self.note_hook_clients();
        self.tie_audience(inheritance.streaming);
        self.hand_down();
    }

    fn tie_audience(&self, streaming: bool) {
        if let Some((parent, subagent)) = self.as_subagent() {
            self.clients.audience().pass_on_to(Upstream {
                session: parent.top.clone(),
                audience: parent.tree.audience.clone(),
                agent: subagent.agent_id(),
                streaming,
            });
        }
    }

    /// Returns the permissions of this session. At the top its own rules decide, below it those of
    /// its parent. A sub-agent's session that a user opened directly stays within the sub-agent's
    /// profile.
    pub(in crate::session) fn effective_permissions(&self) -> EffectivePermissions {
        let own = || {
            let mut permissions = self.state.permissions.clone();
            permissions.approve_all |= self.clients.launch().is_some_and(|launch| launch.yolo);
            if let Some(rules) = self.hooks.files.rules() {
                rules.add_to(&mut permissions);
            }
            if self.state.stance_in_force() == Stance::Plan {
                keep_to_looking(&mut permissions);
            }
            EffectivePermissions {
                permissions,
                may_ask: true,
                planning: self.planning(),
                copies: Vec::new(),
            }
        };
        let mut effective = match (&self.subagents.parent, &self.state.subagent) {
            (None, None) => own(),
            // A fork that does not have its profile yet has the permissions of its parent.
            (Some(parent), None) => parent.permissions.effective.clone(),
            (Some(parent), Some(subagent)) => parent.permissions.for_child(&subagent.profile),
            (None, Some(subagent)) => {
                let own = ParentPermissions {
                    effective: own(),
                    cwd: self.state.cwd.clone(),
                };
                own.for_child(&subagent.profile)
            }
        };
        if let Some(above) = &self.subagents.above {
            above.hold_in(&mut effective);
        }
        if let Some(rules) = self.hooks.files.rules() {
            // The parent may have found some since it handed its permissions down.
            rules.narrow(&mut effective.permissions);
        }
        effective.copies.extend(self.state.tasks.copies());
        hold_in_copies(&mut effective.permissions, &effective.copies);
        effective.planning = self.planning();
        effective
    }

    /// Returns whether this session only looks and plans.
    pub(in crate::session) fn planning(&self) -> Planning {
        let parent = self.subagents.parent.as_ref();
        let above = self.subagents.above.as_ref();
        let above = parent
            .map(|parent| &parent.permissions.effective)
            .or(above.map(RestrictionsAbove::effective));
        let above = above.map(|above| above.planning);
        Planning::of(&self.state).below(above.unwrap_or_default())
    }

    /// Closes the shells of plan mode when it has ended.
    pub(in crate::session) fn follow_planning(&self) {
        if !self.planning().is_on() {
            self.shells.close_sandboxed();
        }
    }

    /// Refuses to set what a live sub-agent has from its parent.
    pub(in crate::session) fn check_own(&self, what: &'static str) -> Result<(), SessionError> {
        match self.subagents.parent() {
            None => Ok(()),
            Some(parent) => Err(SessionError::Refused(Refusal::IsSubagent {
                what,
                session: parent.top.clone(),
            })),
        }
    }

    fn as_subagent(&self) -> Option<(&ParentLink, &SubagentIdentity)> {
        Some((self.subagents.parent()?, self.state.subagent.as_deref()?))
    }

    /// Returns the tree of sub-agents that this session belongs to, as its top or below.
    pub(in crate::session) fn tree(&mut self) -> Arc<Tree> {
        if let Some(parent) = &self.subagents.parent {
            return parent.tree.clone();
        }
        let captures = self.captures();
        let tree = self.subagents.tree.get_or_insert_with(|| {
            let top = SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            };
            let variable = |name: &str| self.clients.launch()?.variable(name);
            let settings = self.services.config.agents.with(variable);
            let settings = settings.of_session(self.state.options.subagents.as_ref());
            Tree::new(
                top,
                self.clients.audience().clone(),
                Slots::new(settings.max_concurrent as usize),
                self.budget.clone(),
                captures,
            )
        });
        tree.clone()
    }

    /// Returns what sub-agents of this session inherit.
    pub(in crate::session) fn inheritance(&self) -> Inheritance {
        let streaming = self.state.options.include_sub_agent_streaming_events;
        let subagents = match self.subagents.parent() {
            Some(_) => self.options.subagents.clone(),
            // Clients change these settings, and the log has the current ones.
            None => self.state.options.subagents.clone(),
        };
        Inheritance {
            top: match self.subagents.parent() {
                Some(parent) => parent.top.clone(),
                None => self.state.id.clone(),
            },
            clients: self.clients.shared(),
            options: SessionOptions {
                subagents,
                ..self.options.clone()
            },
            permissions: ParentPermissions {
                effective: self.effective_permissions(),
                cwd: self.state.cwd.clone(),
            },
            streaming: streaming.unwrap_or(true),
            roster: self.subagents.roster(),
            skills: self.skills.cell.clone(),
            skills_off: self.skills_off(),
            hooks: self.hooks.files.clone(),
            mcp: self.mcp.cell.clone(),
            guards: self.guards().clone(),
            above: self.guards_handed_down(),
            from: SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            },
            generation: self.subagents.handed_down,
        }
    }

    /// Answers open questions that need no answer any more, because everything is approved by now.
    fn settle_questions(&mut self) {
        let mut open = self.state.questions.iter();
        let asks = open.any(|question| question.asks.permission().is_some());
        if !asks || !self.effective_permissions().permissions.approves_all() {
            return;
        }
        let open = self.state.questions.iter();
        let open = open.filter(|question| question.asks.permission().is_some());
        // Guards that joined since have to be asked first, when a person answers.
        let open = open.filter(|question| !self.has_late_guards(&question.request));
        let open: Vec<RequestId> = open.map(|question| question.request.clone()).collect();
        let reporter = self.reporter();
        self.running.spawn(async move {
            for request in open {
                reporter.report(Command::SettlePermission(request)).await;
            }
        });
    }

    /// Hands the current settings down to the sub-agents.
    pub(in crate::session) fn hand_down(&mut self) {
        self.settle_questions();
        self.subagents.handed_down += 1;
        let opened = self.sessions.below(&self.state.id);
        if !self.subagents.children.is_empty() || !opened.is_empty() {
            let inheritance = self.inheritance();
            self.subagents.children.hand_down(inheritance, opened);
        }
    }

    /// Shows the parent's run an event of this session that is about to be stored.
    pub(in crate::session) fn show_stored(&self, event: &Durable) {
        if let Some(parent) = &self.subagents.parent {
            parent.run_link.stored(self.services.clock.now(), event);
        }
    }

    /// Reports the status of this session to the parent's run; called after each commit.
    pub(in crate::session) fn report_status(&self) {
        if let Some(parent) = &self.subagents.parent {
            parent.run_link.report(status(&self.state, parent.since));
        }
    }

    /// Reports to the parent's run that this session has ended or failed.
    pub(in crate::session) fn report_gone(&self, error: &SessionError) {
        if let Some(parent) = &self.subagents.parent {
            let status = ChildStatus::Gone(error.clone().into());
            parent.run_link.report(status);
        }
    }

    /// Asks the session at the top to store a lasting approval.
    pub(in crate::session) fn grant_above(&self, grant: LastingApproval) {
        let Some(parent) = &self.subagents.parent else {
            return;
        };
        let command = Box::new(Command::Grant(grant));
        if let Err(error) = parent.tree.top.post(Message::Report(command)) {
            tracing::warn!(session = %self.state.id, %error, "what was allowed for good is allowed once");
        }
    }

    /// Returns the sub-agent that model requests are made for, if this session is one.
    pub(in crate::session) fn origin(&self) -> Option<SubagentOrigin> {
        let (parent_link, subagent) = self.as_subagent()?;
        let parent = subagent.task.as_str().rsplit_once('.');
        Some(SubagentOrigin {
            id: subagent.task.to_string(),
            parent: parent.map_or_else(
                || parent_link.top.to_string(),
                |(parent, _)| parent.to_owned(),
            ),
        })
    }

    /// Returns whether the clients at the top can be asked: one of them answers permission
    /// requests, or none is attached yet.
    pub(in crate::session) fn can_ask_above(&self) -> bool {
        self.clients.attachments().is_empty() || self.clients.answer_permissions()
    }

    /// Withdraws the questions of this session to the clients at the top.
    pub(in crate::session) fn leave_tree(&self) {
        if let Some(parent) = &self.subagents.parent {
            parent.tree.left(&self.state.id);
        }
    }
}
