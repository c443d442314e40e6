//! Random lives of the pure kernel: whatever is asked of a session and in whatever order its work
//! reports back, the conversation stays valid, the log folds to the state, and nothing is lost.

mod checks;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use checks::{check_cuts, check_log};
use world::{Action, World};

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = (0..Action::KINDS, any::<u8>(), any::<u8>());
    let action = action.prop_map(|(kind, which, how)| Action { kind, which, how });
    proptest::collection::vec(action, 0..120)
}

/// How many lives are tried; PROPTEST_CASES asks for more.
fn lives() -> u32 {
    ProptestConfig::default().cases
}

/// Lets many sessions live and shows the shortest life that breaks the property.
fn holds(lives: u32, property: impl Fn(World)) {
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        cases: lives,
        ..ProptestConfig::default()
    });
    // Only the shortest failure is worth printing.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = runner.run(&actions(), |actions| {
        let live = || {
            let mut world = World::new();
            for action in actions {
                // Checks the conversation and the end of the loop after every single command.
                world.act(action);
            }
            property(world);
        };
        catch_unwind(AssertUnwindSafe(live)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "a panic".to_owned()))
        })
    });
    std::panic::set_hook(loud);
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn any_life_of_a_session_is_valid_and_replays() {
    holds(lives(), |world| {
        world.check_replay();
        check_log(&world);
    });
}

#[test]
fn a_log_that_is_cut_anywhere_recovers() {
    // Each life is cut at every event, which is much more work.
    holds(lives() / 4, |world| {
        check_cuts(&world.log);
    });
}

#[test]
fn a_session_can_always_be_brought_to_rest_and_used_again() {
    holds(lives(), |mut world| {
        world.come_to_rest();
        world.finish_a_turn();
        world.check_replay();
    });
}

/// What a late preparation of an aborted message must not do.
#[test]
fn a_late_preparation_does_not_enter_another_message() {
    let mut world = World::new();
    let first = world.send("first");
    world.give(loopd_kernel::command::Command::Abort);
    world.send("second");
    world.give(World::prepared(&first));
    let texts = world.user_texts();
    assert!(
        !texts.contains(&"second".to_owned()),
        "the second message entered with what was prepared for the first: {texts:?}"
    );
}
