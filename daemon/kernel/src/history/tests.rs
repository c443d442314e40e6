use super::*;

fn user(text: &str) -> Entry {
    Entry::User(vec![Part::Text(text.to_owned())])
}

fn result(text: &str) -> Entry {
    Entry::Result {
        call: "call".into(),
        text: text.to_owned(),
        interrupted: false,
        pruned: false,
    }
}

fn history() -> History {
    let mut history = History::default();
    history.push(Seq(2), user("one"));
    history.push(Seq(5), result("two"));
    // One event may add several entries.
    history.push(Seq(5), result("three"));
    history.push(Seq(9), user("four"));
    history.push(Seq(12), result("five"));
    history
}

#[test]
fn entries_are_found_by_the_position_of_their_event() {
    let history = history();
    for (seq, found) in [(0, 5), (2, 4), (4, 4), (5, 2), (9, 1), (12, 0), (99, 0)] {
        assert_eq!(history.after(Seq(seq)).count(), found, "after {seq}");
    }
    assert_eq!(history.last_user(), Some(Seq(9)));
    assert_eq!(History::default().last_user(), None);
}

#[test]
fn positions_stay_valid_when_entries_are_removed_at_the_front() {
    let whole = history();
    for taken in 0..=3 {
        let mut shorter = whole.clone();
        shorter.entries.drain(..taken);
        assert_eq!(shorter.last_user(), whole.last_user());
        for seq in [5, 9, 12] {
            let rest: Vec<_> = shorter.after(Seq(seq)).collect();
            assert_eq!(rest, whole.after(Seq(seq)).collect::<Vec<_>>());
        }
    }
}
