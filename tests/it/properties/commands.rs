//! The kernel's commands, made from named actions: whatever carries more than an id is made here.

use loopd_kernel::command::{
    AbortRequest, AbortWaiting, Assessed, CallNeed, CallOutcome, CallStatusReport, Command,
    CommandOutcome, Create, Effect, ModelChoice, ModelFailure, ModelReplied, PermissionChange,
    Prepared, PreparedMessage, Resume, Send, SendPlace,
};
use loopd_kernel::model::{AssistantTurn, ModelReply, ToolCall};
use loopd_kernel::state::TurnKey;
use loopd_kernel::texts;
use loopd_kernel::tool_call::{Ahead, ToolOrigin, UserQuestion};
use loopd_proto::event::fact::{ClientRef, CountedTokens, NamedBy, PendingCommand, PendingMessage};
use loopd_proto::event::session::WorkContext;
use loopd_proto::event::tool::ToolResult;
use loopd_proto::id::{MessageId, ToolCallId};
use loopd_proto::permission::{PermissionDecision, PermissionRequest, Permissions};
use loopd_proto::session::{Mode, SessionOptions};
use serde_json::{Value, json};

use super::action::{
    AfterCommand, Arguments, Assessment, CallIds, Calls, Outcome, PendingWork, Permit, Preparation,
    QueueChange, Reply, Setting,
};

mod tasks;

pub(super) use tasks::{agent_answered, agent_ended, agent_started, shell_ended, shell_started};

/// The kinds of work that report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Preparation,
    ModelCall,
    Assessment,
    ToolCall,
    Grace,
}

impl Work {
    /// None for effects that do not report.
    pub(super) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Prepare { .. } => Some(Self::Preparation),
            Effect::CallModel(_) => Some(Self::ModelCall),
            Effect::Assess { .. } => Some(Self::Assessment),
            Effect::Run { .. } => Some(Self::ToolCall),
            Effect::StartGrace(_) => Some(Self::Grace),
            Effect::Guard { .. }
            | Effect::AskHooks(_)
            | Effect::AskStop(_)
            | Effect::OpenShellAhead
            | Effect::CancelTurn
            | Effect::AwaitProvider { .. }
            | Effect::KeepOutputs { .. }
            | Effect::Summarise(_)
            | Effect::CancelSummary
            | Effect::MakeTitle { .. }
            | Effect::AskClients(_)
            | Effect::Withdraw(_)
            | Effect::Resolve { .. }
            | Effect::PartDecided { .. }
            | Effect::GrantAbove(_)
            | Effect::RejoinAgent { .. }
            | Effect::StartWorker(_)
            | Effect::ContinueWorker { .. }
            | Effect::CancelWorkers(_)
            | Effect::RunCommand(_)
            | Effect::CancelAgents
            | Effect::RestoreFiles(_)
            | Effect::Remember(..) => None,
        }
    }
}

pub(super) fn create() -> Command {
    Command::Create(Box::new(Create {
        agent: None,
        options: SessionOptions::default(),
        context: WorkContext::default(),
        permissions: Permissions::default(),
        version: "0".to_owned(),
        subagent: None,
        name: None,
        vouched_hooks: Vec::new(),
    }))
}

pub(super) fn resume(pending: PendingWork) -> Command {
    Command::Resume(Box::new(Resume {
        options: SessionOptions::default(),
        working_directory: None,
        context: WorkContext::default(),
        agent: None,
        managed: None,
        vouched_hooks: None,
        was_active: true,
        already_in_use: false,
        continue_pending_work: matches!(pending, PendingWork::Continue),
        announce: true,
    }))
}

pub(super) fn send(prompt: &str, place: SendPlace, id: Option<MessageId>) -> Command {
    Command::Send(Send {
        id,
        prompt: prompt.to_owned(),
        display_prompt: None,
        attachments: Vec::new(),
        agent_mode: None,
        required_tool: None,
        request_headers: std::collections::BTreeMap::new(),
        source: None,
        place,
        sender: None,
        scope: None,
    })
}

