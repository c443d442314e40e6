//! Runs the parts of slash commands: a shell command in the text of a command, or a file that the text
//! includes. A part is a call of a built-in tool that no turn asked for. Hooks guard it, the kernel
//! permits it, and the log records it, as they do with calls of the model.

use loopd_proto::id::{RequestId, ToolCallId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::mcp::sampling::WaitingSample;
use super::{Message, SessionError, SessionHandle};
use crate::discovery::hooks::HookKind;
use crate::hook::HookInput;
use crate::turn::tool_call::{self, CallInput};
use loopd_kernel::command::{CallNeed, CallOutcome, CallStatusReport, Command, PartAsked};
use loopd_kernel::hook::{HookDenial, HookVerdict};
use loopd_kernel::model::ToolCall;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::policy::planning::ToolClaim;

/// A part that is to run.
#[derive(Debug)]
pub struct PartOrder {
    /// Names the permission request of the part, if there is one.
    pub request: RequestId,
    /// The built-in tool that runs it.
    pub tool: &'static str,
    pub arguments: Value,
}

/// What a part said, or why it did not run.
pub type PartRan = Result<String, String>;

/// What waits for a permission that no call of the model asks for.
pub(super) enum WaitingPart {
    /// A part of a slash command.
    Call {
        call: ToolCall,
        reply: oneshot::Sender<PartRan>,
    },
    /// A server that wants to use the model.
    Sample(WaitingSample),
}

impl WaitingPart {
    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Call { reply, .. } => reply.is_closed(),
            Self::Sample(sample) => sample.is_abandoned(),
        }
    }

    fn refuse(self, why: String) {
        match self {
            Self::Call { reply, .. } => {
                // The send fails if the caller has stopped waiting.
                reply.send(Err(why)).ok();
            }
            Self::Sample(sample) => sample.refuse(why),
        }
    }
}

impl SessionHandle {
    /// Runs a part of a slash command, after a person was asked where the rules want that.
    pub fn run_part(
        &self,
        order: PartOrder,
    ) -> impl Future<Output = Result<PartRan, SessionError>> + Send + use<> {
        let (reply, ran) = oneshot::channel();
        let posted = self.post(Message::RunPart { order, reply });
        let id = self.id.clone();
        async move {
            posted?;
            ran.await.map_err(|_| SessionError::Ended(id))
        }
    }
}

impl Actor {
    /// Asks the hooks about a part and finds out which permission it needs. The session decides then.
    pub(super) fn prepare_part(&mut self, order: PartOrder, reply: oneshot::Sender<PartRan>) {
        let PartOrder {
            request,
            tool: name,
            arguments,
        } = order;
        let Some(tool) = self.services.catalog.get(name) else {
            reply.send(Err(format!("there is no tool {name}"))).ok();
            return;
        };
        let call = ToolCall {
            id: ToolCallId::from(self.services.clock.id()),
            name: name.to_owned(),
            arguments,
        };
        let effective = self.effective_permissions();
        let context = self.assess_context(&effective, crate::redaction::Redaction::default());
        let can_ask = effective.may_ask
            && if self.subagents.is_child() {
                self.can_ask_above()
            } else {
                self.clients.answer_permissions()
            };
        let hooks = self
            .has_hooks(HookKind::PreToolUse, Some(name))
            .then(|| self.hook_context());
        let mailbox = self.mailbox.clone();
        self.running.spawn(async move {
            let mut verdict = HookVerdict::None;
            if let Some(mut hooks) = hooks {
                hooks.cancel = CancellationToken::new();
                let input = HookInput::pre_tool_use(&call);
                verdict = match hooks.guard(&input).await {
                    Ok(end) if end.arguments.is_some() => denied(
                        "a hook wants to change it, which is possible for calls of the model only",
                    ),
                    Ok(end) => end.verdict,
                    Err(_) => denied("the client whose hooks guard this session is not there"),
                };
            }
            let (need, _) = tool_call::to_call_need(tool.need(&call.arguments, &context).await);
            let permission = match need {
                CallNeed::Permission(permission) => permission,
                CallNeed::Refused(outcome) => {
                    reply.send(Err(outcome.result.content)).ok();
                    return;
                }
                CallNeed::Nothing | CallNeed::Answer(_) | CallNeed::Approval(_) => {
                    let why = format!("the tool {name} cannot run a part of a command");
                    reply.send(Err(why)).ok();
                    return;
                }
            };
            let asked = PartAsked {
                request,
                tool: name.to_owned(),
                permission,
                claim: ToolClaim::Nothing,
                can_ask,
                hooks: verdict,
            };
            let part = WaitingPart::Call { call, reply };
            let message = Message::AskForPart(Box::new(asked), part);
            // The send fails if the session has ended; then the reply ends, too.
            mailbox.send(message).await.ok();
        });
    }

