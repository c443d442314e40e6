//! A session without a daemon: the state, its log, and the work that has not reported yet. Work
//! that was cancelled stays, because a report may always cross a cancel.

use loopd_kernel::apply::apply;
use loopd_kernel::command::{
    Command, Create, DecideEnv, Effect, Prepared, PreparedMessage, Resume, Send, SendPlace, Step,
    TaskEnd, TaskStart,
};
use loopd_kernel::context;
use loopd_kernel::decide::decide;
use loopd_kernel::state::{Phase, State};
use loopd_kernel::tool_call::CallStage;
use loopd_proto::event::ask::ElicitationAction;
use loopd_proto::event::fact::{Asked, NamedBy, PendingMessage};
use loopd_proto::event::session::WorkContext;
use loopd_proto::event::task::{ShellAttachment, ShellWork, TaskOutcome, TaskWork};
use loopd_proto::event::{self, Durable, Ephemeral, Head};
use loopd_proto::id::{MessageId, RequestId, SessionId, TaskId};
use loopd_proto::permission::{PermissionDecision, Permissions};
use loopd_proto::session::{Mode, SessionOptions};
use loopd_proto::time::Timestamp;
use loopd_tests::assert_same;
use loopd_tests::validator::{as_chat, check_conversation};
use serde_json::json;
use ulid::Ulid;

use super::checks::fold;

mod agents;
mod reports;

/// Something that happens; the numbers choose among what is possible then.
#[derive(Clone, Copy)]
pub(super) struct Action {
    pub(super) kind: u8,
    pub(super) which: u8,
    pub(super) how: u8,
}

impl Action {
    /// How many kinds there are; more than half are reports of work, so that turns get somewhere.
    pub(super) const KINDS: u8 = 68;
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.which, self.how)
    }
}

/// How many effects may be waiting to report; the oldest are forgotten.
const WORK: usize = 24;

