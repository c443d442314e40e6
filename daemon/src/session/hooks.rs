//! Hooks in a session: which are in force, and the effects that ask them.

mod guard;
mod joined;
mod lookup;
mod notice;
mod of_agent;
mod review;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_proto::id::ToolCallId;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(super) use self::lookup::report_found;
use self::notice::Notice;
pub(super) use self::of_agent::SelectedAgentHooks;
use super::Message;
use super::actor::Actor;
use super::clients::attach::{Attachment, DetachReason};
use super::journal::Outgoing;
use super::subagents::above::GuardsAbove;
use super::subagents::as_child::ParentLink;
use super::work::Work;
use crate::client::ClientId;
use crate::discovery::hooks::{HookKind, MatchSubject};
use crate::hook::{
    BackgroundHooks, HookAgent, HookCell, HookClient, HookContext, Hooks, Transcript,
};
use crate::turn::prepare::PromptHooks;
use loopd_kernel::command::Command;
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::hook::StopAnswered;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::state::TurnKey;

/// How long the hooks at the end of a session may take in all.
pub(super) const END_WAIT: Duration = Duration::from_secs(10);

/// How long they may take in all when the daemon stops.
pub const STOP_WAIT: Duration = Duration::from_secs(5);

/// What a session knows of its hooks.
pub(super) struct SessionHooks {
    /// The hooks of files, those of parents included.
    pub(super) files: HookCell,
    /// The apps whose hooks guard the session at the top, if a parent drives this one.
    pub(super) guards_at_top: ClientGuards,
    /// What guards sessions above the one that the clients opened.
    pub(super) above: GuardsAbove,
    pub(super) transcript: Transcript,
    /// Whether the hooks are those of a parent and below.
    pub(super) inherited: bool,
    /// Whether the hooks know that the session, or the sub-agent, has begun.
    pub(super) begun: bool,
    /// The clients that may be asked now. Nobody waits for the answer of one that is not among them any more.
    present: watch::Sender<Vec<ClientId>>,
    /// Whether the hooks at the start of the session, or of the sub-agent, have let it begin.
    let_begin: Arc<AtomicBool>,
    /// Whether hooks are still being looked for, before the prompts that they may be about.
    pub(super) looking: Arc<AtomicBool>,
    /// Whether the hooks know that the session ends.
    ended: bool,
    /// The hooks that the session does not wait for.
    background: BackgroundHooks,
    /// The calls that hooks are being asked about, and who is asked.
    asking: HashMap<ToolCallId, AskedGuards>,
    /// The clients whose hooks were asked about the calls of the running turn.
    asked: HashMap<ToolCallId, Vec<ClientId>>,
}

/// Who is asked about a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct AskedGuards {
    clients: Vec<ClientId>,
    /// Those who should be asked and are not there.
    missing: ClientGuards,
}

impl AskedGuards {
    fn of(hooks: &Hooks) -> Self {
        Self {
            clients: hooks.clients.iter().map(|it| it.client.id()).collect(),
            missing: hooks.missing.clone(),
        }
    }

    /// Whether there is somebody else to ask now, or nobody to wait for any more.
    fn are_fewer_than(&self, now: &Self) -> bool {
        let mut clients = now.clients.iter();
        clients.any(|client| !self.clients.contains(client))
            || (now.missing.is_empty() && self != now)
    }
}

impl SessionHooks {
    pub(super) fn new(transcript: Transcript) -> Self {
        Self {
            files: HookCell::default(),
            guards_at_top: ClientGuards::default(),
            above: GuardsAbove::default(),
            transcript,
            inherited: false,
            begun: false,
            present: watch::Sender::default(),
            let_begin: Arc::default(),
            looking: Arc::default(),
            ended: false,
            asking: HashMap::new(),
            asked: HashMap::new(),
            background: BackgroundHooks::default(),
        }
    }
}

impl Actor {
    /// Returns the hooks in force.
    pub(super) fn hooks(&self) -> Hooks {
        let parent = self.subagents.parent();
        let top = parent.map_or(&self.state.id, ParentLink::top);
        let attachments = self.hook_attachments();
        let mut clients: Vec<HookClient> = attachments.map(|it| it.hook_client(top)).collect();
        let above = &self.hooks.above;
        let missing = self.guards().missing_from(&self.answering_hooks());
        let missing = missing.and(&above.missing(&clients));
        for client in above.clients() {
            if clients.iter().all(|it| !it.is(client)) {
                clients.push(client.clone());
            }
        }
        Hooks {
            clients,
            missing,
            files: self.hooks.files.hooks(),
        }
    }

    /// Returns the clients that answer hooks now.
    pub(super) fn answering_hooks(&self) -> ClientGuards {
        ClientGuards::of(self.hook_attachments().map(|it| it.name.as_str()))
    }

    fn hook_attachments(&self) -> impl Iterator<Item = &Attachment> {
        let attachments = self.clients.attachments().iter();
        attachments.filter(|it| it.offer.hooks && !it.client.is_gone())
    }

    /// Returns the apps whose hooks guard the session, be they there or not.
    pub(super) fn guards(&self) -> &ClientGuards {
        if self.subagents.is_child() {
            &self.hooks.guards_at_top
        } else {
            &self.state.guards
        }
    }

