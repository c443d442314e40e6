//! Random lives of the pure kernel: whatever is asked of a session and in whatever order its work
//! reports back, the conversation stays valid, the log folds to the state, and nothing is lost.
//!
//! A life is a list of named actions. A life that breaks a rule is made shorter as long as it still
//! breaks one, and is then told: each action with the events that followed from it.

mod action;
mod checks;
mod commands;
mod life;
mod reached;
mod story;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use loopd_kernel::command::SendPlace;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};

use action::{Action, Pick, Preparation, SentId};
use checks::{check_cuts, check_log};
use reached::{CONDITIONS, Reached};
use story::Story;
use world::World;

/// How many lives are tried; PROPTEST_CASES asks for more.
fn lives() -> u32 {
    ProptestConfig::default().cases
}

/// Lets one session live and says what broke.
fn live(actions: &[Action], story: &Story, property: impl Fn(World)) -> Result<(), String> {
    let life = || {
        let mut world = World::new(story.clone());
        for action in actions {
            // Checks the state and the decision after every single command.
            world.act(*action);
        }
        property(world);
    };
    catch_unwind(AssertUnwindSafe(life)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic".to_owned())
    })
}

/// Lets many sessions live and tells the shortest life that breaks the property.
fn holds(lives: u32, property: impl Fn(World)) {
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        cases: lives,
        max_shrink_iters: 10_000,
        max_shrink_time: 20_000,
        ..ProptestConfig::default()
    });
    // Only the shortest failure is worth printing.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = runner.run(&life::life(), |actions| {
        live(&actions, &Story::untold(), &property).map_err(TestCaseError::fail)
    });
    let failure = outcome.err().map(|failure| match failure {
        TestError::Fail(_, actions) => {
            let story = Story::told();
            let broken = live(&actions, &story, &property);
            let broken = broken.err().unwrap_or_else(|| "nothing, now".to_owned());
            format!(
                "a life of a session broke a rule:\n{}  => {broken}",
                story.text()
            )
        }
        TestError::Abort(reason) => format!("the lives were not tried: {reason}"),
    });
    std::panic::set_hook(loud);
    if let Some(failure) = failure {
        panic!("{failure}");
    }
}

#[test]
fn any_life_of_a_session_is_valid_and_replays() {
    holds(lives(), |world| {
        check_log(&world);
    });
}

#[test]
fn a_log_that_is_cut_anywhere_recovers() {
    // Each life is cut at every event, which is much more work.
    holds(lives() / 4, |world| {
        check_cuts(&world.log, &world.story);
    });
}

#[test]
fn a_session_can_always_be_brought_to_rest_and_used_again() {
    // The lives themselves are checked by the test above.
    holds(lives() / 2, |mut world| {
        world
            .story
            .instead("the session is brought to rest and used again");
        world.come_to_rest();
        world.finish_a_turn();
    });
}

/// What a late preparation of an aborted message must not do.
#[test]
fn a_late_preparation_does_not_enter_another_message() {
    let mut world = World::new(Story::untold());
    for action in [
        Action::Send(SendPlace::Enqueue, SentId::None),
        Action::Abort,
        Action::Send(SendPlace::Enqueue, SentId::None),
        Action::PreparationEnds(Pick::Earlier(0), Preparation::Ready),
    ] {
        assert!(world.act(action), "{action:?} found nothing to do");
    }
    let texts = world.user_texts();
    assert!(
        !texts.contains(&"m2".to_owned()),
        "the second message entered with what was prepared for the first: {texts:?}"
    );
}

/// Random lives are worth something only if they get to everything that a session can be in.
#[test]
#[allow(
    clippy::print_stdout,
    reason = "the table is for whoever changes the weights"
)]
fn random_lives_get_to_every_condition_of_a_session() {
    let mut runner = TestRunner::deterministic();
    let mut reached = Reached::default();
    for _ in 0..lives() / 4 {
        let actions = life::life().new_tree(&mut runner).unwrap().current();
        let mut world = World::new(Story::untold());
        reached.begin_life();
        for action in actions {
            if world.act(action) {
                reached.count(&world.state);
            }
        }
    }
    for condition in CONDITIONS {
        assert!(
            reached.lives(condition) > 0,
            "no life got to \"{condition}\":\n{reached}"
        );
    }
    println!("{reached}");
}
