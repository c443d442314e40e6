//! What has to hold after every single command.

use std::collections::BTreeSet;

use loopd_kernel::command::{Decision, Effect, Step};
use loopd_kernel::context;
use loopd_kernel::state::{Phase, Stage, State};
use loopd_kernel::tool_call::CallStage;
use loopd_proto::event::fact::QueueItem;
use loopd_tests::validator::{as_chat, check_conversation};

/// The conversation is valid, which includes one result for each call, and a message waits in one place.
pub(in crate::properties) fn check_state(state: &State) {
    let conversation = as_chat(&context::messages(state));
    if let Err(wrong) = check_conversation(&conversation) {
        panic!("the conversation is not valid: {wrong}");
    }
    let mut seen = BTreeSet::new();
    for id in waiting(state) {
        assert!(seen.insert(id.clone()), "the message {id} waits twice");
    }
}

/// A question to the user is open as long as its call waits for it.
pub(in crate::properties) fn check_questions(state: &State) {
    let asking = state.calls().filter_map(|call| match &call.stage {
        CallStage::UserInput { request } => Some(request),
        _ => None,
    });
    let open = state.questions.user_inputs();
    let (asking, open): (BTreeSet<_>, BTreeSet<_>) = (
        asking.collect(),
        open.map(|asked| &asked.request_id).collect(),
    );
    assert_eq!(asking, open, "calls that ask the user, and open questions");
}

/// The ids of the messages that wait, in the queue, to join the turn, or being prepared.
pub(super) fn waiting(state: &State) -> Vec<String> {
    let queued = state.queue.iter().map(QueueItem::id);
    let joining = state.steering.iter().map(|message| &message.id);
    let prepared = match &state.phase {
        Phase::Preparing(preparing) => preparing.messages.as_slice(),
        Phase::Idle | Phase::Commanding(_) | Phase::Turn(_) | Phase::Rewinding(_) => &[],
    };
    let prepared = prepared.iter().map(|message| &message.id);
    let all = queued.chain(joining).chain(prepared);
    all.map(ToString::to_string).collect()
}

/// The state after the decision waits for what its effects will report.
pub(in crate::properties) fn check_decision(decision: &Decision, after: &State) {
    for step in &decision.steps {
        if let Step::Do(effect) = step {
            let fits = is_awaited(effect, after);
            assert!(fits, "{effect:?} was started in {:#?}", after.phase);
        }
    }
}

fn is_awaited(effect: &Effect, after: &State) -> bool {
    match effect {
        Effect::Prepare { messages } => match &after.phase {
            Phase::Preparing(preparing) => preparing.messages == *messages,
            Phase::Idle | Phase::Commanding(_) | Phase::Turn(_) | Phase::Rewinding(_) => false,
        },
        Effect::CallModel(key) => {
            let turn = after.turn_named(key);
            let is_called = turn.is_some_and(|it| it.stage == Stage::Calling && !it.aborting);
            let last = as_chat(&context::messages(after)).pop();
            let role = last.map(|message| message["role"].clone());
            is_called && role.is_some_and(|role| role == "user" || role == "tool")
        }
        Effect::Assess { turn, call, .. } | Effect::Run { turn, call, .. } => {
            let turn = after.turn_named(turn).filter(|it| !it.aborting);
            let call = turn.and_then(|it| it.call(&call.id));
            call.is_some_and(|it| matches!(it.stage, CallStage::Intended | CallStage::Decided))
        }
        Effect::StartGrace(key) => after.turn_named(key).is_some_and(|it| it.aborting),
        Effect::AskClients(asked) => after.questions.get(asked.request_id()).is_some(),
        Effect::Withdraw(request)
        | Effect::Resolve { request, .. }
        | Effect::PartDecided { request, .. } => after.questions.get(request).is_none(),
        // No hooks are in force in these lives.
        Effect::Guard { .. } | Effect::AskHooks(_) | Effect::AskStop(_) => false,
        Effect::AwaitProvider { turn, until } => {
            let turn = after.turn_named(turn);
            turn.is_some_and(|it| it.waits_until() == Some(*until))
        }
        Effect::Summarise(id) => {
            let running = after.compaction.running.as_ref();
            running.is_some_and(|running| running.id == *id)
        }
        Effect::CancelSummary => after.compaction.running.is_none(),
        Effect::KeepOutputs { turn, .. } => {
            let turn = after.turn_named(turn);
            turn.is_some_and(|it| it.stage == Stage::MakingRoom && !it.aborting)
        }
        Effect::RejoinAgent { task, .. } => {
            let task = after.tasks.get(task.as_str());
            task.is_some_and(loopd_kernel::tasks::Task::is_running)
        }
        Effect::RunCommand(command) => {
            matches!(&after.phase, Phase::Commanding(running) if running.request == command.request)
        }
        Effect::RestoreFiles(rewinding) => {
            matches!(&after.phase, Phase::Rewinding(now) if now == rewinding)
        }
        Effect::OpenShellAhead
        | Effect::MakeTitle { .. }
        | Effect::CancelTurn
        | Effect::Remember(..)
        | Effect::GrantAbove(_)
        | Effect::StartWorker(_)
        | Effect::ContinueWorker { .. }
        | Effect::CancelWorkers(_)
        | Effect::CancelAgents => true,
    }
}
