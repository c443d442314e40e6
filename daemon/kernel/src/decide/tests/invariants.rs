//! What holds for every state and every decision, whatever the command was.

use std::collections::{BTreeMap, BTreeSet};

use loopd_proto::event::fact::QueueItem;
use loopd_proto::event::{Durable, Ephemeral};

use crate::command::{Decision, Effect, Step};
use crate::history::Entry;
use crate::questions::Asks;
use crate::state::{Phase, Stage, State, Turn};
use crate::tasks::Task;
use crate::tool_call::CallStage;

pub(super) fn of_state(state: &State) {
    // A message waits in one place only.
    let mut places: Vec<_> = state.queue.iter().map(QueueItem::id).collect();
    places.extend(state.steering.iter().map(|message| &message.id));
    if let Phase::Preparing(preparing) = &state.phase {
        places.extend(preparing.messages.iter().map(|message| &message.id));
    }
    let distinct: BTreeSet<_> = places.iter().map(|id| id.as_str()).collect();
    assert_eq!(
        distinct.len(),
        places.len(),
        "a message waits twice: {places:?}"
    );

    // A call either has one result, or it is open in the running turn and has none.
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in state.history.iter() {
        if let Entry::Result { call, .. } = entry {
            *results.entry(call.as_str()).or_default() += 1;
        }
    }
    for entry in state.history.iter() {
        let Entry::Assistant(said) = entry else {
            continue;
        };
        for call in &said.calls {
            let open = state
                .calls()
                .any(|it| it.call.id == call.id && it.is_open());
            let found = results.get(call.id.as_str()).copied().unwrap_or_default();
            assert_eq!(found, usize::from(!open), "results of the call {}", call.id);
        }
    }

    // A question is open exactly as long as its call waits for it.
    let waiting = state.calls().filter_map(|call| match &call.stage {
        CallStage::Asking { request } => Some(("permission", request.as_str())),
        CallStage::External { request } => Some(("client tool", request.as_str())),
        CallStage::UserInput { request } => Some(("user input", request.as_str())),
        CallStage::Guarding { request, .. } => Some(("guard", request.as_str())),
        CallStage::Requested
        | CallStage::Intended
        | CallStage::Decided
        | CallStage::Recorded { .. } => None,
    });
    let asked = state.questions.iter().filter_map(|question| {
        assert!(question.seq <= state.seq, "{question:?} is not in the log");
        // No call waits for a part of a slash command.
        let mut parts = state.questions.parts();
        let is_part = parts.any(|(request, _)| *request == question.request);
        let kind = match question.asks {
            Asks::Permission(_) if is_part => return None,
            Asks::Permission(_) => "permission",
            Asks::ClientTool(_) => "client tool",
            Asks::UserInput(_) | Asks::ExitPlanMode(_) => "user input",
            Asks::Guard => "guard",
            Asks::Elicitation(_) | Asks::AutoModeSwitch(_) => return None,
        };
        Some((kind, question.request.as_str()))
    });
    let (waiting, asked): (BTreeSet<_>, BTreeSet<_>) = (waiting.collect(), asked.collect());
    assert_eq!(
        waiting, asked,
        "calls that wait for clients, and open questions"
    );
}

pub(super) fn of_decision(before: &State, decision: &Decision, after: &State) {
    let stored = decision
        .steps
        .iter()
        .filter(|step| matches!(step, Step::Store(_)))
        .count();
    assert_eq!(
        after.seq.0,
        before.seq.0 + stored as u64,
        "every event is folded"
    );
    for step in &decision.steps {
        match step {
            Step::Do(effect) => fits(effect, after),
            Step::Tell(Ephemeral::SessionIdle(_)) => {
                assert!(!after.is_busy(), "a session that works is not idle");
            }
            Step::Tell(_) => {}
            Step::Store(event) => {
                let start = matches!(event, Durable::SessionStart(_));
                assert!(!start || before.seq.0 == 0, "a log begins once");
            }
        }
    }
    let ends = |step: &&Step| matches!(step, Step::Tell(Ephemeral::SessionIdle(_)));
    assert!(
        decision.steps.iter().filter(ends).count() <= 1,
        "idle is told once"
    );
    // Everything that the loop waits for was started, or was under way before.
    let moved = before.phase != after.phase;
    let starts = |wanted: &dyn Fn(&Effect) -> bool| {
        let mut steps = decision.steps.iter();
        steps.any(|step| matches!(step, Step::Do(effect) if wanted(effect)))
    };
    match &after.phase {
        Phase::Preparing(_) if moved => {
            let cut = matches!(before.phase, Phase::Preparing(_));
            assert!(
                cut || starts(&|it| matches!(it, Effect::Prepare { .. })),
                "nobody prepares"
            );
        }
        Phase::Turn(turn) if moved && matches!(turn.stage, Stage::Calling) => {
            assert!(
                turn.aborting
                    || after.questions.switches().next().is_some()
                    || starts(&|it| matches!(it, Effect::CallModel(_))),
                "nobody calls the model"
            );
        }
        Phase::Idle
        | Phase::Commanding(_)
        | Phase::Preparing(_)
        | Phase::Turn(_)
        | Phase::Rewinding(_) => {}
    }
}

