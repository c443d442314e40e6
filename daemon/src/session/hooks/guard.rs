//! The effects that ask hooks about a tool call: before it starts, and before a person is asked.

use loopd_proto::id::ToolCallId;

use crate::discovery::hooks::HookKind;
use crate::hook::HookInput;
use crate::session::actor::Actor;
use crate::session::work::Work;
use loopd_kernel::command::Command;
use loopd_kernel::hook::{Guarded, HookDenial, HookPermission, HookVerdict};
use loopd_kernel::model::ToolCall;
use loopd_kernel::state::TurnKey;

impl Actor {
    /// Asks the hooks about a call before it starts.
    pub(in crate::session) fn guard(&mut self, turn: TurnKey, call: ToolCall) -> Option<Work> {
        if self.hooks.asking.contains_key(&call.id) {
            return None;
        }
        let context = self.hook_context();
        let asked = context.hooks.clients.iter().map(|client| client.id());
        self.hooks.asking.insert(call.id.clone(), asked.collect());
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        Some(
            Work::new(
                async move {
                    let input =
                        HookInput::of_call(HookKind::PreToolUse, &call, serde_json::json!({}));
                    Some(match context.guard(&input).await {
                        Ok(end) => Command::Guarded(Box::new(Guarded {
                            turn,
                            call: call.id,
                            verdict: end.verdict,
                            arguments: end.arguments,
                            context: end.context,
                            ended: end.ended,
                        })),
                        Err(_) => Command::GuardAbsent {
                            turn,
                            call: call.id,
                        },
                    })
                },
                move || crashed_guard(failed_turn, failed_call),
            )
            .that_waits(),
        )
    }

    /// Notes what a report about hooks means for the running effects, before it is decided.
    pub(in crate::session) fn before_deciding(&mut self, command: &Command) {
        match command {
            Command::Guarded(guarded) => {
                self.hooks.asking.remove(&guarded.call);
                if guarded.arguments.is_some() {
                    // The call runs with what the hook wrote, not with what the model wrote.
                    self.running.forget_arguments(&guarded.call);
                }
            }
            Command::GuardAbsent { call, .. } => {
                let asked = self.hooks.asking.remove(call).unwrap_or_default();
                let mut answering = self.hooks().clients.into_iter();
                if answering.any(|client| !asked.contains(&client.id())) {
                    // Another client came while those were asked that have left now.
                    let reporter = self.reporter();
                    self.running.spawn(async move {
                        reporter.report(Command::GuardsChanged).await;
                    });
                }
            }
            _ => {}
        }
    }

    /// Asks the hooks before a person is asked.
    pub(in crate::session) fn ask_hooks(&self, asked: HookPermission) -> Work {
        let context = self.hook_context();
        let call = self.state.turn().and_then(|turn| turn.call(&asked.call));
        let call = call.map(|call| call.call.clone());
        let unanswered = asked.clone();
        Work::new(
            async move {
                let call = call?;
                let more = serde_json::json!({ "permissionRequest": asked.request });
                let input = HookInput::of_call(HookKind::PermissionRequest, &call, more);
                let (verdict, ended) = match context.guard(&input).await {
                    Ok(end) => (end.verdict, end.ended),
                    // Only calls that the client has guarded get here; a person may still decide.
                    Err(_) => (HookVerdict::None, Vec::new()),
                };
                Some(Command::HooksAnswered {
                    asked: Box::new(asked),
                    verdict,
                    ended,
                })
            },
            move || Command::HooksAnswered {
                asked: Box::new(unanswered),
                verdict: crashed(),
                ended: Vec::new(),
            },
        )
        .that_waits()
    }

    /// Lets hooks that guard the session decide about the calls that wait for them.
    pub(in crate::session) async fn guards_changed(&mut self) {
        let mut attachments = self.clients.attachments().iter();
        let answers = attachments.any(|attachment| attachment.offer.hooks);
        if answers && !self.state.guarded_by_client && !self.subagents.is_child() {
            self.report(Command::SetClientGuard(true)).await;
        }
        let waits = self.state.calls().any(|call| call.stage.is_guarding());
        if waits && (answers || !self.is_guarded_by_client()) {
            self.report(Command::GuardsChanged).await;
        }
    }
}

fn crashed_guard(turn: TurnKey, call: ToolCallId) -> Command {
    Command::Guarded(Box::new(Guarded {
        turn,
        call,
        verdict: crashed(),
        arguments: None,
        context: Vec::new(),
        ended: Vec::new(),
    }))
}

fn crashed() -> HookVerdict {
    let text = "Denied: asking the hooks crashed inside the daemon; this is a bug of loopd";
    HookVerdict::Deny(HookDenial {
        reason: text.to_owned(),
        told: text.to_owned(),
        stops: false,
    })
}
