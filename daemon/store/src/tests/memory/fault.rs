//! One fault for each check of the contract.

/// A promise that a store breaks on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    QueuesWhenPolled,
    SkipsDropped,
    DeletesFirst,
    CommitsEachWrite,
    ReadsOneCommitLate,
    LoadsWithoutLastEvent,
    ShowsEverything,
    IgnoresPosition,
    RefusesGroup,
    KeepsEventsBeforeGap,
    BelievesCount,
    IgnoresLimit,
    ListsOldestFirst,
    FindsAgents,
    FindsOldest,
    IgnoresScope,
    CountsCharacters,
    DeletesTooMuch,
    TruncatesWithoutRecord,
    CopiesWholeLog,
    ForksOverOther,
    KeepsHalf,
    AcknowledgesFailure,
    RefusesReadsWhenFull,
    StaysFull,
    LosesLastCommit,
    DropsQueueAtClose,
    ReadsWhenClosed,
}

/// Each check of the contract with a fault that it must see, in the order of the checks.
pub(crate) const FAULTS: &[(&str, Fault)] = &[
    ("writes_are_queued_at_the_call", Fault::QueuesWhenPolled),
    (
        "a_write_is_done_when_its_future_is_dropped",
        Fault::SkipsDropped,
    ),
    ("all_kinds_of_writes_keep_one_order", Fault::DeletesFirst),
    ("writes_that_wait_share_a_commit", Fault::CommitsEachWrite),
    ("what_was_acknowledged_is_read", Fault::ReadsOneCommitLate),
    (
        "a_record_and_its_log_are_of_one_moment",
        Fault::LoadsWithoutLastEvent,
    ),
    (
        "what_is_appended_is_loaded_unchanged",
        Fault::ShowsEverything,
    ),
    (
        "a_batch_must_start_where_the_log_ends",
        Fault::IgnoresPosition,
    ),
    ("a_batch_that_conflicts_fails_alone", Fault::RefusesGroup),
    (
        "a_batch_with_a_gap_changes_nothing",
        Fault::KeepsEventsBeforeGap,
    ),
    (
        "a_batch_without_events_changes_the_record_only",
        Fault::BelievesCount,
    ),
    (
        "reading_starts_after_a_position_and_stops_at_the_limit",
        Fault::IgnoresLimit,
    ),
    (
        "records_are_listed_the_last_modified_first",
        Fault::ListsOldestFirst,
    ),
    (
        "a_prefix_finds_at_most_two_sessions_of_people",
        Fault::FindsAgents,
    ),
    (
        "a_search_finds_the_newest_fitting_event_of_each_session",
        Fault::FindsOldest,
    ),
    (
        "facts_are_set_replaced_and_removed_by_scope",
        Fault::IgnoresScope,
    ),
    (
        "the_size_of_a_session_is_the_bytes_of_its_events",
        Fault::CountsCharacters,
    ),
    (
        "deleting_removes_the_log_and_nothing_else",
        Fault::DeletesTooMuch,
    ),
    (
        "truncating_removes_the_tail_only",
        Fault::TruncatesWithoutRecord,
    ),
    (
        "a_fork_starts_with_the_same_events_and_goes_its_own_way",
        Fault::CopiesWholeLog,
    ),
    (
        "a_fork_that_is_refused_changes_nothing",
        Fault::ForksOverOther,
    ),
    ("a_failed_write_changes_nothing", Fault::KeepsHalf),
    (
        "a_failed_write_is_not_acknowledged",
        Fault::AcknowledgesFailure,
    ),
    (
        "reads_go_on_after_a_failed_write",
        Fault::RefusesReadsWhenFull,
    ),
    ("writes_go_on_when_there_is_room_again", Fault::StaysFull),
    (
        "what_was_acknowledged_survives_a_crash",
        Fault::LosesLastCommit,
    ),
    ("closing_finishes_what_is_queued", Fault::DropsQueueAtClose),
    ("a_closed_store_refuses_everything", Fault::ReadsWhenClosed),
];
