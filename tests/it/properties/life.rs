//! Random lives. Most of a life consists of episodes, in which one thing leads to another, because
//! actions that are drawn one by one seldom meet what they need. The rest are single actions of
//! any kind, which disturb the episodes.

use loopd_kernel::command::{CommandRunner, SendPlace};
use loopd_proto::event::task::TaskOutcome;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::action::{
    Action, AfterCommand, Arguments, Assessment, CallIds, Calls, Delivery, Nth, Outcome, Ownership,
    PendingWork, Permit, Pick, Preparation, QueueChange, Reply, SentId, Setting, Shell, Start,
    Subagent, Task,
};

/// How many episodes and single actions a life has at most.
const STEPS: usize = 100;

/// Any life. Shrinking leaves out steps first, then actions of an episode.
pub(super) fn life() -> impl Strategy<Value = Vec<Action>> {
    let single = prop_oneof![
        20 => report(),
        7 => answer(),
        9 => request(),
        5 => end(),
        3 => task(),
    ];
    let step = prop_oneof![
        18 => single.prop_map(|action| vec![action]),
        4 => message(),
        12 => call(),
        2 => agent(),
    ];
    vec(step, 0..STEPS).prop_map(|steps| steps.concat())
}

/// Most of the actions of an episode, in their order.
fn most(episode: Vec<BoxedStrategy<Action>>) -> impl Strategy<Value = Vec<Action>> {
    let often: Vec<_> = episode.into_iter().map(|it| weighted(0.8, it)).collect();
    often.prop_map(|actions| actions.into_iter().flatten().collect())
}

/// A message comes and the model replies.
fn message() -> impl Strategy<Value = Vec<Action>> {
    most(vec![send().boxed(), preparation().boxed(), reply().boxed()])
}

/// A call is assessed, allowed and run, and the model hears of it.
fn call() -> impl Strategy<Value = Vec<Action>> {
    most(vec![
        assessed().boxed(),
        permission().boxed(),
        ran().boxed(),
        answer().boxed(),
        reply().boxed(),
    ])
}

/// An agent works in the background and the model is woken.
fn agent() -> impl Strategy<Value = Vec<Action>> {
    let start =
        (0..3_u8).prop_map(|number| Action::SubagentStarts(Subagent(number), Start::InBackground));
    let answers = (0..3_u8)
        .prop_map(|number| Action::SubagentAnswers(Subagent(number), Delivery::ByNotification));
    most(vec![
        start.boxed(),
        answers.boxed(),
        preparation().boxed(),
        reply().boxed(),
    ])
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        12 => Just(Pick::Newest),
        3 => (0..8_u8).prop_map(Pick::Earlier),
        1 => (0..8_u8).prop_map(Pick::Again),
    ]
}

fn nth() -> impl Strategy<Value = Nth> {
    (0..4_u8).prop_map(Nth)
}

fn send() -> impl Strategy<Value = Action> {
    let place = select(vec![
        SendPlace::Enqueue,
        SendPlace::Prepend,
        SendPlace::Immediate,
    ]);
    let id = prop_oneof![
        2 => Just(SentId::None),
        2 => Just(SentId::Own),
        1 => Just(SentId::Repeated),
    ];
    (place, id).prop_map(|(place, id)| Action::Send(place, id))
}

fn preparation() -> impl Strategy<Value = Action> {
    let ends = prop_oneof![15 => Just(Preparation::Ready), 1 => Just(Preparation::Fails)];
    (pick(), ends).prop_map(|(pick, ends)| Action::PreparationEnds(pick, ends))
}

fn reply() -> impl Strategy<Value = Action> {
    let ids = select(vec![
        CallIds::Distinct,
        CallIds::OtherDistinct,
        CallIds::AllTheSame,
    ]);
    let arguments = select(vec![Arguments::Object, Arguments::Null, Arguments::Text]);
    let calls = (1..=3_u8, ids, arguments).prop_map(|(count, ids, arguments)| {
        Reply::Calls(Calls {
            count,
            ids,
            arguments,
        })
    });
    let reply = prop_oneof![
        3 => Just(Reply::Says),
        1 => Just(Reply::SaysNothing),
        11 => calls,
        1 => Just(Reply::Fails),
    ];
    (pick(), reply).prop_map(|(pick, reply)| Action::ModelReplies(pick, reply))
}

fn assessed() -> impl Strategy<Value = Action> {
    let assessment = prop_oneof![
        1 => Just(Assessment::NoSuchTool),
        2 => Just(Assessment::NeedsNothing),
        2 => Just(Assessment::RunsInAClient),
        2 => Just(Assessment::AsksTheUser),
        3 => Just(Assessment::NeedsPermission),
        1 => Just(Assessment::NeedsPermissionAndRunsInAClient),
        1 => Just(Assessment::NeedsPermissionAndNobodyAnswers),
    ];
    (pick(), assessment).prop_map(|(pick, assessment)| Action::CallIsAssessed(pick, assessment))
}

