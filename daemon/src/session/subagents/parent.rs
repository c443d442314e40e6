//! A session that is an agent of another one: what it has from its parent, and what its parent's run
//! and the clients at the top see of it.

use std::sync::Arc;

use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::SessionId;
use loopd_proto::session::SessionOptions;

use super::tree::{Asks, Tree, TreeQuestion};
use crate::launch::Launch;
use crate::publish::{Upstream, frame};
use crate::session::actor::Actor;
use crate::session::attach::Attachment;
use crate::session::{Message, SessionHandle};
use crate::subagent::definitions::Roster;
use crate::subagent::{RunLink, Slots};
use crate::turn::route::TokenPeers;
use loopd_kernel::command::LastingApproval;
use loopd_kernel::policy::restrict::{EffectivePermissions, Workspace, restrict_for_child};
use loopd_model::client_http::SubagentOrigin;
use loopd_model::secret::Secret;

/// What a session hands down to its agents; anew whenever it changes.
#[derive(Clone)]
pub(in crate::session) struct Inheritance {
    /// The session that the clients know.
    pub(in crate::session) top: SessionId,
    pub(in crate::session) launch: Option<Arc<Launch>>,
    /// With secrets.
    pub(in crate::session) options: SessionOptions,
    pub(in crate::session) api_token: Option<Secret>,
    pub(in crate::session) token_peers: TokenPeers,
    /// The clients that bring tools and answer questions.
    pub(in crate::session) attachments: Vec<Attachment>,
    /// What the parent may do.
    pub(in crate::session) leave: EffectivePermissions,
    /// Where the parent works.
    pub(in crate::session) cwd: String,
    pub(in crate::session) streaming: bool,
    /// The agents that may be started.
    pub(in crate::session) roster: Arc<Roster>,
    /// Counts what the parent handed down: of two, the later counts.
    generation: u64,
}

/// Ties a session to the one whose agent it is.
pub(in crate::session) struct Lineage {
    pub(in crate::session) tree: Arc<Tree>,
    pub(in crate::session) run_link: RunLink,
    pub(in crate::session) top: SessionId,
    generation: u64,
    /// What the parent may do, and where.
    leave: EffectivePermissions,
    parent_cwd: String,
}

/// What a new or reopened agent is given before anything else.
pub(in crate::session) struct Adoption {
    pub(in crate::session) inheritance: Inheritance,
    pub(in crate::session) tree: Arc<Tree>,
    pub(in crate::session) run_link: RunLink,
}

impl Actor {
    /// Becomes the agent of a live session.
    pub(in crate::session) fn adopt(&mut self, adoption: Adoption) {
        let Adoption {
            inheritance,
            tree,
            run_link,
        } = adoption;
        // What changed while it was on its way may have come first.
        let early = self.early.take();
        let later = early.filter(|early| early.generation > inheritance.generation);
        let inheritance = later.unwrap_or(inheritance);
        self.lineage = Some(Lineage {
            tree,
            run_link,
            top: inheritance.top.clone(),
            generation: inheritance.generation,
            leave: inheritance.leave.clone(),
            parent_cwd: inheritance.cwd.clone(),
        });
        self.inherit(inheritance);
    }

    /// Takes over what the parent has now, and hands it down.
    pub(in crate::session) fn inherit(&mut self, inheritance: Inheritance) {
        match &self.lineage {
            None => {
                self.early = Some(inheritance);
                return;
            }
            Some(lineage) if lineage.generation > inheritance.generation => return,
            Some(_) => {}
        }
        self.options.provider = inheritance.options.provider;
        self.options.providers = inheritance.options.providers;
        self.options.models = inheritance.options.models;
        self.options.client_name = inheritance.options.client_name;
        self.options.subagents = inheritance.options.subagents;
        self.launch = inheritance.launch;
        self.api_token = inheritance.api_token;
        self.token_peers = inheritance.token_peers;
        self.attachments = inheritance.attachments;
        if let Some(lineage) = &mut self.lineage {
            lineage.generation = inheritance.generation;
            lineage.leave = inheritance.leave;
            lineage.parent_cwd = inheritance.cwd;
        }
        self.roster.set(inheritance.roster);
        self.tie_audience(inheritance.streaming);
        self.hand_down();
    }

    fn tie_audience(&self, streaming: bool) {
        let subagent = self.state.subagent.as_ref();
        if let (Some(lineage), Some(subagent)) = (&self.lineage, subagent) {
            self.audience.pass_on_to(Upstream {
                session: lineage.top.clone(),
                audience: lineage.tree.audience.clone(),
                agent: subagent.agent_id(),
                streaming,
            });
        }
    }

    /// What this session may do: by its own rules at the top, by its parent's leave below. The
    /// session of an agent that people opened themselves keeps to what the agent was made for.
    pub(in crate::session) fn leave(&self) -> EffectivePermissions {
        let handed_down = self.lineage.as_ref().map(|lineage| lineage.leave.clone());
        let parent = handed_down.unwrap_or_else(|| {
            let mut permissions = self.state.permissions.clone();
            permissions.approve_all |= self.launch.as_ref().is_some_and(|launch| launch.yolo);
            EffectivePermissions {
                permissions,
                may_ask: true,
            }
        });
        let Some(subagent) = &self.state.subagent else {
            return parent;
        };
        let lineage = self.lineage.as_ref();
        let workspace = match &subagent.profile.worktree {
            Some(root) => Workspace::Copy { root },
            None => Workspace::Shared {
                parent: lineage.map_or(&self.state.cwd, |lineage| &lineage.parent_cwd),
            },
        };
        restrict_for_child(&parent, subagent.profile.stance, workspace)
    }