/// Whether the state after the decision waits for the report of the effect.
fn fits(effect: &Effect, after: &State) {
    match effect {
        Effect::Prepare { messages } => {
            let Phase::Preparing(preparing) = &after.phase else {
                unreachable!("{effect:?} in {:?}", after.phase);
            };
            assert_eq!(
                &preparing.messages, messages,
                "what is prepared is what waits for it"
            );
        }
        Effect::CallModel(key) => {
            let turn = after.turn_named(key);
            assert!(
                turn.is_some_and(|it| it.stage == Stage::Calling && !it.aborting),
                "{effect:?}"
            );
        }
        Effect::AwaitProvider { turn, until } => {
            let turn = after.turn_named(turn);
            assert!(
                turn.is_some_and(|it| it.waits_until() == Some(*until)),
                "{effect:?}"
            );
        }
        Effect::KeepOutputs { turn, .. } => {
            let turn = after.turn_named(turn);
            assert!(
                turn.is_some_and(|it| it.stage == Stage::MakingRoom && !it.aborting),
                "{effect:?}"
            );
        }
        Effect::Guard { turn, call } => {
            let running = after.turn_named(turn).filter(|it| !it.aborting);
            let call = running.and_then(|it| it.call(&call.id));
            let waits = |stage: &CallStage| stage.expects(crate::tool_call::CallReport::Guarded);
            assert!(call.is_some_and(|it| waits(&it.stage)), "{effect:?}");
        }
        Effect::AskHooks(asked) => {
            let running = after.turn_named(&asked.turn).filter(|it| !it.aborting);
            let call = running.and_then(|it| it.call(&asked.call));
            assert!(
                call.is_some_and(|it| it.stage == CallStage::Intended),
                "{effect:?}"
            );
        }
        Effect::AskStop(key) => {
            assert!(
                after.turn_named(key).is_some_and(Turn::has_answered),
                "{effect:?}"
            );
        }
        Effect::Assess { turn, call, .. } | Effect::Run { turn, call, .. } => {
            let running = after.turn_named(turn).filter(|it| !it.aborting);
            let call = running.and_then(|it| it.call(&call.id));
            let intended =
                |stage: &CallStage| matches!(stage, CallStage::Intended | CallStage::Decided);
            assert!(call.is_some_and(|it| intended(&it.stage)), "{effect:?}");
        }
        Effect::RejoinAgent { task, .. } => {
            let task = after.tasks.get(task.as_str());
            assert!(task.is_some_and(Task::is_running), "{effect:?}");
        }
        Effect::StartGrace(key) => {
            assert!(
                after.turn_named(key).is_some_and(|it| it.aborting),
                "{effect:?}"
            );
        }
        Effect::AskClients(asked) => {
            assert!(
                after.questions.get(asked.request_id()).is_some(),
                "{effect:?}"
            );
        }
        Effect::Withdraw(request)
        | Effect::Resolve { request, .. }
        | Effect::PartDecided { request, .. } => {
            assert!(after.questions.get(request).is_none(), "{effect:?}");
        }
        Effect::Summarise(id) => {
            let running = after.compaction.running.as_ref();
            assert!(running.is_some_and(|it| it.id == *id), "{effect:?}");
        }
        Effect::CancelSummary => assert!(after.compaction.running.is_none(), "{effect:?}"),
        Effect::OpenShellAhead
        | Effect::MakeTitle { .. }
        | Effect::CancelTurn
        | Effect::Remember(..)
        | Effect::GrantAbove(_)
        | Effect::StartWorker(_)
        | Effect::ContinueWorker { .. }
        | Effect::CancelWorkers(_)
        | Effect::CancelAgents => {}
        Effect::RunCommand(command) => {
            let Phase::Commanding(running) = &after.phase else {
                unreachable!("{effect:?} in {:?}", after.phase);
            };
            assert_eq!(running.request, command.request);
        }
        Effect::RestoreFiles(rewinding) => {
            let waits = matches!(&after.phase, Phase::Rewinding(now) if now == rewinding);
            assert!(waits, "{effect:?}");
        }
    }
}
