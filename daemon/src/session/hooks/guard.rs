//! The effects that ask hooks about a tool call: before it starts, and before a person is asked.

use loopd_proto::id::ToolCallId;

use super::AskedGuards;
use crate::client::ClientId;
use crate::hook::HookInput;
use crate::session::actor::Actor;
use crate::session::work::Work;
use loopd_kernel::command::Command;
use loopd_kernel::guards::{GuardJoined, GuardLeft};
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
        let typed = self.typed_before(&call);
        let asked = AskedGuards::of(&context.hooks);
        // Those of earlier turns are over.
        let is_open = |id: &ToolCallId| self.state.calls().any(|call| call.call.id == *id);
        self.hooks.asked.retain(|id, _| is_open(id));
        let clients = asked.clients.clone();
        self.hooks.asked.insert(call.id.clone(), clients);
        self.hooks.asking.insert(call.id.clone(), asked);
        let (failed_turn, failed_call) = (turn.clone(), call.id.clone());
        Some(
            Work::new(
                async move {
                    let input = HookInput::pre_tool_use(&call).after_typing(typed);
                    Some(match context.guard(&input).await {
                        Ok(end) => Command::Guarded(Box::new(Guarded {
                            turn,
                            call: call.id,
                            verdict: end.verdict,
                            arguments: end.arguments,
                            context: end.context,
                            ended: end.ended,
                        })),
                        Err(absent) => Command::GuardAbsent {
                            turn,
                            call: call.id,
                            missing: absent.missing,
                        },
                    })
                },
                move || crashed_guard(failed_turn, failed_call),
            )
            .that_waits(),
        )
    }

    /// Returns what may stand on the line that a call types into; `None` if that is not known.
    fn typed_before(&self, call: &ToolCall) -> Option<Vec<String>> {
        let turn = self.state.turn()?;
        self.state.changed_shells.typed_before(call, turn)
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
            Command::HooksAnswered { asked, .. } => {
                self.hooks.asking.remove(&asked.call);
            }
            Command::GuardAbsent { call, .. } => self.look_for_guards(call),
            Command::HooksAbsent { asked, .. } => self.look_for_guards(&asked.call),
            _ => {}
        }
    }

    /// Asks again about a call that is going to wait, if there is somebody else to ask by now.
    fn look_for_guards(&mut self, call: &ToolCallId) {
        let asked = self.hooks.asking.remove(call).unwrap_or_default();
        if asked.are_fewer_than(&AskedGuards::of(&self.hooks())) {
            let reporter = self.reporter();
            self.running.spawn(async move {
                reporter.report(Command::GuardsChanged).await;
            });
        }
    }

    /// Asks the hooks before a person is asked.
    pub(in crate::session) fn ask_hooks(&mut self, asked: HookPermission) -> Work {
        let context = self.hook_context();
        let guards = AskedGuards::of(&context.hooks);
        self.hooks.asking.insert(asked.call.clone(), guards);
        let call = self.state.turn().and_then(|turn| turn.call(&asked.call));
        let call = call.map(|call| call.call.clone());
        let typed = call.as_ref().and_then(|call| self.typed_before(call));
        let unanswered = asked.clone();
        Work::new(
            async move {
                let call = call?;
                let input = HookInput::permission_request(&call, &asked.request);
                let input = input.after_typing(typed);
                let asked = Box::new(asked);
                Some(match context.guard(&input).await {
                    Ok(end) => Command::HooksAnswered {
                        asked,
                        verdict: end.verdict,
                        ended: end.ended,
                    },
                    Err(absent) => Command::HooksAbsent {
                        asked,
                        missing: absent.missing,
                    },
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

    /// Records that the hooks of a client that has just attached guard the session. `returns` says
    /// whether its connection broke and it comes back.
    pub(in crate::session) async fn guard_joined(&mut self, name: String, returns: bool) {
        if self.subagents.is_child() {
            return;
        }
        let present = self.answering_hooks();
        if self.state.guards != present {
            let joined = GuardJoined {
                present,
                returns: returns.then_some(name),
            };
            self.report(Command::GuardJoined(joined)).await;
        }
        // It may deny what waits, also if others are still missing.
        if self.has_call_without_guard() {
            self.report(Command::GuardsChanged).await;
        }
    }

    /// Stops waiting for a client that leaves by its own will. One that leaves while it is asked about a call
    /// is missed like one whose connection broke: nobody has judged the call in its place.
    pub(in crate::session) async fn guard_left(&mut self, client: ClientId, others_stay: bool) {
        let mut asked = self.hooks.asking.values();
        if others_stay && asked.any(|asked| asked.clients.contains(&client)) {
            return;
        }
        let mut attachments = self.clients.attachments().iter();
        let leaving = attachments.find(|it| it.client.id() == client && it.offer.hooks);
        if let Some(name) = leaving.map(|it| it.name.clone()) {
            let left = GuardLeft { name, others_stay };
            self.report(Command::GuardLeft(left)).await;
        }
    }

    /// Lets hooks that guard the session decide about the calls that wait for them, if all are there.
    pub(in crate::session) async fn guards_changed(&mut self) {
        if self.has_call_without_guard() && self.hooks().missing.is_empty() {
            self.report(Command::GuardsChanged).await;
        }
    }

    fn has_call_without_guard(&self) -> bool {
        self.state.calls().any(|call| call.stage.is_guarding())
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
