//! A sub-agent's session that a client opened directly: no run of its parent drives it, and yet what
//! the sessions above restrict holds in it. It asks its parent once, when the first client joins, and
//! learns later changes as sub-agents do.

use std::time::Duration;

use loopd_proto::event::hook::{GuardFolder, VouchedFolder};
use loopd_proto::id::SessionId;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::as_child::Inheritance;
use crate::hook::HookClient;
use crate::session::actor::Actor;
use crate::session::{Message, SessionError, SessionHandle};
use crate::subagent::permissions::ParentPermissions;
use loopd_kernel::guards::ClientGuards;
use loopd_kernel::policy::restrict::{EffectivePermissions, hold_restrictions};

/// How long a session waits for its parent to say what it restricts.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How often a session asks: its parent may be about to end when it is asked first.
const ATTEMPTS: usize = 2;

/// What guards a session because it guards sessions above the one that its clients opened.
#[derive(Clone, Default)]
pub(in crate::session) struct GuardsAbove {
    /// The apps whose hooks guard.
    pub(in crate::session) apps: ClientGuards,
    /// Those of their clients that are there.
    pub(in crate::session) clients: Vec<HookClient>,
    /// The folders whose guards are in force.
    pub(in crate::session) folders: Vec<GuardFolder>,
    /// The folders of hooks that apps named.
    pub(in crate::session) vouched: Vec<VouchedFolder>,
    /// The agents whose definitions may have hooks.
    pub(in crate::session) agents: Vec<String>,
}

impl GuardsAbove {
    /// Returns the apps that are not there. A client of the session itself counts if it has the name
    /// of such an app; one without a name may be anybody.
    pub(in crate::session) fn missing(&self, own: &[HookClient]) -> ClientGuards {
        let is_new = |own: &&HookClient| self.clients().all(|it| !it.is(own));
        let others = own.iter().filter(|own| !own.name.is_empty()).filter(is_new);
        let present = self.clients().chain(others);
        let present = ClientGuards::of(present.map(|it| it.name.as_str()));
        self.apps.missing_from(&present)
    }

    /// Lists the clients that are still there.
    pub(in crate::session) fn clients(&self) -> impl Iterator<Item = &HookClient> {
        self.clients.iter().filter(|it| !it.client.is_gone())
    }
}

/// What the parent of a session that a client opened directly restricts.
pub(in crate::session) struct RestrictionsAbove {
    permissions: ParentPermissions,
}

impl RestrictionsAbove {
    pub(in crate::session) fn effective(&self) -> &EffectivePermissions {
        &self.permissions.effective
    }

    /// Takes from the permissions of the session what its parent may not do either.
    pub(in crate::session) fn hold_in(&self, effective: &mut EffectivePermissions) {
        let above = &self.permissions.effective.permissions;
        hold_restrictions(above, &mut effective.permissions);
    }
}

impl Actor {
    /// Asks the parent what it restricts, if this is the session of a sub-agent. A parent that does not
    /// say it lets the session fail: it must not work without what guards it.
    pub(in crate::session) async fn look_above(&mut self) -> Result<(), SessionError> {
        let is_known = self.subagents.parent.is_some() || self.subagents.above.is_some();
        let Some(own) = self.state.subagent.as_ref().filter(|_| !is_known) else {
            return Ok(());
        };
        let parent = own.parent.clone();
        let known = self.services.store.record(&parent).await;
        let known = known.map_err(|error| SessionError::Unreadable(error.into()))?;
        if known.is_none() || parent == self.state.id {
            // A session that was deleted restricts nothing any more.
            return Ok(());
        }
        let handle = SessionHandle {
            id: self.state.id.clone(),
            mailbox: self.mailbox.clone(),
        };
        self.sessions.opened_below(&parent, handle);
        for _ in 0..ATTEMPTS {
            if let Some(inheritance) = self.ask_above(&parent).await {
                self.take_above(&inheritance);
                return Ok(());
            }
        }
        Err(SessionError::Faulted(parent))
    }

    async fn ask_above(&self, parent: &SessionId) -> Option<Inheritance> {
        let above = self.sessions.open(parent.clone());
        let (reply, answer) = oneshot::channel();
        above.post(Message::ParentAtStart { reply }).ok()?;
        let answer = timeout(LONGEST_WAIT, answer).await;
        Some(answer.ok()?.ok()?.into_inheritance())
    }

    /// Takes over what the parent restricts.
    pub(super) fn take_above(&mut self, inheritance: &Inheritance) {
        self.subagents.above = Some(RestrictionsAbove {
            permissions: inheritance.permissions.clone(),
        });
        self.clients.take_launch_above(&inheritance.clients);
        // The log has the providers without their keys, and the parent has them from its clients.
        let stored = self.options.clone().without_secrets();
        let above = &inheritance.options;
        if self.options.provider == stored.provider && above.provider.is_some() {
            self.options.provider.clone_from(&above.provider);
        }
        if self.options.providers == stored.providers && above.providers.is_some() {
            self.options.providers.clone_from(&above.providers);
        }
        let mut guards = inheritance.above.clone();
        guards.apps = guards.apps.and(&inheritance.guards);
        guards.clients.extend(inheritance.hook_clients());
        self.hooks.above = guards;
        self.follow_planning();
        self.hand_down();
    }
}
