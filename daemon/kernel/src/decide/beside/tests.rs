//! Titles by a model: when one is asked for, and when it counts.

use crate::command::Command;
use crate::decide::tests::prelude::*;
use serde_json::json;

fn titled() -> Command {
    Command::Titled {
        was: "title".to_owned(),
        title: "Better words".to_owned(),
    }
}

#[test]
fn the_title_of_a_model_takes_the_place_of_the_first_words() {
    check(
        &idle(),
        titled,
        "
        store loopd.named name=\"Better words\" by=auto
        tell session.title_changed title=\"Better words\"
        now idle
        ",
    );
}

#[test]
fn a_name_that_was_given_meanwhile_stays() {
    for (name, by) in [("mine", "user"), ("title", "user"), ("other", "auto")] {
        let given = idle().and(event("loopd.named", json!({ "name": name, "by": by })));
        ignores(&given, titled);
    }
}

#[test]
fn a_title_is_wanted_once_and_only_where_a_model_makes_titles() {
    let unnamed = || {
        nothing()
            .and(queued("m1"))
            .and(taken(&["m1"]))
            .making_titles()
    };
    check(
        &unnamed(),
        || prepared(&["m1"]),
        "
        store session.model_change newModel=gpt
        store loopd.named name=hello by=auto
        tell session.title_changed title=hello
        do make title \"hello\" of \"hello\"
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
    let decided = crate::decide::tests::decided(&preparing().making_titles(), prepared(&["m1"]));
    assert!(!format!("{decided:?}").contains("MakeTitle"));
}
