use loopd_proto::event::rewind::RewindTarget;

use super::*;

fn rewound(to: u64, mode: RewindMode) -> Rewound {
    Rewound {
        rewind: "r".into(),
        mode,
        target: RewindTarget {
            event_id: "e".into(),
            position: Seq(to),
            tip: None,
            kept: 0,
        },
        undoes: None,
        events_removed: 0,
        restored: 0,
        skipped: 0,
        completed_later: None,
        took_work: None,
    }
}

/// The positions up to `end` that count after rewinds, each given as (at, to).
fn counted(turns: &[(u64, u64)], before: u64, end: u64) -> Vec<u64> {
    let mut rewinds = Rewinds::default();
    for (at, to) in turns {
        let event = rewound(*to, RewindMode::Conversation);
        rewinds.push(&event, Seq(*at), Seq(*at));
    }
    let hidden = rewinds.hidden_before(Seq(before));
    (1..=end).filter(|seq| counts(&hidden, Seq(*seq))).collect()
}

/// What counts by the definition: before each rewind's target, and after the rewind.
fn by_definition(turns: &[(u64, u64)], end: u64) -> Vec<u64> {
    let mut states: Vec<Vec<u64>> = vec![Vec::new()];
    for seq in 1..=end {
        let mut now = match turns.iter().find(|(at, _)| *at == seq) {
            Some((_, to)) => states[usize::try_from(*to).unwrap() - 1].clone(),
            None => states.last().unwrap().clone(),
        };
        now.push(seq);
        states.push(now);
    }
    states.pop().unwrap()
}

#[test]
fn what_counts_is_what_counted_before_the_target_and_what_came_after_the_rewind() {
    type Case<'a> = (&'a str, &'a [(u64, u64)], u64);
    let table: [Case<'_>; 8] = [
        ("no rewind", &[], 5),
        ("one", &[(6, 3)], 8),
        (
            "two, the second within what was kept",
            &[(6, 4), (9, 2)],
            10,
        ),
        ("two, the second after the first", &[(6, 3), (10, 8)], 11),
        ("an undo", &[(6, 3), (9, 6)], 10),
        ("an undo that is undone", &[(6, 3), (9, 6), (11, 9)], 12),
        (
            "an undo of the second of two",
            &[(6, 4), (8, 2), (10, 8)],
            12,
        ),
        (
            "to the first event",
            &[(6, 1), (8, 6), (12, 10), (15, 2)],
            16,
        ),
    ];
    for (name, turns, end) in table {
        let found = counted(turns, u64::MAX, end);
        assert_eq!(found, by_definition(turns, end), "{name}");
    }
}

#[test]
fn what_counted_before_a_position_does_not_know_later_rewinds() {
    assert_eq!(counted(&[(6, 3), (9, 8)], 9, 8), [1, 2, 6, 7, 8]);
    assert_eq!(counted(&[(6, 3), (9, 8)], 6, 5), [1, 2, 3, 4, 5]);
}

#[test]
fn a_rewind_of_files_hides_nothing_and_can_be_undone() {
    let mut rewinds = Rewinds::default();
    let event = Rewound {
        restored: 1,
        ..rewound(3, RewindMode::Files)
    };
    rewinds.push(&event, Seq(7), Seq(6));
    assert_eq!(rewinds.hidden(), []);
    assert_eq!(rewinds.undoable().unwrap().began, Seq(6));
}

/// Plays rewinds; each is its id, what it undoes, how many files it restored, and whether it took work.
fn next_undo(rewinds: &[(&str, Option<&str>, u64, bool)]) -> Option<RewindId> {
    let mut all = Rewinds::default();
    for (at, (id, undoes, restored, took_work)) in (1..).zip(rewinds) {
        let event = Rewound {
            rewind: (*id).into(),
            undoes: undoes.map(Into::into),
            restored: *restored,
            took_work: took_work.then_some(true),
            ..rewound(1, RewindMode::Files)
        };
        all.push(&event, Seq(at), Seq(at));
    }
    all.undoable().map(|rewind| rewind.id.clone())
}

#[test]
fn undos_go_back_one_rewind_at_a_time() {
    let (a, b) = (("a", None, 1, false), ("b", None, 1, false));
    let undo_b = ("u", Some("b"), 1, false);
    assert_eq!(next_undo(&[a, b]), Some("b".into()));
    assert_eq!(next_undo(&[a, b, undo_b]), Some("a".into()));
    assert_eq!(next_undo(&[a, b, undo_b, ("v", Some("a"), 1, false)]), None);
    // One that changed nothing is no step.
    let nothing = ("n", None, 0, false);
    assert_eq!(next_undo(&[a, nothing]), Some("a".into()));
    assert_eq!(next_undo(&[nothing]), None);
}

#[test]
fn an_undo_that_took_work_back_can_be_undone_itself() {
    let (a, b) = (("a", None, 1, false), ("b", None, 1, false));
    let undo = ("u", Some("b"), 1, true);
    assert_eq!(next_undo(&[a, b, undo]), Some("u".into()));
    let again = ("v", Some("u"), 1, false);
    assert_eq!(next_undo(&[a, b, undo, again]), Some("b".into()));
}

#[test]
fn a_part_of_a_rewind_that_was_undone_leaves_the_rest_to_the_next_undo() {
    let mut all = Rewinds::default();
    let whole = Rewound {
        events_removed: 2,
        ..rewound(3, RewindMode::ConversationAndFiles)
    };
    all.push(&whole, Seq(7), Seq(6));
    let files = Rewound {
        rewind: "u".into(),
        undoes: Some("r".into()),
        restored: 1,
        ..rewound(6, RewindMode::Files)
    };
    all.push(&files, Seq(9), Seq(8));
    assert_eq!(all.undoable().unwrap().id, "r".into());
}