pub(super) struct World {
    pub(super) state: State,
    /// The stored lines.
    pub(super) log: Vec<String>,
    work: Vec<Effect>,
    ids: u128,
    sent: usize,
    attended: bool,
    /// The loop ended while agents were at work, and nobody was told that all is done.
    owes_idle: bool,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self::of(State::new(SessionId::from("s")));
        world.give(Command::Create(Create {
            agent: None,
            options: SessionOptions::default(),
            context: WorkContext::default(),
            permissions: Permissions::default(),
            version: "0".to_owned(),
            subagent: None,
        }));
        world
    }

    /// A world that goes on from a state.
    pub(super) fn of(state: State) -> Self {
        Self {
            // Ids that no earlier life of the session had.
            ids: 1_000_000 * (u128::from(state.seq.0) + 1),
            state,
            log: Vec::new(),
            work: Vec::new(),
            sent: 0,
            attended: true,
            owes_idle: false,
        }
    }

    /// Decides and applies one command, as the actor does, and checks what has to hold at all times.
    pub(super) fn give(&mut self, command: Command) {
        let said = format!("{command:?}");
        let recovers = matches!(command, Command::Recover(_));
        let ends = matches!(command, Command::Suspend | Command::Shutdown { .. });
        let was_busy = self.state.is_busy();
        let ids = &mut self.ids;
        let mut fresh = || {
            *ids += 1;
            Ulid(*ids)
        };
        let mut env = DecideEnv {
            now: Timestamp(1_700_000_000_000),
            attended: self.attended,
            has_client_tool: &|_| true,
            ids: &mut fresh,
        };
        let Ok(decision) = decide(&self.state, command, &mut env) else {
            return;
        };
        let mut told_idle = false;
        let mut calls = false;
        for step in decision.steps {
            match step {
                Step::Store(event) => self.store(&event),
                Step::Tell(event) => told_idle |= matches!(event, Ephemeral::SessionIdle(_)),
                Step::Do(effect) => {
                    calls |= matches!(effect, Effect::CallModel(_));
                    if reports::command(&effect, 0).is_some() {
                        self.work.push(effect);
                    }
                }
            }
        }
        let forgotten = self.work.len().saturating_sub(WORK);
        self.work.drain(..forgotten);
        self.check_conversation(&said, calls);
        let rests = !self.state.is_busy();
        assert!(
            !told_idle || rests,
            "idle was told in the middle of work, after {said}"
        );
        if recovers || ends || told_idle {
            self.owes_idle = false;
        } else if was_busy && rests {
            self.owes_idle = true;
        }
        let deferred = !rests || self.state.tasks.has_agents_at_work();
        assert!(
            !self.owes_idle || deferred,
            "the loop ended and nobody was told, after {said}"
        );
    }

    fn store(&mut self, event: &Durable) {
        self.ids += 1;
        let head = Head {
            id: Ulid(self.ids).into(),
            timestamp: Timestamp(1_700_000_000_000),
            parent_id: self.state.tip.clone(),
            agent_id: None,
            ephemeral: None,
        };
        self.log.push(event::write(&head, event).unwrap());
        apply(&mut self.state, &head, event);
    }

    fn check_conversation(&self, after: &str, calls: bool) {
        let conversation = as_chat(&context::messages(&self.state));
        if let Err(wrong) = check_conversation(&conversation) {
            panic!("the conversation is not valid after {after}: {wrong}");
        }
        let last = conversation.last().map(|message| message["role"].clone());
        assert!(
            !calls || last == Some(json!("user")) || last == Some(json!("tool")),
            "the model is called after {after} although the last message is from {last:?}"
        );
    }

    /// What is stored folds to what is.
    pub(super) fn check_replay(&self) {
        let folded = fold(&self.log);
        assert_same("the log does not fold to the state", &folded, &self.state);
    }

    pub(super) fn act(&mut self, action: Action) {
        let Action { kind, which, how } = action;
        match kind {
            0..=39 => self.report(which, how),
            40..=46 => self.answer(which, how),
            47..=50 => {
                self.sent += 1;
                let prompt = format!("m{}", self.sent);
                let id = (how & 8 != 0).then(|| prompt.as_str().into());
                self.send_as(&prompt, place(how), id);
            }
            51 => self.give(Command::Abort),
            52 => self.give(Command::Resume(resume(how))),
            53 if how & 1 == 0 => self.give(Command::Suspend),
            53 => {
                self.give(Command::Shutdown { error: None });
                self.give(Command::Resume(resume(how)));
            }
            54 => self.crash(),
            55 if how & 1 == 0 => self.give(Command::ClearQueue),
            55 => self.give(Command::RemoveLastQueued),
            56 => self.give(Command::EnqueueCommand(format!("/command {which}"))),
            57 => {
                self.ids += 1;
                self.give(Command::Elicit {
                    request: Ulid(self.ids).into(),
                    message: "a form".to_owned(),
                    schema: if how & 1 == 0 {
                        json!(null)
                    } else {
                        json!({"type": "object"})
                    },
                });
            }
            58 => self.set(which, how),
            59 => self.attended = how & 3 != 0,
            60 => self.attended = true,
            61 => self.task(which, how),
            64..=67 => self.agent(which, how),
            // A message that comes twice with one id.
            _ => self.send_as("repeated", place(how), Some("same".into())),
        }
    }

    /// Something happens to one of a few commands in the background.
    fn task(&mut self, which: u8, how: u8) {
        let id = TaskId::from(format!("task-{}", which % 3));
        self.give(match how % 5 {
            0 | 1 => Command::TaskStarted(Box::new(TaskStart {
                id,
                call: None,
                description: String::new(),
                started_at: None,
                work: TaskWork::Shell(ShellWork {
                    shell_id: format!("task-{}", which % 3).into(),
                    command: "sleep".to_owned(),
                    attachment: if which & 4 == 0 {
                        ShellAttachment::Attached
                    } else {
                        ShellAttachment::Detached
                    },
                    pid: None,
                    log_path: (which & 4 != 0).then(|| "log".to_owned()),
                }),
            })),
            2 => Command::TaskEnded {
                id,
                end: TaskEnd {
                    exit_code: Some(0),
                    ..TaskEnd::new(TaskOutcome::Completed)
                },
            },
            3 => Command::TasksDelivered(vec![id]),
            _ => Command::RemoveTask(id),
        });
    }

    fn set(&mut self, which: u8, how: u8) {
        self.give(match which % 4 {
            0 => Command::SetMode(if how & 1 == 0 {
                Mode::Plan
            } else {
                Mode::Interactive
            }),
            1 => Command::SetModel {
                model: format!("model-{}", how % 3),
                reasoning_effort: None,
            },
            2 => Command::SetName {
                name: "a name".to_owned(),
                by: NamedBy::User,
            },
            _ => Command::SetPermissions(Box::new(Permissions {
                approve_all: how & 1 == 0,
                ..Permissions::default()
            })),
        });
    }

    /// The process dies and another one loads the log.
    fn crash(&mut self) {
        self.state = fold(&self.log);
        self.work.clear();
        self.give(Command::Recover(Vec::new()));
    }

    pub(super) fn send(&mut self, prompt: &str) -> Vec<PendingMessage> {
        self.send_as(prompt, SendPlace::Enqueue, None);
        match &self.state.phase {
            Phase::Preparing(preparing) => preparing.messages.clone(),
            _ => Vec::new(),
        }
    }

    fn send_as(&mut self, prompt: &str, place: SendPlace, id: Option<MessageId>) {
        self.give(Command::Send(Send {
            id,
            prompt: prompt.to_owned(),
            display_prompt: None,
            attachments: Vec::new(),
            agent_mode: None,
            request_headers: std::collections::BTreeMap::new(),
            source: None,
            place,
        }));
    }

    pub(super) fn prepared(messages: &[PendingMessage]) -> Command {
        Command::Prepared(Prepared {
            messages: messages
                .iter()
                .map(|message| PreparedMessage {
                    id: message.id.clone(),
                    text: format!("ready: {}", message.prompt),
                })
                .collect(),
            model: "model".to_owned(),
            reasoning_effort: None,
            system: "the system".to_owned(),
        })
    }

    /// Answers one of the open questions, or none that there is.
    fn answer(&mut self, which: u8, how: u8) {
        let mut commands: Vec<Command> = vec![Command::AnswerPermission {
            request: RequestId::from("unknown"),
            decision: PermissionDecision::ApproveOnce {},
        }];
        for call in self.state.calls() {
            match &call.stage {
                CallStage::Asking { request, .. } => commands.push(Command::AnswerPermission {
                    request: request.clone(),
                    decision: reports::decision(how),
                }),
                CallStage::External { request } => commands.push(Command::AnswerTool {
                    request: request.clone(),
                    outcome: reports::outcome(how),
                }),
                CallStage::UserInput { request } => commands.push(Command::AnswerUserInput {
                    request: request.clone(),
                    answer: "an answer".to_owned(),
                    freeform: how & 1 == 0,
                }),
                CallStage::Requested
                | CallStage::Intended
                | CallStage::Decided
                | CallStage::Recorded { .. } => {}
            }
        }
        for (request, asked) in &self.state.questions {
            if matches!(asked, Asked::Elicitation(_)) {
                commands.push(Command::AnswerElicitation {
                    request: request.clone(),
                    action: ElicitationAction::Accept,
                    content: Some(json!(null)),
                });
            }
        }
        if let Phase::Commanding(pending) = &self.state.phase {
            commands.push(Command::CommandHandled {
                request: pending.request.clone(),
                stop: how & 1 == 0,
            });
        }
        let chosen = usize::from(which) % commands.len();
        self.give(commands.swap_remove(chosen));
    }

    /// Aborts and lets the grace pass.
    pub(super) fn come_to_rest(&mut self) {
        self.give(Command::Abort);
        if let Some(turn) = self.state.turn() {
            let turn = turn.key.clone();
            self.give(Command::GraceOver { turn });
        }
        assert!(
            !self.state.is_busy(),
            "an abort left work behind: {:#?}",
            self.state.phase
        );
    }

    /// Goes through one whole turn, whatever was before.
    pub(super) fn finish_a_turn(&mut self) {
        self.attended = true;
        self.give(Command::ClearQueue);
        let heard = self.state.tasks.iter().map(|task| task.id.clone());
        self.give(Command::TasksDelivered(heard.collect()));
        self.work.clear();
        let messages = self.send("the last one");
        assert_eq!(
            messages.len(),
            1,
            "a session at rest takes a message at once"
        );
        self.give(Self::prepared(&messages));
        let turn = self.state.turn().expect("the model is called").key.clone();
        self.give(reports::says(turn, "the last word"));
        assert!(
            !self.state.is_busy(),
            "the loop ends with the model's last word"
        );
    }

    /// What users said, as the log has it.
    pub(super) fn user_texts(&self) -> Vec<String> {
        let events = self
            .log
            .iter()
            .map(|line| event::read_durable(line).unwrap().1);
        events
            .filter_map(|event| match event {
                Durable::UserMessage(message) => Some(message.content),
                _ => None,
            })
            .collect()
    }
}

fn place(how: u8) -> SendPlace {
    match how % 3 {
        0 => SendPlace::Enqueue,
        1 => SendPlace::Prepend,
        _ => SendPlace::Immediate,
    }
}

fn resume(how: u8) -> Resume {
    Resume {
        options: SessionOptions::default(),
        working_directory: None,
        context: WorkContext::default(),
        agent: None,
        managed: None,
        was_active: how & 2 == 0,
        already_in_use: false,
        continue_pending_work: how & 4 == 0,
        announce: true,
    }
}
