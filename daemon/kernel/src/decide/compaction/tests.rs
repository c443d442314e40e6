//! Compaction: when it begins, what it comes to, and what keeps it from going on for ever.

use loopd_proto::event::Durable;
use serde_json::json;

use crate::command::{
    Command, CompactOrder, CompactionFailure, RoomNeed, SideUsage, StoppedCompactions, Summarised,
    Summary,
};
use crate::context_window::RoomRules;
use crate::decide::tests::prelude::*;
use crate::history::Entry;
use crate::model::Usage;
use crate::texts::compaction::{Surviving, SurvivingSkill};

/// The next call of the turn i/1, with so many tokens, to a model that takes 10,000.
fn call_with(given: &Given, tokens: u64) -> Command {
    let mut request = Given::request(&given.state());
    request.size.conversation = tokens - 1_000;
    Command::MakeRoom(Box::new(RoomNeed {
        turn: turn(1),
        request,
    }))
}

fn said(text: &str) -> Durable {
    event(
        "assistant.message",
        json!({"messageId": "said", "content": text, "toolRequests": []}),
    )
}

/// The model has answered with so many tokens and is called again.
fn talked(tokens: usize) -> Given {
    preparing()
        .and(event(
            "user.message",
            json!({"messageId": "m1", "content": "build it"}),
        ))
        .and(turn_started(0))
        .and(said(&" word".repeat(tokens)))
        .and(turn_started(1))
}

fn compacting(trigger: &str) -> Durable {
    event(
        "loopd.compacting",
        json!({"id": "c", "through": THROUGH, "trigger": trigger}),
    )
}

/// The position of the answer in `talked`.
const THROUGH: u64 = 8;

fn waits() -> Durable {
    event("loopd.making_room", json!({}))
}

fn ended(success: bool) -> Durable {
    event("session.compaction_complete", json!({"success": success}))
}

fn summary(text: &str) -> Command {
    Command::Summarised(Box::new(Summarised {
        id: "c".into(),
        outcome: Ok(Summary {
            text: text.to_owned(),
            left_out: 0,
            provider_call_id: None,
            disk: Surviving::default(),
            system: None,
        }),
        spent: Vec::new(),
        ended: Vec::new(),
    }))
}

fn failure() -> Command {
    Command::Summarised(Box::new(Summarised {
        id: "c".into(),
        outcome: Err(CompactionFailure::new("no")),
        spent: Vec::new(),
        ended: Vec::new(),
    }))
}

#[test]
fn the_answer_is_where_the_tables_say() {
    let state = talked(10).state();
    assert_eq!(state.compactable(10_000).map(|seq| seq.0), Some(THROUGH));
}

