//! Guards that join while a person is asked about a call: they decide, too, before the call runs.

use loopd_proto::id::{RequestId, ToolCallId};
use loopd_proto::permission::PermissionDecision;
use tokio::sync::oneshot;

use crate::client::ClientId;
use crate::hook::{HookInput, Hooks};
use crate::session::actor::Actor;
use crate::session::{Done, Message, SessionError};
use loopd_kernel::command::Command;
use loopd_kernel::hook::{HookDenial, HookVerdict};

/// Where the answer to a command goes.
type CommandReply = oneshot::Sender<Result<Done, SessionError>>;

/// What the model is told if a guard that joined late wants other arguments.
const CHANGES_LATE: &str = "Denied by preToolUse hook: it joined after the call was shown to a person, and \
                            wants other arguments than those that were approved";

impl Actor {
    /// Returns the guards that have not been asked about a call that waits for a permission.
    fn late_guards(&self, call: &ToolCallId) -> Option<Hooks> {
        let asked = self.hooks.asked.get(call);
        let was_asked = |client: ClientId| asked.is_some_and(|asked| asked.contains(&client));
        let mut hooks = self.hooks();
        hooks.clients.retain(|it| !was_asked(it.client.id()));
        hooks.files.clear();
        hooks.missing = loopd_kernel::guards::ClientGuards::default();
        (!hooks.clients.is_empty()).then_some(hooks)
    }

    /// Returns whether a guard has to be asked before the call that a question is about may run.
    pub(in crate::session) fn has_late_guards(&self, request: &RequestId) -> bool {
        let mut calls = self.state.calls();
        let call = calls.find(|call| call.waits_for(request));
        call.is_some_and(|call| self.late_guards(&call.call.id).is_some())
    }

    /// Asks the guards that joined since the call was shown to a person, before an approval counts.
    /// Returns the answer back if there are none.
    pub(in crate::session) fn ask_late_guards(
        &mut self,
        command: Box<Command>,
        reply: CommandReply,
    ) -> Option<(Box<Command>, CommandReply)> {
        let Command::AnswerPermission { request, decision } = &*command else {
            return Some((command, reply));
        };
        let approves = match decision {
            PermissionDecision::ApproveOnce {}
            | PermissionDecision::ApproveForSession { .. }
            | PermissionDecision::ApproveForLocation { .. }
            | PermissionDecision::ApprovePermanently { .. } => true,
            PermissionDecision::Reject { .. }
            | PermissionDecision::UserNotAvailable {}
            | PermissionDecision::Cancelled { .. } => false,
        };
        let mut calls = self.state.calls();
        let call = calls.find(|call| call.waits_for(request));
        let call = call.map(|call| call.call.clone()).filter(|_| approves);
        let hooks = call.as_ref().and_then(|call| self.late_guards(&call.id));
        let (Some(call), Some(hooks)) = (call, hooks) else {
            return Some((command, reply));
        };
        let request = request.clone();
        let clients = hooks.clients.iter().map(|it| it.client.id());
        let asked = self.hooks.asked.entry(call.id.clone()).or_default();
        asked.extend(clients);
        let mut context = self.hook_context();
        context.hooks = hooks;
        let mailbox = self.mailbox.clone();
        let at_work = self.services.keep_alive.work();
        let id = self.state.id.clone();
        self.running.spawn(async move {
            let _at_work = at_work;
            let input = HookInput::pre_tool_use(&call);
            let Ok(end) = context.guard(&input).await else {
                // The question stays open. The send fails if the caller has stopped waiting.
                let why =
                    format!("a guard of the session {id} left while it was asked; answer again");
                reply.send(Err(SessionError::Invalid(why))).ok();
                return;
            };
            let denial = match (end.verdict, end.arguments) {
                (HookVerdict::Deny(denial), _) => Some(denial),
                (_, Some(_)) => Some(HookDenial::new(CHANGES_LATE)),
                (HookVerdict::None | HookVerdict::Allow | HookVerdict::Ask(_), None) => None,
            };
            let command = match denial {
                Some(denial) => Box::new(Command::GuardDenied(request, denial)),
                None => command,
            };
            let reviewed = Message::Reviewed {
                command,
                context: Vec::new(),
                ended: end.ended,
                reply,
            };
            // The send fails if the session has ended.
            mailbox.send(reviewed).await.ok();
        });
        None
    }
}
