//! The effects that run beside a session's actor, and data that lives as long as they do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loopd_kernel::model::ToolCall;
use loopd_proto::id::{MessageId, ToolCallId};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The running effects, and the data of the running turn.
#[derive(Default)]
pub(super) struct RunningEffects {
    turn: CancellationToken,
    /// Ends the model call for a summary.
    summary: CancellationToken,
    effects: JoinSet<()>,
    /// The effects that the running transaction has started.
    begun: Vec<AbortHandle>,
    /// The client tools that the model was last told about, and those before the running
    /// transaction, if it told the model about others.
    told_tools: BTreeSet<String>,
    told_before: Option<BTreeSet<String>>,
    /// The extra request headers of waiting messages and of the running interaction.
    waiting_headers: HashMap<MessageId, BTreeMap<String, String>>,
    headers: BTreeMap<String, String>,
    /// The arguments of open calls whose stored arguments are masked. A call runs with what the model
    /// wrote; only the log, clients and later requests have the masked form.
    arguments: HashMap<ToolCallId, Value>,
}

impl RunningEffects {
    /// Runs an effect beside the actor until the effect or the session ends.
    pub(super) fn spawn(
        &mut self,
        effect: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        self.effects.spawn(effect)
    }

    /// Runs an effect that ends with the running transaction if that is not stored.
    pub(super) fn spawn_in_transaction(
        &mut self,
        effect: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.effects.spawn(effect);
        self.begun.push(handle);
    }

    /// Lets the effects of the running transaction go on, whatever comes next.
    pub(super) fn transaction_ends(&mut self) {
        self.begun.clear();
        self.told_before = None;
    }

    /// Ends the effects of a transaction that was not stored; none of them runs when this resolves.
    pub(super) async fn undo_transaction(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        begun.iter().for_each(AbortHandle::abort);
        // An effect that is running on another thread stops at its next wait.
        while begun.iter().any(|effect| !effect.is_finished()) {
            tokio::task::yield_now().await;
        }
        if let Some(told) = self.told_before.take() {
            self.told_tools = told;
        }
    }

    /// Drops the effects that have ended.
    pub(super) fn forget_ended(&mut self) {
        while self.effects.try_join_next().is_some() {}
    }

    /// Returns the token that is cancelled with the turn.
    pub(super) fn turn(&self) -> CancellationToken {
        self.turn.clone()
    }

    /// Cancels the running turn; effects that start from now on belong to the next turn.
    pub(super) fn cancel_turn(&mut self) {
        std::mem::take(&mut self.turn).cancel();
    }

    /// Returns the token that stops the model call for a summary that begins now.
    pub(super) fn summary(&self) -> CancellationToken {
        self.summary.clone()
    }

    /// Stops the model call for a summary.
    pub(super) fn cancel_summary(&mut self) {
        std::mem::take(&mut self.summary).cancel();
    }

    /// Cancels the running turn and every effect that would still start.
    pub(super) fn end(&self) {
        self.turn.cancel();
        self.summary.cancel();
    }

    /// Keeps the arguments of a call that are masked in the log, until the call has its result.
    pub(super) fn keep_arguments(&mut self, call: &ToolCallId, arguments: Value) {
        self.arguments.entry(call.clone()).or_insert(arguments);
    }

    pub(super) fn forget_arguments(&mut self, call: &ToolCallId) {
        self.arguments.remove(call);
    }

    /// Returns the call with the arguments that the model wrote.
    pub(super) fn with_arguments(&self, mut call: ToolCall) -> ToolCall {
        if let Some(arguments) = self.arguments.get(&call.id) {
            call.arguments = arguments.clone();
        }
        call
    }

    /// Keeps the headers of a message until its interaction starts.
    pub(super) fn keep_headers(&mut self, id: MessageId, headers: BTreeMap<String, String>) {
        if !headers.is_empty() {
            self.waiting_headers.insert(id, headers);
        }
    }

    /// Drops the headers of a message that was not stored.
    pub(super) fn drop_headers(&mut self, id: &MessageId) {
        self.waiting_headers.remove(id);
    }

    /// Makes the headers of these messages those of the interaction that they start.
    pub(super) fn take_headers<'a>(&mut self, ids: impl Iterator<Item = &'a MessageId>) {
        self.headers.clear();
        for id in ids {
            let headers = self.waiting_headers.remove(id);
            self.headers.extend(headers.unwrap_or_default());
        }
    }

    /// Returns the headers of the running interaction.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Lists the client tools that the model was told about and that are not in `client_tools`.
    pub(super) fn tools_gone(&self, client_tools: &BTreeSet<String>) -> Vec<String> {
        let gone = self.told_tools.difference(client_tools);
        gone.cloned().collect()
    }

    /// Records that the model is told about these client tools.
    pub(super) fn tell_tools(&mut self, client_tools: BTreeSet<String>) {
        let before = std::mem::replace(&mut self.told_tools, client_tools);
        self.told_before.get_or_insert(before);
    }
}
