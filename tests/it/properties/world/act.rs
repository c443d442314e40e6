//! What an action does: the commands that the kernel is given.

use loopd_kernel::command::{AbortRequest, ClearOrder, Command, Effect, QueuedLine, Shutdown};
use loopd_kernel::model::ToolCall;
use loopd_kernel::state::{Phase, TurnKey};
use loopd_kernel::tool_call::CallStage;
use loopd_proto::event::ask::{ElicitationAction, ElicitationRequested};
use loopd_proto::id::{RequestId, TaskId};
use loopd_proto::permission::PermissionDecision;
use serde_json::json;
use ulid::Ulid;

use super::World;
use crate::properties::action::{Action, AfterCommand, Nth, Pick, SentId};
use crate::properties::commands::{self, Work};

impl World {
    /// Lets an action happen. An action without its subject does nothing and says false.
    pub(in crate::properties) fn act(&mut self, action: Action) -> bool {
        let attended = self.attended;
        match action {
            Action::Kill => {
                self.story.action(&action);
                self.kill();
                return true;
            }
            Action::ClientsLeave => self.attended = false,
            Action::ClientAttaches => self.attended = true,
            _ => {}
        }
        let commands = self.commands(action);
        if commands.is_empty() && attended == self.attended {
            return false;
        }
        self.story.action(&action);
        for command in commands {
            self.give(command);
        }
        true
    }

    /// The process dies; what was under way never reports.
    fn kill(&mut self) {
        self.state = self.folded.clone();
        self.work.clear();
        self.reported.clear();
        self.give(Command::Recover(Vec::new()));
    }

    fn commands(&mut self, action: Action) -> Vec<Command> {
        let one = match action {
            Action::Kill | Action::ClientAttaches => None,
            Action::ClientsLeave => Some(Command::ClientsLeft),
            Action::Send(place, id) => {
                self.sent += 1;
                let own = format!("m{}", self.sent);
                let (prompt, id) = match id {
                    SentId::None => (own, None),
                    SentId::Own => (own.clone(), Some(own.as_str().into())),
                    SentId::Repeated => ("repeated".to_owned(), Some("same".into())),
                };
                let Command::Send(mut send) = commands::send(&prompt, place, id) else {
                    unreachable!("a send is a send");
                };
                // Two clients send in turns.
                send.sender = Some(commands::client(self.sent % 2));
                Some(Command::Send(send))
            }
            Action::EnqueueSlashCommand(runner) => Some(Command::EnqueueCommand(QueuedLine {
                command: "/command".to_owned(),
                runner,
                sender: None,
                display_text: None,
            })),
            Action::ClearQueue => Some(Command::ClearQueue),
            Action::RemoveLastQueued => Some(Command::RemoveLastQueued),
            Action::Clear => Some(Command::ClearContext(ClearOrder::AtRest)),
            Action::ClearFromCall => {
                self.sent += 1;
                Some(Command::ClearContext(ClearOrder::InCall {
                    prompt: format!("m{}", self.sent),
                    sender: commands::client(self.sent % 2),
                }))
            }
            Action::ChangeQueue(nth, change) => {
                let waiting = self.state.queue.iter().map(|item| item.id().clone());
                let steering = self.state.steering.iter().map(|message| message.id.clone());
                let ids: Vec<_> = waiting.chain(steering).collect();
                let nth = usize::from(nth.0).checked_rem(ids.len());
                nth.map(|nth| commands::change_queue(ids[nth].clone(), change))
            }
            Action::ClientAborts => Some(commands::abort_by(self.sent % 2, None)),
            Action::ClientInterruptsLast => {
                let last = self.state.accepted.back();
                last.map(|last| commands::abort_by(0, Some(last.id.clone())))
            }
            Action::ClientAnswersLate(nth) => {
                let unanswered = &self.state.unanswered;
                let nth = usize::from(nth.0).checked_rem(unanswered.len());
                nth.map(|nth| Command::AnswerPermission {
                    request: unanswered[nth].request.clone(),
                    decision: PermissionDecision::ApproveOnce {},
                })
            }
            Action::Abort => Some(Command::Abort(AbortRequest::OF_DAEMON)),
            Action::Set(setting) => Some(commands::set(setting)),
            Action::ClientResumes(pending) => Some(commands::resume(pending)),
            Action::Suspend => Some(Command::Suspend(Vec::new())),
            Action::ShutdownAndResume(pending) => {
                let shutdown = Command::Shutdown(Shutdown::default());
                return vec![shutdown, commands::resume(pending)];
            }
            Action::PreparationEnds(..)
            | Action::ModelReplies(..)
            | Action::CallIsAssessed(..)
            | Action::ToolFinishes(..)
            | Action::GraceEnds(_) => self.report(action),
            Action::ClientDecidesPermission(..)
            | Action::ClientFinishesCall(..)
            | Action::UserAnswers(_)
            | Action::FormIsShown
            | Action::FormIsFilledIn(_)
            | Action::SlashCommandIsHandled(_)
            | Action::ClientAnswersUnknownRequest => self.answer(action),
            Action::ShellStarts(..)
            | Action::ShellEnds(_)
            | Action::SubagentStarts(..)
            | Action::SubagentGoesToBackground(_)
            | Action::SubagentAnswers(..)
            | Action::SubagentIsContinued(_)
            | Action::SubagentNotes(_)
            | Action::SubagentEnds(..)
            | Action::TaskIsDelivered(_)
            | Action::TaskIsRemoved(_) => Some(self.task(action)),
        };
        one.into_iter().collect()
    }

