//! Shows the results of tool calls to the hooks before they are recorded.

use loopd_proto::event::hook::HookEnd;
use tokio::sync::oneshot;

use crate::discovery::hooks::HookKind;
use crate::hook::{HookContext, review_kind};
use crate::session::actor::Actor;
use crate::session::{Done, Message, SessionError};
use loopd_kernel::command::{CallOutcome, Command};
use loopd_kernel::model::ToolCall;

/// Where the answer to a command goes.
type CommandReply = oneshot::Sender<Result<Done, SessionError>>;

impl Actor {
    /// Returns what shows the result of a call to the hooks, if there are any for it.
    pub(in crate::session) fn reviewer(
        &self,
        call: &ToolCall,
        outcome: Option<&CallOutcome>,
    ) -> Option<HookContext> {
        let kinds = match outcome {
            Some(outcome) => [review_kind(outcome)?, HookKind::PostToolUseFailure],
            None => [HookKind::PostToolUse, HookKind::PostToolUseFailure],
        };
        let has = |kind| self.has_hooks(kind, Some(&call.name));
        kinds.into_iter().any(has).then(|| self.hook_context())
    }

    /// Shows the result of a client's tool to the hooks before it is recorded. Returns the answer
    /// back if there is nothing to show.
    pub(in crate::session) fn review_answer(
        &mut self,
        command: Box<Command>,
        reply: CommandReply,
    ) -> Option<(Box<Command>, CommandReply)> {
        let Command::AnswerTool { request, outcome } = &*command else {
            return Some((command, reply));
        };
        let mut calls = self.state.calls();
        let call = calls.find(|call| call.waits_for(request));
        let call = call.map(|call| call.call.clone());
        let context = call
            .as_ref()
            .and_then(|call| self.reviewer(call, Some(outcome)));
        let (Some(call), Some(context)) = (call, context) else {
            return Some((command, reply));
        };
        let mailbox = self.mailbox.clone();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            let Command::AnswerTool { request, outcome } = *command else {
                return;
            };
            let end = context.review(&call, outcome).await;
            let reviewed = Message::Reviewed {
                command: Box::new(Command::AnswerTool {
                    request,
                    outcome: end.outcome,
                }),
                context: end.context,
                ended: end.ended,
                reply,
            };
            // The send fails if the session has ended.
            mailbox.send(reviewed).await.ok();
        });
        None
    }

    /// Stores what hooks said about a result.
    pub(in crate::session) async fn record_hooks(
        &mut self,
        context: Vec<String>,
        ended: Vec<HookEnd>,
    ) {
        if !context.is_empty() || !ended.is_empty() {
            self.report(Command::HooksNoted { context, ended }).await;
        }
    }
}
