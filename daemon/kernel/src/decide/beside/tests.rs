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
