//! Going back: what is stored, what is refused, and what a daemon does that finds half a rewind.

use serde_json::json;

use crate::command::{Command, RestoreOutcome, RewindOrder, SeenHistory};
use crate::decide::tests::prelude::*;
use crate::state::State;
use loopd_proto::event::rewind::{RewindMode, RewindTarget};
use loopd_proto::id::Seq;

/// A session whose first turn has ended; its user message is event 7 and the third visible one.
fn one_turn() -> Given {
    model_called()
        .and(event(
            "assistant.message",
            json!({ "messageId": "reply", "content": "hi", "toolRequests": [] }),
        ))
        .and(event("assistant.turn_end", json!({ "turnId": "0" })))
        .and(loop_ended("done"))
}

fn back(mode: RewindMode) -> Command {
    Command::Rewind(Box::new(RewindOrder {
        id: "r".into(),
        mode,
        target: RewindTarget {
            event_id: "e".into(),
            position: Seq(7),
            tip: Some("before".into()),
            kept: 2,
        },
        undoes: None,
        seen: SeenHistory {
            rewinds: 0,
            visible: 6,
            removed: 4,
        },
    }))
}

fn rewinding() -> Given {
    one_turn().and(event(
        "loopd.rewind_started",
        json!({ "rewind": "r", "mode": "conversation-and-files", "eventId": "e", "position": 7,
            "tip": "before", "kept": 2, "visible": 6, "removed": 4 }),
    ))
}

fn restored(later: bool) -> Command {
    Command::FilesRestored {
        rewind: "r".into(),
        outcome: RestoreOutcome::Restored {
            restored: 3,
            skipped: 1,
            left: vec!["/w/mine.txt".to_owned()],
        },
        later,
    }
}

fn texts(state: &State) -> usize {
    state.history.iter().len()
}

#[test]
fn a_rewind_of_the_conversation_is_one_event() {
    check(
        &one_turn(),
        || back(RewindMode::Conversation),
        "
        store loopd.rewound rewind=r mode=conversation eventId=e position=7 tip=before kept=2 eventsRemoved=4 restored=0 skipped=0
        tell session.snapshot_rewind upToEventId=e eventsRemoved=4
        now idle
        ",
    );
    let after = one_turn().and(event(
        "loopd.rewound",
        json!({ "rewind": "r", "mode": "conversation", "eventId": "e", "position": 7,
            "tip": "before", "kept": 2, "eventsRemoved": 4 }),
    ));
    let after = after.state();
    assert_eq!(texts(&one_turn().state()), 2);
    assert_eq!(texts(&after), 0, "the messages left the conversation");
    assert_eq!((after.tip, after.visible), (Some("before".into()), 2));
}

#[test]
fn files_are_restored_between_the_intent_and_the_rewind() {
    check(
        &one_turn(),
        || back(RewindMode::ConversationAndFiles),
        "
        store loopd.rewind_started rewind=r mode=conversation-and-files eventId=e position=7 tip=before kept=2 visible=6 removed=4
        do restore files r
        now rewinding r
        ",
    );
    check(
        &rewinding(),
        || restored(false),
        "
        store loopd.rewound rewind=r mode=conversation-and-files eventId=e position=7 tip=before kept=2 eventsRemoved=4 restored=3 skipped=1
        tell session.snapshot_rewind upToEventId=e eventsRemoved=4
        now idle
        ",
    );
}

#[test]
fn files_alone_leave_the_conversation_as_it_is() {
    let files = one_turn().and(event(
        "loopd.rewind_started",
        json!({ "rewind": "r", "mode": "files", "eventId": "e", "position": 7, "kept": 2, "visible": 6, "removed": 4 }),
    ));
    check(
        &files,
        || restored(false),
        "
        store loopd.rewound rewind=r mode=files eventId=e position=7 kept=2 eventsRemoved=0 restored=3 skipped=1
        now idle
        ",
    );
}

