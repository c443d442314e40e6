use super::*;

fn lines(write: impl Fn(&mut Lines)) -> String {
    let mut lines = Lines::new();
    write(&mut lines);
    lines.finish();
    String::from_utf8_lossy(&lines.take_done()).into_owned()
}

#[test]
fn an_overwritten_line_shows_its_last_state() {
    let text = lines(|lines| {
        lines.print("10% done");
        lines.go_to_start();
        lines.print("100%");
        lines.newline();
        lines.print("next");
    });
    assert_eq!(text, "100%done\nnext");
}

#[test]
fn half_a_wide_character_that_is_written_over_becomes_blank() {
    let text = lines(|lines| {
        lines.print("世界");
        lines.go_to_column(1);
        lines.print("x");
    });
    assert_eq!(text, " x界");
    let text = lines(|lines| {
        lines.print("世界!");
        lines.go_to_start();
        lines.print("abc");
    });
    assert_eq!(text, "abc !");
}

#[test]
fn rows_above_can_be_changed_while_they_are_on_the_screen() {
    let text = lines(|lines| {
        for row in ["one", "two", "three"] {
            lines.print(row);
            lines.newline();
        }
        lines.by_rows(-2);
        lines.erase_in_row(RowPart::All);
        lines.print("TWO");
        lines.by_rows(2);
        lines.go_to_start();
        lines.print("end");
    });
    assert_eq!(text, "one\nTWO\nthree\nend");
}

#[test]
fn rows_that_leave_the_screen_are_final_and_few_bytes_stay_open() {
    let mut lines = Lines::new();
    for row in 0..100 {
        lines.print(&format!("row {row}"));
        lines.newline();
    }
    let done = String::from_utf8_lossy(&lines.take_done()).into_owned();
    assert_eq!(done.lines().count(), 100 - HEIGHT + 1);
    assert!(lines.open().starts_with("row 71\n"), "{}", lines.open());
    lines.print(&"x".repeat(1_000_000));
    assert!(lines.open().len() <= OPEN);
    lines.finish();
    assert!(lines.take_done().len() > 1_000_000);
}