#[test]
fn a_large_request_is_compacted_beside_the_call() {
    let given = talked(3_000);
    check(
        &given,
        || call_with(&talked(3_000), 8_100),
        "
        store session.compaction_start threshold tokens=8100
        store loopd.compacting #1 8 threshold
        do summarise #1
        do call model i/1
        now turn i/1 model called
        ",
    );
    // One at a time.
    check(
        &talked(3_000).and(compacting("threshold")),
        || call_with(&talked(3_000), 8_100),
        "
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_request_that_hardly_fits_waits_for_the_compaction() {
    check(
        &talked(3_000),
        || call_with(&talked(3_000), 9_600),
        "
        store session.compaction_start threshold tokens=9600
        store loopd.compacting #1 8 threshold
        do summarise #1
        store loopd.making_room
        now turn i/1 makes room
        ",
    );
    check(
        &talked(3_000).and(compacting("threshold")),
        || call_with(&talked(3_000), 9_600),
        "
        store loopd.making_room
        now turn i/1 makes room
        ",
    );
}

#[test]
fn a_session_that_wants_no_compactions_has_none() {
    let mut request = Given::request(&talked(3_000).state());
    request.size.conversation = 8_600;
    request.rules = RoomRules {
        enabled: false,
        ..RoomRules::default()
    };
    check(
        &talked(3_000),
        || {
            Command::MakeRoom(Box::new(RoomNeed {
                turn: turn(1),
                request: request.clone(),
            }))
        },
        "
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn the_overflow_rule_makes_the_loop_wait_however_small_the_estimate_is() {
    let mut request = Given::request(&talked(3_000).state());
    request.overflowed = true;
    assert!(request.is_large());
    let given = talked(3_000);
    let state = given.state();
    assert_eq!(
        crate::compaction::protection(&state, &request),
        crate::compaction::Protection::Before(loopd_proto::id::Seq(THROUGH))
    );
}

#[test]
fn there_is_no_second_one_without_progress() {
    // The model has not answered since.
    for success in [true, false] {
        check(
            &talked(3_000)
                .and(compacting("threshold"))
                .and(ended(success)),
            || call_with(&talked(3_000), 9_600),
            "
            do call model i/1
            now turn i/1 model called
            ",
        );
    }
    // It failed three times in a row.
    let mut given = talked(3_000);
    for _ in 0..3 {
        given = given.and(compacting("threshold")).and(ended(false));
    }
    let given = given.and(said(" word")).and(turn_started(1));
    check(
        &given,
        || call_with(&talked(3_000), 9_600),
        "
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_summary_takes_the_place_of_what_it_summarises() {
    let given = talked(3_000)
        .and(compacting("threshold"))
        .and(said("meanwhile"));
    check(
        &given,
        || summary("all of it"),
        "
        store loopd.compacted 8
        store session.compaction_complete true threshold removed=1
        now turn i/1 []
        ",
    );
    let mut state = given.state();
    let decision = crate::decide::tests::decided(&given, summary("all of it"));
    for step in decision.steps {
        if let crate::command::Step::Store(event) = step {
            let head = loopd_proto::event::Head {
                id: ulid::Ulid(7).into(),
                timestamp: loopd_proto::time::Timestamp(0),
                parent_id: None,
                agent_id: None,
                ephemeral: None,
            };
            crate::apply::apply(&mut state, &head, &event);
        }
    }
    let entries: Vec<&Entry> = state.history.iter().collect();
    let text = format!("{entries:?}");
    assert_eq!(entries.len(), 2, "{text}");
    assert!(
        text.contains("<user_message>") && text.contains("build it"),
        "{text}"
    );
    assert!(
        text.contains("all of it") && text.contains("meanwhile"),
        "{text}"
    );
    assert_eq!(state.compaction.count, 1);
    assert!(
        state.conversation_tokens() < 300,
        "{}",
        state.conversation_tokens()
    );
}

#[test]
fn the_turn_that_waited_goes_on() {
    let waiting = || talked(3_000).and(compacting("threshold")).and(waits());
    check(
        &waiting(),
        || summary("all of it"),
        "
        store loopd.compacted 8
        store session.compaction_complete true threshold removed=1
        store loopd.reminded text=CONTINUE
        do call model i/1
        now turn i/1 model called
        ",
    );
    // Also with the conversation as it was.
    check(
        &waiting(),
        failure,
        "
        store session.compaction_complete false threshold no
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &waiting(),
        || Command::StopCompaction(StoppedCompactions::Automatic),
        "
        answer yes
        store session.compaction_complete false threshold \"It was cancelled.\"
        do cancel summary
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn an_abort_ends_the_compaction_that_the_turn_waits_for_and_no_other() {
    check(
        &talked(3_000).and(compacting("threshold")).and(waits()),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store session.compaction_complete false threshold \"The turn that waited for it was aborted.\"
        do cancel summary
        store assistant.turn_end turnId=1
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &talked(3_000).and(compacting("threshold")),
        abort,
        "
        answer yes
        store abort reason=user_initiated
        do cancel turn
        store assistant.turn_end turnId=1
        store loopd.loop_ended outcome=aborted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn a_summary_that_wins_nothing_is_not_taken_unless_a_person_wanted_it() {
    let decision = crate::decide::tests::decided(
        &talked(20).and(compacting("threshold")),
        summary(&" word".repeat(200)),
    );
    let stored = format!("{:?}", decision.steps);
    assert!(stored.contains("It would not help"), "{stored}");
    assert!(!stored.contains("Compacted"), "{stored}");
    let decision = crate::decide::tests::decided(
        &talked(20).and(compacting("manual")),
        summary(&" word".repeat(200)),
    );
    let stored = format!("{:?}", decision.steps);
    assert!(stored.contains("Compacted"), "{stored}");
    // An empty one is none.
    let decision =
        crate::decide::tests::decided(&talked(20).and(compacting("manual")), summary(" \n"));
    let stored = format!("{:?}", decision.steps);
    assert!(stored.contains("The model wrote no summary"), "{stored}");
}

#[test]
fn a_late_summary_changes_nothing_but_what_was_spent() {
    ignores(&talked(3_000), || summary("late"));
    let spent = || {
        Command::Summarised(Box::new(Summarised {
            id: "other".into(),
            outcome: Err(CompactionFailure::new("late")),
            spent: vec![SideUsage {
                model: "gpt".to_owned(),
                usage: Usage::default(),
                estimated: false,
                duration_ms: 1,
                nano_usd: 0,
            }],
            ended: Vec::new(),
        }))
    };
    check(
        &talked(3_000).and(compacting("threshold")),
        spent,
        "
        tell assistant.usage conversation-compaction
        store loopd.usage credits=0 for=compaction
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_person_can_ask_for_one_at_any_time_but_not_for_two() {
    let wanted = || Command::Compact(CompactOrder::default());
    check(
        &talked(30),
        wanted,
        "
        store session.compaction_start manual tokens=1040
        store loopd.compacting #1 8 manual
        do summarise #1
        now turn i/1 model called
        ",
    );
    check(
        &talked(30).and(compacting("threshold")),
        wanted,
        "
        refused a compaction of this session is running already; wait for it, or stop it with session.history.cancelBackgroundCompaction or session.history.abortManualCompaction
        now turn i/1 model called
        ",
    );
    check(
        &idle(),
        wanted,
        "
        refused there is nothing to compact: the model has said nothing since the last compaction
        now idle
        ",
    );
    // Each kind is stopped by its own method.
    declines(&talked(30).and(compacting("manual")), || {
        Command::StopCompaction(StoppedCompactions::Automatic)
    });
    declines(&talked(30).and(compacting("threshold")), || {
        Command::StopCompaction(StoppedCompactions::Manual)
    });
}

fn too_long() -> Command {
    let Command::ModelFailed { turn, failure, .. } = model_failed(1) else {
        unreachable!("it is a failure");
    };
    Command::ModelFailed {
        turn,
        lost: None,
        failure: crate::command::ModelFailure {
            kind: "context_limit".to_owned(),
            ..failure
        },
    }
}

#[test]
fn a_request_that_is_too_long_is_sent_again_after_a_compaction_once() {
    check(
        &talked(3_000),
        too_long,
        "
        tell model.call_failure top_level context_limit code=down
        store session.compaction_start context_limit_retry tokens=4010
        store loopd.compacting #1 8 context_limit_retry
        do summarise #1
        store loopd.making_room
        now turn i/1 makes room
        ",
    );
    let given = talked(3_000)
        .and(compacting("context_limit_retry"))
        .and(ended(true));
    let decision = crate::decide::tests::decided(&given, too_long());
    let steps = format!("{:?}", decision.steps);
    assert!(steps.contains("not compacted again"), "{steps}");
    assert!(steps.contains("LoopEnded"), "{steps}");
}

#[test]
fn a_call_is_never_separated_from_its_result() {
    let open = calls_started(&["a", "b"]);
    assert_eq!(open.state().compactable(10_000), None, "no call is done");
    let half = open.and(completed("a"));
    assert_eq!(half.state().compactable(10_000), None);
    // What the model has not read stays, unless it is large.
    let done = half.and(completed("b")).and(turn_started(1));
    assert_eq!(done.state().compactable(10_000), None);
    let all = done
        .state()
        .history
        .stored()
        .last()
        .map(|stored| stored.seq);
    assert_eq!(done.state().compactable(20), all);
}

#[test]
fn what_has_to_survive_comes_from_the_state() {
    let given = talked(3_000)
        .and(event(
            "todo.updated",
            json!({"todos": [{"id": "t1", "content": "write the parser", "status": "in_progress",
                "priority": "high", "createdAt": ""}]}),
        ))
        .and(task("sleep", shell("sh1")));
    let state = given.state();
    let disk = Surviving {
        instructions: None,
        plan: Some("first this".to_owned()),
        skills: vec![
            SurvivingSkill {
                name: "long".to_owned(),
                text: " word".repeat(4_000),
            },
            SurvivingSkill {
                name: "short".to_owned(),
                text: "be brief".to_owned(),
            },
        ],
    };
    let through = loopd_proto::id::Seq(THROUGH);
    let summary = Summary {
        text: "sum".to_owned(),
        left_out: 7,
        provider_call_id: None,
        disk,
        system: None,
    };
    let text = crate::texts::compaction::replacement(&state, through, &summary, 10_000);
    for wanted in [
        "build it",
        "[in_progress] t1: write the parser",
        "- sleep is running, shell sh1: make",
        "first this",
        "be brief",
        "too long to repeat here: long",
        "<summary>\nThe 7 oldest messages did not fit",
        "\nsum\n</summary>",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

#[test]
fn questions_about_calls_are_over_when_the_model_reads_the_summary() {
    let text_of = |given: &Given| {
        let Command::Summarised(summarised) = summary("sum") else {
            unreachable!("a summary is a command of its own");
        };
        let Ok(summary) = summarised.outcome else {
            unreachable!("there is a summary");
        };
        let state = given.state();
        crate::texts::compaction::replacement(&state, state.seq, &summary, 10_000)
    };
    for given in [asking(), two_calls().and(client_asked("a"))] {
        assert!(given.state().questions.iter().next().is_some());
        let text = text_of(&given);
        assert!(!text.contains("<open_questions>"), "{text}");
    }
    assert!(text_of(&user_asked()).contains("- The user was asked: "));
    assert!(text_of(&plan_asked()).contains("- The user was asked to approve the plan."));
}