/// The daemon has run a slash command: it wants a message sent, or it failed.
pub(super) fn ran(pending: &PendingCommand, after: AfterCommand, number: usize) -> Command {
    let Command::Send(message) = send(&format!("m{number}"), SendPlace::Enqueue, None) else {
        unreachable!("a send is a send");
    };
    Command::CommandRan {
        request: pending.request.clone(),
        outcome: match after {
            AfterCommand::GoOn => Ok(CommandOutcome {
                said: None,
                message: Some(Box::new(message)),
            }),
            AfterCommand::Stop => Err("failed".to_owned()),
        },
    }
}

/// One of two clients.
pub(super) fn client(number: usize) -> ClientRef {
    ClientRef {
        id: format!("client {number}"),
        name: None,
    }
}

/// A client stops the turn: any, or that of one message.
pub(super) fn abort_by(number: usize, only: Option<MessageId>) -> Command {
    Command::Abort(AbortRequest {
        by: Some(client(number)),
        waiting: AbortWaiting::RemoveOwn,
        only,
        ..AbortRequest::OF_DAEMON
    })
}

pub(super) fn change_queue(id: MessageId, change: QueueChange) -> Command {
    match change {
        QueueChange::Move => Command::MoveQueued { id, to: 1 },
        QueueChange::Edit => Command::EditQueued {
            prompt: format!("{id}, edited"),
            display_prompt: None,
            id,
        },
        QueueChange::Remove => Command::RemoveQueued(id),
        QueueChange::SendNow => Command::SteerQueued(id),
        QueueChange::Withdraw => Command::WithdrawMessage {
            expected: id.to_string(),
            id,
        },
    }
}

pub(super) fn set(setting: Setting) -> Command {
    let approve_all = |all| Command::ChangePermissions(PermissionChange::ApproveAll(all));
    let mode = |mode| Command::SetMode {
        mode,
        expected: None,
    };
    match setting {
        Setting::PlanMode => mode(Mode::Plan),
        Setting::InteractiveMode => mode(Mode::Interactive),
        Setting::Model(number) => Command::SetModel(Box::new(ModelChoice {
            model: format!("model-{number}"),
            reasoning_effort: None,
            capabilities: None,
        })),
        Setting::Name => Command::SetName {
            name: "a name".to_owned(),
            by: NamedBy::User,
        },
        Setting::ApproveAll => approve_all(true),
        Setting::AskAgain => approve_all(false),
    }
}

pub(super) fn prepared(messages: &[PendingMessage], ends: Preparation) -> Command {
    let ids = messages.iter().map(|message| message.id.clone());
    match ends {
        Preparation::Fails => Command::PrepareFailed {
            messages: ids.collect(),
            failure: failure(),
        },
        Preparation::Ready => {
            let ready = messages.iter().map(|message| PreparedMessage {
                id: message.id.clone(),
                text: format!("ready: {}", message.prompt),
                attachments: None,
            });
            Command::Prepared(Prepared {
                messages: ready.collect(),
                model: "model".to_owned(),
                reasoning_effort: None,
                system: "the system".to_owned(),
                blocked: Vec::new(),
                context: Vec::new(),
                ended: Vec::new(),
                skills: Vec::new(),
                preloaded: Vec::new(),
            })
        }
    }
}

pub(super) fn replied(turn: &TurnKey, reply: Reply) -> Command {
    let turn = turn.clone();
    let (text, calls) = match reply {
        Reply::Fails => {
            let failure = failure();
            return Command::ModelFailed {
                turn,
                failure,
                lost: None,
            };
        }
        Reply::Says => ("words", Vec::new()),
        Reply::SaysNothing => ("", Vec::new()),
        Reply::Calls(calls) => ("calling", tool_calls(calls)),
    };
    Command::ModelReplied(Box::new(ModelReplied {
        turn,
        message: "message".into(),
        model: "model".to_owned(),
        reply: ModelReply {
            turn: AssistantTurn {
                text: text.to_owned(),
                reasoning: None,
                calls,
            },
            ..ModelReply::default()
        },
        duration_ms: 1,
        first_token_ms: None,
        endpoint: None,
        tool_count: 1,
        initiator: "user",
        nano_usd: 0,
        counted: CountedTokens::default(),
        reported: None,
    }))
}