#[test]
fn files_that_cannot_be_restored_leave_the_conversation_as_it_is() {
    let failed = |rolled_back| Command::FilesRestored {
        rewind: "r".into(),
        outcome: RestoreOutcome::Failed {
            error: "the disk is full".to_owned(),
            rolled_back,
        },
        later: false,
    };
    check(
        &rewinding(),
        || failed(true),
        r#"
        store loopd.rewind_failed rewind=r error="the disk is full" rolledBack=true
        now idle
        "#,
    );
    check(
        &rewinding(),
        || failed(false),
        r#"
        store session.warning warningType=rewind_failed message="the disk is full"
        store loopd.rewind_failed rewind=r error="the disk is full" rolledBack=false
        now idle
        "#,
    );
}

#[test]
fn messages_that_come_meanwhile_wait_for_the_rewind() {
    check(
        &rewinding(),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 queued last
        tell pending_messages.modified
        now rewinding r queue=[m2]
        ",
    );
    check(
        &rewinding().and(queued("m2")),
        || restored(false),
        "
        store loopd.rewound rewind=r mode=conversation-and-files eventId=e position=7 tip=before kept=2 eventsRemoved=4 restored=3 skipped=1
        tell session.snapshot_rewind upToEventId=e eventsRemoved=4
        now idle queue=[m2]
        ",
    );
}

#[test]
fn a_daemon_that_finds_the_intent_carries_out_the_rest_and_says_so() {
    check(
        &rewinding(),
        || Command::Recover(Vec::new()),
        "
        do restore files r
        now rewinding r
        ",
    );
    check(
        &rewinding(),
        || restored(true),
        r#"
        store loopd.rewound rewind=r mode=conversation-and-files eventId=e position=7 tip=before kept=2 eventsRemoved=4 restored=3 skipped=1 completedLater=true
        tell session.snapshot_rewind upToEventId=e eventsRemoved=4
        store session.info infoType=rewind message="The daemon ended during a rewind, which is complete now: 3 files were re…"
        now idle
        "#,
    );
}

#[test]
fn a_copy_of_a_log_does_not_restore_the_files_of_its_source() {
    check(
        &rewinding(),
        || Command::CloseCopied,
        r#"
        store loopd.rewind_failed rewind=r error="The rewind goes on in the session that this one is a copy of." rolledBack=true
        now idle
        "#,
    );
}

#[test]
fn an_abort_does_not_stop_a_rewind_halfway() {
    check(
        &rewinding(),
        || abort_by("anybody"),
        "
        answer no
        now rewinding r
        ",
    );
}

#[test]
fn work_is_named_that_has_to_be_stopped_first() {
    let table = [
        (model_called(), "a turn (session.abort)"),
        (
            one_turn().and(task("dev", shell("dev"))),
            "the command dev (session.tasks.cancel)",
        ),
        (
            one_turn().and(task("look", agent("look"))),
            "the agent look (session.tasks.cancel)",
        ),
        (rewinding(), "another rewind"),
    ];
    for (given, work) in table {
        let why = format!("the session cannot go back while there is work: {work}; stop it first");
        is_refused(&given, || back(RewindMode::Conversation), &why);
    }
}

#[test]
fn nothing_is_taken_back_by_a_stale_order() {
    let rewound = one_turn().and(event(
        "loopd.rewound",
        json!({ "rewind": "other", "mode": "conversation", "eventId": "e", "position": 7,
            "tip": "before", "kept": 2, "eventsRemoved": 4 }),
    ));
    let why = "the history changed meanwhile; list the rewind points and try again";
    is_refused(&rewound, || back(RewindMode::Conversation), why);
}

#[test]
fn a_notification_of_a_task_that_was_left_is_not_delivered() {
    let given = one_turn()
        .and(task("look", agent("look")))
        .and(task_answered("look"));
    assert_eq!(given.state().tasks.undelivered().len(), 1);
    let after = given.and(event(
        "loopd.rewound",
        json!({ "rewind": "r", "mode": "conversation", "eventId": "e", "position": 7, "kept": 2,
            "eventsRemoved": 4 }),
    ));
    assert_eq!(after.state().tasks.undelivered().len(), 0);
}