    /// Lets the kernel decide about a part.
    pub(super) async fn ask_for_part(&mut self, asked: PartAsked, part: WaitingPart) {
        if part.is_abandoned() {
            return;
        }
        let request = asked.request.clone();
        self.question_waiters.wants_part(request.clone(), part);
        if let Err(error) = self.execute(Command::AskForPart(Box::new(asked))).await
            && let Some(part) = self.question_waiters.part_decided(&request)
        {
            part.refuse(error.to_string());
        }
    }

    /// Runs a part that is permitted, or tells its caller why it is not.
    pub(super) fn part_decided(&mut self, request: &RequestId, decided: Result<Grant, String>) {
        let Some(part) = self.question_waiters.part_decided(request) else {
            return;
        };
        let grant = match decided {
            Ok(grant) => grant,
            Err(why) => return part.refuse(why),
        };
        let (call, mut reply) = match part {
            WaitingPart::Call { call, reply } => (call, reply),
            WaitingPart::Sample(sample) => return self.run_sample(sample),
        };
        let Some(tool) = self.services.catalog.get(&call.name) else {
            return;
        };
        let redaction = self.redaction();
        self.file_masks.set(redaction.clone());
        let (mut context, partial) = self.tool_context(&call.id, redaction.clone());
        context.cancel = CancellationToken::new();
        // The text of the command takes what is printed now, and nothing later.
        context.may_go_on = false;
        let hooks = self.reviewer(&call, None);
        let mailbox = self.mailbox.clone();
        let input = CallInput {
            call: call.clone(),
            grant,
            context,
            partial,
            session: self.state.id.clone(),
            tip: self.state.tip.clone(),
            audience: self.clients.audience().clone(),
            services: self.services.clone(),
            redaction: redaction.clone(),
        };
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = at_work;
            let started = Command::UserCommandStarted {
                call: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            };
            if let Err(why) = record(&mailbox, started).await {
                reply.send(Err(why)).ok();
                return;
            }
            let outcome = tokio::select! {
                outcome = tool_call::run(tool.as_ref(), input) => outcome,
                // Dropping the call stops it.
                () = reply.closed() => CallOutcome::interrupted("nobody waits for it any more"),
            };
            let outcome = match hooks {
                Some(hooks) => hooks.review(&call, outcome).await.outcome,
                None => outcome,
            };
            let mut text = outcome.result.content.clone();
            redaction.clean_in_place(&mut text);
            let ran = match &outcome.status {
                CallStatusReport::Success => Ok(text),
                CallStatusReport::Failure { .. } => Err(text),
            };
            let ended = Command::UserCommandEnded {
                call: call.id,
                outcome,
            };
            let recorded = record(&mailbox, ended).await;
            reply.send(recorded.and(ran)).ok();
        });
    }
}

/// Stores an event of a part before it goes on.
async fn record(mailbox: &mpsc::Sender<Message>, command: Command) -> Result<(), String> {
    let (reply, stored) = oneshot::channel();
    let message = Message::Command {
        command: Box::new(command),
        reply,
    };
    let ended = || "the session has ended".to_owned();
    mailbox.send(message).await.map_err(|_| ended())?;
    match stored.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(ended()),
    }
}

/// The verdict on what a hook does not let through.
pub(super) fn denied(why: &str) -> HookVerdict {
    HookVerdict::Deny(HookDenial {
        reason: why.to_owned(),
        told: why.to_owned(),
        stops: false,
    })
}