    /// Work reports; sometimes what was cancelled, sometimes again.
    fn report(&mut self, action: Action) -> Option<Command> {
        match action {
            Action::PreparationEnds(pick, ends) => match self.take(Work::Preparation, pick)? {
                Effect::Prepare { messages } => Some(commands::prepared(messages, ends)),
                other => unreachable!("{other:?}"),
            },
            Action::ModelReplies(pick, reply) => match self.take(Work::ModelCall, pick)? {
                Effect::CallModel(turn) => Some(commands::replied(turn, reply)),
                other => unreachable!("{other:?}"),
            },
            Action::GraceEnds(pick) => match self.take(Work::Grace, pick)? {
                Effect::StartGrace(turn) => Some(Command::GraceOver { turn: turn.clone() }),
                other => unreachable!("{other:?}"),
            },
            Action::CallIsAssessed(pick, assessment) => {
                let (turn, call) = self.take_call(Work::Assessment, pick)?;
                Some(commands::assessed(turn, call, assessment))
            }
            Action::ToolFinishes(pick, outcome) => {
                let (turn, call) = self.take_call(Work::ToolCall, pick)?;
                Some(commands::finished(turn, call, outcome))
            }
            other => unreachable!("{other:?} is no report"),
        }
    }

    fn take_call(&mut self, kind: Work, pick: Pick) -> Option<(&TurnKey, &ToolCall)> {
        match self.take(kind, pick)? {
            Effect::Assess { turn, call, .. } | Effect::Run { turn, call, .. } => {
                Some((turn, call))
            }
            other => unreachable!("{other:?}"),
        }
    }

    /// The request of one of the open calls whose stage is wanted.
    fn waiting(&self, nth: Nth, wanted: fn(&CallStage) -> Option<&RequestId>) -> Option<RequestId> {
        let open: Vec<_> = self.state.calls().collect();
        let open: Vec<_> = open.iter().filter_map(|it| wanted(&it.stage)).collect();
        let nth = usize::from(nth.0).checked_rem(open.len())?;
        open.get(nth).map(|request| (*request).clone())
    }

    /// A client or a person answers, or is asked.
    fn answer(&mut self, action: Action) -> Option<Command> {
        Some(match action {
            Action::ClientDecidesPermission(nth, permit) => Command::AnswerPermission {
                request: self.waiting(nth, |stage| match stage {
                    CallStage::Asking { request } => Some(request),
                    _ => None,
                })?,
                decision: commands::decision(permit),
            },
            Action::ClientFinishesCall(nth, outcome) => Command::AnswerTool {
                request: self.waiting(nth, |stage| match stage {
                    CallStage::External { request } => Some(request),
                    _ => None,
                })?,
                outcome: commands::outcome(outcome),
            },
            Action::UserAnswers(nth) => Command::AnswerUserInput {
                request: self.waiting(nth, |stage| match stage {
                    CallStage::UserInput { request } => Some(request),
                    _ => None,
                })?,
                answer: "an answer".to_owned(),
                freeform: true,
            },
            Action::FormIsShown => {
                self.ids += 1;
                Command::Elicit(Box::new(ElicitationRequested {
                    request_id: Ulid(self.ids).into(),
                    message: "a form".to_owned(),
                    mode: None,
                    requested_schema: Some(json!({"type": "object"})),
                    tool_call_id: None,
                    elicitation_source: None,
                    url: None,
                }))
            }
            Action::FormIsFilledIn(nth) => {
                let open = self.state.questions.forms();
                let open: Vec<_> = open.map(|form| &form.request_id).collect();
                let nth = usize::from(nth.0).checked_rem(open.len())?;
                Command::AnswerElicitation {
                    request: open[nth].clone(),
                    action: ElicitationAction::Accept,
                    content: Some(json!(null)),
                }
            }
            Action::SlashCommandIsHandled(after) => match &self.state.phase {
                Phase::Commanding(pending) if pending.by_daemon => {
                    self.sent += 1;
                    commands::ran(pending, after, self.sent)
                }
                Phase::Commanding(pending) => Command::CommandHandled {
                    request: pending.request.clone(),
                    stop: matches!(after, AfterCommand::Stop),
                    error: None,
                },
                Phase::Idle | Phase::Preparing(_) | Phase::Turn(_) | Phase::Rewinding(_) => {
                    return None;
                }
            },
            Action::ClientAnswersUnknownRequest => Command::AnswerPermission {
                request: RequestId::from("unknown"),
                decision: PermissionDecision::ApproveOnce {},
            },
            other => unreachable!("{other:?} is no answer"),
        })
    }

    /// Something happens in the background.
    fn task(&mut self, action: Action) -> Command {
        self.answers += 1;
        let number = self.answers;
        match action {
            Action::ShellStarts(shell, ownership) => commands::shell_started(shell, ownership),
            Action::ShellEnds(shell) => commands::shell_ended(shell),
            Action::SubagentStarts(agent, start) => commands::agent_started(agent, start),
            Action::SubagentGoesToBackground(agent) => Command::TaskPromoted(agent.into()),
            Action::SubagentAnswers(agent, delivery) => {
                commands::agent_answered(agent, number, delivery)
            }
            Action::SubagentIsContinued(agent) => Command::TaskContinued {
                id: agent.into(),
                message: "more".to_owned(),
            },
            Action::SubagentNotes(agent) => Command::TaskNoted {
                id: agent.into(),
                note: "half".to_owned(),
            },
            Action::SubagentEnds(agent, outcome, delivery) => {
                commands::agent_ended(agent, number, outcome, delivery)
            }
            Action::TaskIsDelivered(task) => Command::TasksDelivered(vec![TaskId::from(task)]),
            Action::TaskIsRemoved(task) => Command::RemoveTask(task.into()),
            other => unreachable!("{other:?} is no task"),
        }
    }
}
