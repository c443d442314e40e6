//! Waits for providers, and other models instead of them.

use loopd_proto::event::Durable;
use serde_json::json;

use crate::command::{Command, ModelFailure};
use crate::decide::tests::prelude::*;

fn failed(kind: &str, retry_after: Option<u64>) -> Command {
    let Command::ModelFailed { turn, failure, .. } = model_failed(0) else {
        unreachable!("it is a failure");
    };
    Command::ModelFailed {
        lost: None,
        turn,
        failure: ModelFailure {
            kind: kind.to_owned(),
            retry_after_seconds: retry_after,
            ..failure
        },
    }
}

fn wait_over(given: &Given) -> Command {
    let turn = given.state().turn().map(|turn| turn.key.clone());
    Command::WaitOver {
        turn: turn.unwrap_or_else(|| unreachable!("there is a turn")),
    }
}

/// A turn that waits until this moment, in milliseconds.
fn waiting(until: &str) -> Given {
    model_called().and(event(
        "loopd.provider_wait",
        json!({"until": until, "errorType": "rate_limit"}),
    ))
}

const FAILS: &str = r#"
    store assistant.turn_end turnId=0
    store session.error KIND code=down of=m1 "no answer"
    store loopd.loop_ended outcome=failed
    tell assistant.idle
    tell session.idle interactive
    now idle
"#;

#[test]
fn a_long_wait_is_stored_and_kept() {
    check(
        &model_called().waiting_up_to(3_600),
        || failed("rate_limit", Some(61)),
        r#"
        tell model.call_failure top_level rate_limit code=down
        store session.warning warningType=provider_wait message="no answer. The turn waits until 1970-01-01T00:01:03.000Z and then goes o…"
        store loopd.provider_wait until=1970-01-01T00:01:03.000Z errorType=rate_limit
        do await provider i/0 until 63000
        now turn i/0 waits until 63000
        "#,
    );
    check(
        &model_called().waiting_up_to(3_600),
        || failed("quota", Some(2)),
        r#"
        tell model.call_failure top_level quota code=down
        store session.warning warningType=provider_wait message="no answer. The turn waits until 1970-01-01T00:00:04.000Z and then goes o…"
        store loopd.provider_wait until=1970-01-01T00:00:04.000Z errorType=quota
        do await provider i/0 until 4000
        now turn i/0 waits until 4000
        "#,
    );
}

#[test]
fn no_turn_waits_without_an_end_or_too_long() {
    for (kind, retry_after, longest) in [
        ("rate_limit", None, 3_600),
        ("rate_limit", Some(60), 3_600),
        ("rate_limit", Some(3_601), 3_600),
        ("rate_limit", Some(61), 0),
        ("quota", None, 3_600),
        ("server", Some(61), 3_600),
    ] {
        let then = format!("tell model.call_failure top_level {kind} code=down{FAILS}");
        check(
            &model_called().waiting_up_to(longest),
            || failed(kind, retry_after),
            &then.replace("KIND", kind),
        );
    }
}

#[test]
fn the_model_is_called_again_after_the_wait() {
    let over = waiting("1970-01-01T00:00:02.000Z");
    check(
        &over,
        || wait_over(&over),
        "
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    let calling = model_called();
    ignores(&calling, || wait_over(&calling));
}

#[test]
fn a_message_that_came_meanwhile_goes_first() {
    let steered = waiting("1970-01-01T00:00:02.000Z").and(steering("m2"));
    check(
        &steered,
        || wait_over(&steered),
        "
        store assistant.turn_end turnId=0
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2] into i/0
        ",
    );
}

#[test]
fn a_wait_survives_a_restart_and_goes_on_with_a_client() {
    let found = waiting("1970-01-01T01:00:00.000Z");
    ignores(&found, || Command::Recover(Vec::new()));
    check(
        &found,
        || Command::TakeUp,
        "
        do await provider i/0 until 3600000
        now turn i/0 waits until 3600000
        ",
    );
}

#[test]
fn an_abort_ends_a_wait() {
    check(
        &waiting("1970-01-01T01:00:00.000Z"),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn the_next_model_of_the_chain_goes_on() {
    check(
        &model_called().falling_back_to(&["small", "other"]),
        || failed("quota", None),
        r#"
        tell model.call_failure top_level quota code=down
        store session.warning warningType=model_fallback message="gpt did not answer: no answer. The turn goes on with small."
        store session.model_change previousModel=gpt newModel=small cause=fallback
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

/// Another model took the place of one that failed.
fn fell_back(from: &str, to: &str) -> Durable {
    event(
        "session.model_change",
        json!({"previousModel": from, "newModel": to, "cause": "fallback"}),
    )
}

#[test]
fn a_chain_ends_when_each_model_has_failed() {
    let then = format!("tell model.call_failure top_level server code=down{FAILS}");
    for chain in [
        &["small", "gpt"][..],
        &["gpt", "small"],
        &["small", "small"],
        &["small", "gpt", "small"],
    ] {
        check(
            &model_called()
                .and(fell_back("gpt", "small"))
                .falling_back_to(chain),
            || failed("server", None),
            &then.replace("KIND", "server"),
        );
    }
}

#[test]
fn a_chain_that_names_the_model_itself_skips_only_that() {
    for chain in [&["small", "gpt"], &["gpt", "small"]] {
        check(
            &model_called().falling_back_to(chain),
            || failed("quota", None),
            r#"
            tell model.call_failure top_level quota code=down
            store session.warning warningType=model_fallback message="gpt did not answer: no answer. The turn goes on with small."
            store session.model_change previousModel=gpt newModel=small cause=fallback
            store assistant.turn_end turnId=0
            store assistant.turn_start i 1
            do call model i/1
            now turn i/1 model called
            "#,
        );
    }
}

#[test]
fn a_mistake_of_ours_is_no_reason_for_another_model() {
    for kind in ["authentication", "query", "context_limit", "session_limits"] {
        let then = format!("tell model.call_failure top_level {kind} code=down{FAILS}");
        let then = if kind == "context_limit" {
            // Nothing can be compacted yet, and the error says so.
            let told =
                "\"no answer (There is nothing in the conversation that a summary could rep…\"";
            then.replace("\"no answer\"", told)
        } else {
            then
        };
        check(
            &model_called().falling_back_to(&["small"]),
            || failed(kind, None),
            &then.replace("KIND", kind),
        );
    }
}