    fn kin(&self) -> Option<(&Lineage, &SubagentIdentity)> {
        Some((self.lineage.as_ref()?, self.state.subagent.as_deref()?))
    }

    /// The tree of agents that this session is the top or a part of.
    pub(in crate::session) fn tree(&mut self) -> Arc<Tree> {
        if let Some(lineage) = &self.lineage {
            return lineage.tree.clone();
        }
        let tree = self.tree.get_or_insert_with(|| {
            let top = SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            };
            let variable = |name: &str| self.launch.as_ref()?.variable(name);
            let settings = self.services.config.agents.with(variable);
            let settings = settings.of_session(self.state.options.subagents.as_ref());
            Tree::new(
                top,
                self.audience.clone(),
                Slots::new(settings.max_concurrent as usize),
            )
        });
        tree.clone()
    }

    /// What agents of this session are given.
    pub(in crate::session) fn inheritance(&self) -> Inheritance {
        let streaming = self.state.options.include_sub_agent_streaming_events;
        let subagents = match &self.lineage {
            Some(_) => self.options.subagents.clone(),
            // Clients change them, and the log knows.
            None => self.state.options.subagents.clone(),
        };
        Inheritance {
            top: match &self.lineage {
                Some(lineage) => lineage.top.clone(),
                None => self.state.id.clone(),
            },
            launch: self.launch.clone(),
            options: SessionOptions {
                subagents,
                ..self.options.clone()
            },
            api_token: self.api_token.clone(),
            token_peers: self.token_peers.clone(),
            attachments: self.attachments.clone(),
            leave: self.leave(),
            cwd: self.state.cwd.clone(),
            streaming: streaming.unwrap_or(true),
            roster: self.roster.get(),
            generation: self.handed_down,
        }
    }

    /// Tells live agents what has changed.
    pub(in crate::session) fn hand_down(&mut self) {
        self.handed_down += 1;
        let children = self.children.live();
        if children.is_empty() {
            return;
        }
        let inheritance = self.inheritance();
        for child in children {
            let message = Message::Inherit(Box::new(inheritance.clone()));
            if let Err(error) = child.post(message) {
                tracing::warn!(session = %child.id(), %error, "an agent did not learn what its parent has");
            }
        }
    }

    /// Something of this session was stored: the run that drives it sees it, and who is asked.
    pub(in crate::session) fn show_stored(&self, event: &Durable, line: &str) {
        let Some(lineage) = &self.lineage else {
            return;
        };
        lineage
            .run_link
            .watcher
            .stored(self.services.clock.now(), event);
        let (request, asks) = match event {
            Durable::PermissionRequested(asked) => {
                let permission = Box::new(asked.permission_request.clone());
                (&asked.request_id, Asks::Permission(permission))
            }
            Durable::ExternalToolRequested(asked) => {
                (&asked.request_id, Asks::Tool(asked.tool_name.clone()))
            }
            Durable::Asked(asked) => (asked.request_id(), Asks::Person(Box::new(asked.clone()))),
            Durable::PermissionCompleted(completed) => {
                lineage.tree.answered(&completed.request_id);
                return;
            }
            Durable::Answered(answered) => {
                lineage.tree.answered(&answered.request_id);
                return;
            }
            Durable::ToolComplete(_) | Durable::LoopEnded(_) => {
                lineage.tree.keep_only(&self.state.id, |request| {
                    self.state.calls().any(|call| call.waits_for(request))
                });
                return;
            }
            _ => return,
        };
        let question = TreeQuestion {
            session: SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            },
            frame: frame(&lineage.top, line),
            asks,
        };
        lineage.tree.asked(request.clone(), question);
    }

    /// Something was told of this session that is not stored.
    pub(in crate::session) fn show_told(&self, event: &Ephemeral) {
        if let Some(lineage) = &self.lineage {
            lineage.run_link.watcher.told(event);
        }
    }

    /// Lets the session at the top allow something for good.
    pub(in crate::session) fn grant_above(&self, grant: LastingApproval) {
        let Some(lineage) = &self.lineage else {
            return;
        };
        let command = Box::new(loopd_kernel::command::Command::Grant(grant));
        if let Err(error) = lineage.tree.top.post(Message::Report(command)) {
            tracing::warn!(session = %self.state.id, %error, "what was allowed for good is allowed once");
        }
    }

    /// Whom requests are made for, if it is an agent.
    pub(in crate::session) fn origin(&self) -> Option<SubagentOrigin> {
        let (lineage, subagent) = self.kin()?;
        let parent = subagent.task.as_str().rsplit_once('.');
        Some(SubagentOrigin {
            id: subagent.task.to_string(),
            parent: parent.map_or_else(|| lineage.top.to_string(), |(parent, _)| parent.to_owned()),
        })
    }

    /// Whether the clients at the top can be asked: one of them answers, or nobody is there yet.
    pub(in crate::session) fn can_ask_above(&self) -> bool {
        let mut offers = self.attachments.iter().map(|attachment| &attachment.offer);
        self.attachments.is_empty() || offers.any(|offer| offer.request_permission)
    }

    /// Forgets what this session asked the clients at the top.
    pub(in crate::session) fn leave_tree(&self) {
        if let Some(lineage) = &self.lineage {
            lineage.tree.keep_only(&self.state.id, |_| false);
        }
    }
}