    /// Returns what guards the sub-agents beside the clients of the session at the top.
    pub(super) fn guards_handed_down(&self) -> GuardsAbove {
        let mut above = self.hooks.above.clone();
        let own = self.state.guard_folders.iter();
        let own: Vec<_> = own
            .filter(|it| !above.folders.contains(it))
            .cloned()
            .collect();
        above.folders.extend(own);
        above.vouched = self.vouched_hooks();
        let agent = self.state.subagent.as_ref();
        let agent = agent.map(|own| &own.profile.agent_type);
        above
            .agents
            .extend(self.state.agent.iter().chain(agent).cloned());
        above
    }

    /// Returns whether hooks of this kind have something to say about a subject.
    pub(super) fn has_hooks(&self, kind: HookKind, subject: Option<&str>) -> bool {
        let mut attachments = self.clients.attachments().iter();
        let above = &self.hooks.above;
        let is_tool = kind.subject() == Some(MatchSubject::Tool);
        let tool = subject.filter(|_| is_tool && !self.hooks.files.is_empty());
        let of_servers = tool.map(|tool| self.mcp.cell.tools_named(tool));
        attachments.any(|attachment| attachment.offer.hooks)
            || above.clients().next().is_some()
            || (kind.is_guard() && !(self.guards().is_empty() && above.apps.is_empty()))
            || self
                .hooks
                .files
                .has(kind, subject, &of_servers.unwrap_or_default())
    }

    /// Notes which clients hooks may be asked of, so that nobody waits for one that has left.
    pub(super) fn note_hook_clients(&self) -> Hooks {
        let hooks = self.hooks();
        let present = hooks.clients.iter().map(|it| it.client.id()).collect();
        self.hooks.present.send_replace(present);
        hooks
    }

    pub(super) fn hook_context(&self) -> HookContext {
        HookContext {
            hooks: self.note_hook_clients(),
            present: self.hooks.present.subscribe(),
            session: self.state.id.clone(),
            agent: self.state.subagent.as_ref().map(|own| HookAgent {
                id: own.task.to_string(),
                name: own.profile.agent_type.clone(),
                display_name: own.profile.display_name.clone(),
            }),
            cwd: self.state.cwd.clone(),
            is_planning: self.planning() != Planning::No,
            mcp: self.mcp.cell.clone(),
            replaced: self.replaced_tools(),
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

    /// Returns the names of tools that apps offer in place of built-in ones.
    fn replaced_tools(&self) -> Arc<[String]> {
        let attachments = self.clients.attachments().iter();
        let offered = attachments.filter_map(|it| it.offer.tools.as_ref());
        let replacing = offered
            .flatten()
            .filter(|tool| tool.overrides_built_in_tool);
        replacing.map(|tool| tool.name.clone()).collect()
    }

    /// Returns whether hooks see prompts before a model does, or may do so once they are found.
    pub(super) fn see_prompts(&self) -> bool {
        let kinds: &[HookKind] = match &self.state.subagent {
            Some(_) => &[HookKind::SubagentStart],
            None => &[
                HookKind::SessionStart,
                HookKind::UserPromptSubmitted,
                HookKind::UserPromptTransformed,
            ],
        };
        let agent = self.state.subagent.as_ref();
        let subject = agent.map(|own| own.profile.agent_type.as_str());
        self.hooks.looking.load(Ordering::Relaxed)
            || kinds.iter().any(|kind| self.has_hooks(*kind, subject))
    }

    /// Returns the hooks around prompts, if there are any.
    pub(super) fn prompt_hooks(&mut self, looks: bool) -> Option<PromptHooks> {
        // A message that was kept back has not begun anything.
        let is_new = self.state.totals.models.is_empty();
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
        let begins = (start || looks) && !self.hooks.let_begin.load(Ordering::Relaxed);
        if !begins && !prompts && !looks {
            return None;
        }
        self.hooks.begun = true;
        Some(PromptHooks {
            context: self.hook_context(),
            begins: begins.then_some(if is_new { "new" } else { "resume" }),
            let_begin: self.hooks.let_begin.clone(),
        })
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

    /// Returns the kind of hook that is told when the loop is about to end.
    pub(super) fn stop_kind(&self) -> HookKind {
        match &self.state.subagent {
            Some(_) => HookKind::SubagentStop,
            None => HookKind::AgentStop,
        }
    }

    /// Returns what tells the hooks that the session ends, within a time; `None` if nobody has to be
    /// told.
    pub(super) fn tell_end(
        &mut self,
        reason: &'static str,
        limit: Duration,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let is_told = self.hooks.ended || self.subagents.is_child();
        if is_told || !self.has_hooks(HookKind::SessionEnd, None) {
            return None;
        }
        self.hooks.ended = true;
        let mut context = self.hook_context();
        // A turn that is stopped meanwhile does not take the hooks along.
        context.cancel = CancellationToken::new();
        Some(async move {
            let told = context.session_ends(reason, None);
            if tokio::time::timeout(limit, told).await.is_err() {
                tracing::warn!(session = %context.session, "the hooks at the end of a session took too long");
            }
        })
    }

    /// Tells the hooks that the session ends because the daemon stops, if they know that it began.
    pub(super) fn end_hooks_of_stop(&mut self, reply: oneshot::Sender<()>) {
        let told = if self.hooks.begun {
            self.tell_end("user_exit", STOP_WAIT)
        } else {
            None
        };
        let Some(told) = told else {
            // The send fails if the caller has stopped waiting.
            reply.send(()).ok();
            return;
        };
        self.running.spawn(async move {
            told.await;
            reply.send(()).ok();
        });
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
        if !ends {
            return false;
        }
        let Some(told) = self.tell_end("user_exit", END_WAIT) else {
            return false;
        };
        let mailbox = self.mailbox.clone();
        let reply = reply.take();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            told.await;
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
