//! What runs for a session beside its actor, and what only lives as long as it does.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loopd_proto::id::MessageId;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The effects that run, and what the turn that runs was started with.
#[derive(Default)]
pub(super) struct RunningEffects {
    turn: CancellationToken,
    effects: JoinSet<()>,
    /// The client tools that the model was last told about.
    told_tools: BTreeSet<String>,
    /// Extra request headers of messages that wait, and of the interaction that runs.
    waiting_headers: HashMap<MessageId, BTreeMap<String, String>>,
    headers: BTreeMap<String, String>,
}

impl RunningEffects {
    /// Runs an effect beside the actor, until it is over or the session ends.
    pub(super) fn spawn(
        &mut self,
        effect: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        self.effects.spawn(effect)
    }

    /// Forgets the effects that are over.
    pub(super) fn forget_ended(&mut self) {
        while self.effects.try_join_next().is_some() {}
    }

    /// What is cancelled when the turn is.
    pub(super) fn turn(&self) -> CancellationToken {
        self.turn.clone()
    }

    /// Cancels what runs for the turn; what starts from now on is for the next one.
    pub(super) fn cancel_turn(&mut self) {
        std::mem::take(&mut self.turn).cancel();
    }

    /// Cancels what runs for the turn, for good.
    pub(super) fn end(&self) {
        self.turn.cancel();
    }

    /// Keeps the headers of a message until its interaction starts.
    pub(super) fn keep_headers(&mut self, id: MessageId, headers: BTreeMap<String, String>) {
        if !headers.is_empty() {
            self.waiting_headers.insert(id, headers);
        }
    }

    /// The messages' own headers become those of the interaction they start.
    pub(super) fn take_headers<'a>(&mut self, ids: impl Iterator<Item = &'a MessageId>) {
        self.headers.clear();
        for id in ids {
            let headers = self.waiting_headers.remove(id);
            self.headers.extend(headers.unwrap_or_default());
        }
    }

    /// The headers of the interaction that runs.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The client tools that the model was told about and that are not among these.
    pub(super) fn tools_gone(&self, client_tools: &BTreeSet<String>) -> Vec<String> {
        let gone = self.told_tools.difference(client_tools);
        gone.cloned().collect()
    }

    /// The model is told about these client tools.
    pub(super) fn tell_tools(&mut self, client_tools: BTreeSet<String>) {
        self.told_tools = client_tools;
    }
}
