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
    rewinds.push(&rewound(3, RewindMode::Files), Seq(7), Seq(6));
    assert_eq!(rewinds.hidden(), []);
    assert_eq!(rewinds.last().unwrap().began, Seq(6));
}