fn outcome() -> impl Strategy<Value = Outcome> {
    select(vec![
        Outcome::Text,
        Outcome::Nothing,
        Outcome::Picture,
        Outcome::Failure,
        Outcome::PersonSaysNo,
    ])
}

fn ran() -> BoxedStrategy<Action> {
    (pick(), outcome())
        .prop_map(|(pick, outcome)| Action::ToolFinishes(pick, outcome))
        .boxed()
}

/// Work reports.
fn report() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => preparation(),
        3 => reply(),
        4 => assessed(),
        4 => ran(),
        2 => pick().prop_map(Action::GraceEnds),
    ]
}

fn permission() -> impl Strategy<Value = Action> {
    let permit = select(vec![
        Permit::Once,
        Permit::Once,
        Permit::ForSession,
        Permit::Reject,
        Permit::UserNotAvailable,
        Permit::Cancelled,
    ]);
    (nth(), permit).prop_map(|(nth, permit)| Action::ClientDecidesPermission(nth, permit))
}

fn answer() -> BoxedStrategy<Action> {
    let after = select(vec![AfterCommand::GoOn, AfterCommand::Stop]);
    prop_oneof![
        3 => permission(),
        3 => (nth(), outcome()).prop_map(|(nth, outcome)| Action::ClientFinishesCall(nth, outcome)),
        2 => nth().prop_map(Action::UserAnswers),
        1 => nth().prop_map(Action::FormIsFilledIn),
        2 => after.prop_map(Action::SlashCommandIsHandled),
        1 => Just(Action::ClientAnswersUnknownRequest),
    ]
    .boxed()
}

/// A client asks for something.
fn request() -> impl Strategy<Value = Action> {
    let setting = select(vec![
        Setting::PlanMode,
        Setting::InteractiveMode,
        Setting::Model(0),
        Setting::Model(1),
        Setting::Name,
        Setting::ApproveAll,
        Setting::AskAgain,
    ]);
    let runner = select(vec![CommandRunner::Clients, CommandRunner::Daemon]);
    let nth = || (0..4_u8).prop_map(Nth);
    let change = select(vec![
        QueueChange::Move,
        QueueChange::Edit,
        QueueChange::Remove,
        QueueChange::SendNow,
        QueueChange::Withdraw,
    ]);
    prop_oneof![
        4 => send(),
        3 => runner.prop_map(Action::EnqueueSlashCommand),
        1 => select(vec![Action::ClearQueue, Action::RemoveLastQueued]),
        2 => select(vec![Action::Clear, Action::ClearFromCall, Action::ClearFromCall]),
        2 => (nth(), change).prop_map(|(nth, change)| Action::ChangeQueue(nth, change)),
        1 => nth().prop_map(Action::ClientAnswersLate),
        2 => Just(Action::FormIsShown),
        1 => setting.prop_map(Action::Set),
    ]
}

/// Something stops, or goes on after a stop.
fn end() -> impl Strategy<Value = Action> {
    let pending = || select(vec![PendingWork::Continue, PendingWork::Close]);
    prop_oneof![
        2 => Just(Action::Abort),
        2 => Just(Action::ClientAborts),
        1 => Just(Action::ClientInterruptsLast),
        2 => pending().prop_map(Action::ClientResumes),
        1 => Just(Action::Suspend),
        1 => pending().prop_map(Action::ShutdownAndResume),
        2 => Just(Action::Kill),
        1 => Just(Action::ClientsLeave),
        3 => Just(Action::ClientAttaches),
    ]
}

/// Something happens in the background.
fn task() -> impl Strategy<Value = Action> {
    let shell = || (0..3_u8).prop_map(Shell);
    let agent = || (0..3_u8).prop_map(Subagent);
    let ownership = select(vec![Ownership::Attached, Ownership::Detached]);
    let start = select(vec![Start::InBackground, Start::ByCall, Start::ByClient]);
    let delivery = || select(vec![Delivery::ByNotification, Delivery::ByOtherMeans]);
    let outcome = select(vec![
        TaskOutcome::Completed,
        TaskOutcome::Failed,
        TaskOutcome::Cancelled,
    ]);
    let task = || {
        let of_shell = (0..3_u8).prop_map(Task::Shell);
        prop_oneof![of_shell, (0..3_u8).prop_map(Task::Subagent)]
    };
    prop_oneof![
        2 => (shell(), ownership).prop_map(|(shell, own)| Action::ShellStarts(shell, own)),
        1 => shell().prop_map(Action::ShellEnds),
        4 => (agent(), start).prop_map(|(agent, start)| Action::SubagentStarts(agent, start)),
        1 => agent().prop_map(Action::SubagentGoesToBackground),
        3 => (agent(), delivery()).prop_map(|(agent, how)| Action::SubagentAnswers(agent, how)),
        2 => agent().prop_map(Action::SubagentIsContinued),
        1 => agent().prop_map(Action::SubagentNotes),
        3 => (agent(), outcome, delivery())
            .prop_map(|(agent, outcome, how)| Action::SubagentEnds(agent, outcome, how)),
        1 => task().prop_map(Action::TaskIsDelivered),
        1 => task().prop_map(Action::TaskIsRemoved),
    ]
}
