//! Tables of the rules: given a state, when a command comes, then these steps follow.
//!
//! A given is a list of events, folded like a log. The result is written as text: one line for the
//! answer, one per step, and a last one for the state afterwards. New ids read `#1`, `#2`; texts of
//! the kernel read as the names of their constants.
//!
//! The tables use only the functions of `given` and `when`, so that a change of types stays in
//! there.

pub(crate) mod given;
mod invariants;
mod show;
pub(crate) mod when;

use loopd_proto::event::{Durable, Head, read_durable, write};
use loopd_proto::time::Timestamp;
use ulid::Ulid;

use self::given::Given;
use crate::apply::apply;
use crate::command::{Command, DecideEnv, Decision, Refusal, Step};
use crate::decide::decide;
use crate::hook::HookNeeds;
use crate::state::State;

/// The functions that tables use.
pub(crate) mod prelude {
    pub(crate) use super::given::*;
    pub(crate) use super::when::*;
    pub(crate) use super::{check, declines, ignores, is_refused};
}

/// The time of the command. All events before it are from time 0.
const NOW: Timestamp = Timestamp(2_000);

/// Decides the command and compares the result with the table. Then folds the result and checks the
/// invariants.
#[track_caller]
pub(crate) fn check<C: Into<Command>>(given: &Given, when: impl Fn() -> C, then: &str) {
    let before = given.state();
    invariants::of_state(&before);
    let decided = decide_once(given, &before, when().into());
    let again = decide_once(given, &before, when().into());
    assert_eq!(
        format!("{decided:?}"),
        format!("{again:?}"),
        "the same command on the same state has to be decided alike"
    );
    let (mut shown, after) = match &decided {
        Err(refusal) => (vec![format!("refused {refusal}")], before.clone()),
        Ok(decision) => (show::decision(decision), fold(&before, decision)),
    };
    shown.push(show::state(&after));
    let expected: Vec<&str> = then.lines().map(str::trim).collect();
    let expected: Vec<&str> = expected.into_iter().filter(|it| !it.is_empty()).collect();
    assert!(
        shown == expected,
        "the table and the rule differ\n\ngiven\n{}\n\nwhen\n    {:?}\n\nthen, by the table (-) and by the rule (+)\n{}\n",
        show::given(given),
        when().into(),
        show::difference(&expected, &shown),
    );
    if let Ok(decision) = &decided {
        invariants::of_decision(&before, decision, &after);
    }
    invariants::of_state(&after);
}

/// The command changes nothing, sends nothing and starts nothing.
#[track_caller]
pub(crate) fn ignores<C: Into<Command>>(given: &Given, when: impl Fn() -> C) {
    check(given, when, &show::state(&given.state()));
}

/// The same, and the answer to the sender says so.
#[track_caller]
pub(crate) fn declines<C: Into<Command>>(given: &Given, when: impl Fn() -> C) {
    let then = format!("answer no\n{}", show::state(&given.state()));
    check(given, when, &then);
}

/// Decides the command, which must not be refused.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
pub(crate) fn decided(given: &Given, command: impl Into<Command>) -> Decision {
    decide_once(given, &given.state(), command.into()).unwrap()
}

/// The command is refused for this reason and changes nothing.
#[track_caller]
pub(crate) fn is_refused<C: Into<Command>>(given: &Given, when: impl Fn() -> C, why: &str) {
    let then = format!("refused {why}\n{}", show::state(&given.state()));
    check(given, when, &then);
}

fn decide_once(given: &Given, state: &State, command: Command) -> Result<Decision, Refusal> {
    let mut made = 0;
    let mut ids = || {
        made += 1;
        Ulid(made)
    };
    let mut env = DecideEnv {
        now: NOW,
        attended: given.attended,
        bypass: given.bypass,
        settings: None,
        home: "/home/user/.loopd",
        mcp_tool: &|_| None,
        tool_origin: &|name| {
            use crate::tool_call::ToolOrigin;
            if name == crate::autopilot::TASK_COMPLETE {
                return given.has_task_complete.then_some(ToolOrigin::BuiltIn);
            }
            given.has_client_tools.then_some(ToolOrigin::Client)
        },
        ends_turn: &|_| given.tools_end_turns,
        inherited: &|| given.inherited.clone(),
        can_switch_model: given.can_switch_model,
        planning: crate::policy::planning::Planning::No,
        plan_file: &|| "/home/plan.md".to_owned(),
        runs_command: &|_| given.has_commands,
        top: None,
        fallback_models: &given.fallback_models,
        provider_waits: crate::decide::provider_wait::ProviderWaits {
            within_call: 60,
            longest: given.longest_wait,
        },
        fleet_workers: 4,
        fleet_todos: 1_000,
        most_wakes: given.most_wakes,
        makes_titles: given.makes_titles,
        hooks: HookNeeds {
            guard: &|_| given.guarded,
            permission: &|_| given.guarded,
            prompts: &|| given.guarded,
            stop: given.guarded,
            most_stop_blocks: 2,
            answering: &crate::guards::ClientGuards::default,
        },
        next_request: &|| Given::request(state),
        ids: &mut ids,
    };
    decide(state, command, &mut env)
}

/// The state after the decided events. It is the same if they were written and read in between.
fn fold(before: &State, decision: &Decision) -> State {
    let mut after = before.clone();
    let mut replayed = before.clone();
    for step in &decision.steps {
        if let Step::Store(event) = step {
            let head = head(&after, NOW);
            apply(&mut after, &head, event);
            let (head, event) = through_json(&head, event);
            apply(&mut replayed, &head, &event);
        }
    }
    assert_eq!(
        after, replayed,
        "the log gives another state than the events"
    );
    after
}

fn head(state: &State, timestamp: Timestamp) -> Head {
    Head {
        id: Ulid(1_000_000 + u128::from(state.seq.0)).into(),
        timestamp,
        parent_id: state.tip.clone(),
        agent_id: None,
        ephemeral: None,
    }
}

#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
fn through_json(head: &Head, event: &Durable) -> (Head, Durable) {
    let line = write(head, event).unwrap();
    let read = read_durable(&line).unwrap();
    assert_eq!(read, (head.clone(), event.clone()), "{line}");
    read
}