fn tool_calls(calls: Calls) -> Vec<ToolCall> {
    let id = |number| match calls.ids {
        CallIds::Distinct => format!("call-{number}"),
        CallIds::OtherDistinct => format!("other-{number}"),
        CallIds::AllTheSame => "call-0".to_owned(),
    };
    let call = |number| ToolCall {
        id: ToolCallId::from(id(number)),
        name: "tool".to_owned(),
        arguments: match calls.arguments {
            Arguments::Object => json!({"command": "x", "n": 1.5}),
            Arguments::Null => Value::Null,
            Arguments::Text => json!("not an object"),
        },
    };
    (0..calls.count).map(call).collect()
}

pub(super) fn assessed(turn: &TurnKey, call: &ToolCall, assessment: Assessment) -> Command {
    use Assessment as A;
    let origin = match assessment {
        A::RunsInAClient | A::NeedsPermissionAndRunsInAClient => ToolOrigin::Client,
        _ => ToolOrigin::BuiltIn,
    };
    Command::Assessed(Box::new(Assessed {
        turn: turn.clone(),
        call: call.id.clone(),
        origin,
        need: match assessment {
            A::NoSuchTool => CallNeed::Refused(CallOutcome::failure("failure", "no such tool")),
            A::NeedsNothing | A::RunsInAClient => CallNeed::Nothing,
            A::AsksTheUser => CallNeed::Answer(UserQuestion {
                text: "which?".to_owned(),
                choices: None,
                allow_freeform: true,
            }),
            A::NeedsPermission | A::NeedsPermissionAndNobodyAnswers => {
                CallNeed::Permission(PermissionRequest::Read {
                    managed_approval_required: None,
                    tool_call_id: None,
                    intention: "Read a file".to_owned(),
                    path: "/outside/file".to_owned(),
                    also_named: Vec::new(),
                })
            }
            A::NeedsPermissionAndRunsInAClient => {
                CallNeed::Permission(PermissionRequest::CustomTool {
                    tool_call_id: None,
                    tool_name: call.name.clone(),
                    tool_description: String::new(),
                    args: Some(call.arguments.clone()),
                })
            }
        },
        claim: loopd_kernel::policy::planning::ToolClaim::Nothing,
        ahead: Ahead::Shell,
        can_ask: !matches!(assessment, A::NeedsPermissionAndNobodyAnswers),
        hooks: loopd_kernel::hook::HookVerdict::None,
    }))
}

pub(super) fn finished(turn: &TurnKey, call: &ToolCall, ended: Outcome) -> Command {
    Command::ToolFinished {
        turn: turn.clone(),
        call: call.id.clone(),
        outcome: outcome(ended),
    }
}

pub(super) fn outcome(outcome: Outcome) -> CallOutcome {
    let success = |result| CallOutcome {
        status: CallStatusReport::Success,
        result,
        telemetry: None,
        delivered: Vec::new(),
        skill: None,
        stops: None,
    };
    let text = |content: &str| ToolResult {
        content: content.to_owned(),
        detailed_content: Some("for people".to_owned()),
        ..ToolResult::default()
    };
    let picture = json!({"content": "a picture", "binaryResultsForLlm":
        [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]});
    match outcome {
        Outcome::Text => success(text("a result")),
        Outcome::Nothing => success(text("")),
        Outcome::Picture => success(serde_json::from_value(picture).unwrap()),
        Outcome::Failure => CallOutcome::failure("failure", "it broke"),
        Outcome::PersonSaysNo => CallOutcome::failure(texts::REJECTED_CODE, "a person said no"),
    }
}

pub(super) fn decision(permit: Permit) -> PermissionDecision {
    match permit {
        Permit::Once => PermissionDecision::ApproveOnce {},
        Permit::ForSession => PermissionDecision::ApproveForSession {
            approval: None,
            domain: None,
        },
        Permit::Reject => PermissionDecision::Reject { feedback: None },
        Permit::UserNotAvailable => PermissionDecision::UserNotAvailable {},
        Permit::Cancelled => PermissionDecision::Cancelled { reason: None },
    }
}

fn failure() -> ModelFailure {
    ModelFailure {
        kind: "network".to_owned(),
        code: None,
        message: "gone".to_owned(),
        status: None,
        provider_call_id: None,
        model: None,
        retry_after_seconds: None,
    }
}
