//! Another model after a rate limit.

use loopd_proto::event::ask::AutoModeSwitch;

use crate::command::Command;
use crate::decide::tests::prelude::*;

fn limited() -> Command {
    rate_limited(0, "user_weekly_rate_limited")
}

fn asked() -> Given {
    model_called().and(event(
        "loopd.asked",
        serde_json::json!({"kind": "automodeswitch", "requestId": "r", "errorCode": "user_weekly_rate_limited"}),
    ))
}

fn answer(response: AutoModeSwitch) -> Command {
    Command::AnswerAutoModeSwitch {
        request: "r".into(),
        response,
    }
}

#[test]
fn people_are_asked_for_another_model() {
    check(
        &model_called().asking_for_models(),
        limited,
        r#"
        tell model.call_failure top_level rate_limit code=user_weekly_rate_limited
        store session.error rate_limit code=user_weekly_rate_limited of=m1 "no answer"
        store loopd.asked kind=automodeswitch requestId=#1 errorCode=user_weekly_rate_limited retryAfterSeconds=1
        tell auto_mode_switch.requested requestId=#1 errorCode=user_weekly_rate_limited retryAfterSeconds=1
        do ask clients #1
        now turn i/0 model called
        "#,
    );
}

#[test]
fn nobody_is_asked_who_cannot_answer_or_about_another_limit() {
    check(
        &model_called(),
        limited,
        r#"
        tell model.call_failure top_level rate_limit code=user_weekly_rate_limited
        store assistant.turn_end turnId=0
        store session.error rate_limit code=user_weekly_rate_limited of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
    check(
        &model_called().asking_for_models(),
        || rate_limited(0, "too_many_requests"),
        r#"
        tell model.call_failure top_level rate_limit code=too_many_requests
        store assistant.turn_end turnId=0
        store session.error rate_limit code=too_many_requests of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn the_answer_decides_how_the_turn_goes_on() {
    check(
        &asked(),
        || answer(AutoModeSwitch::Yes),
        "
        answer yes
        store loopd.answered requestId=r
        tell auto_mode_switch.completed requestId=r response=yes
        do withdraw r
        store session.model_change previousModel=gpt newModel=auto cause=rate_limit_auto_switch
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &asked(),
        || answer(AutoModeSwitch::No),
        "
        answer yes
        store loopd.answered requestId=r
        tell auto_mode_switch.completed requestId=r response=no
        do withdraw r
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

#[test]
fn an_abort_closes_the_question() {
    check(
        &asked(),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        do withdraw r
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}
