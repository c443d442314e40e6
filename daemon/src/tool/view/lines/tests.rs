use super::*;

fn check(text: &str, range: Range, expected: &str) {
    let page = read(text.as_bytes(), range, &CancellationToken::new()).unwrap();
    assert_eq!(page, Page::Lines(expected.to_owned()), "{text:?} {range:?}");
}

#[test]
fn lines_are_numbered() {
    check("", Range::All, "1.");
    check("one", Range::All, "1. one");
    check("one\n", Range::All, "1. one\n2.");
    check("one\n\nthree", Range::All, "1. one\n2. \n3. three");
    check("a\r\nb\r\n", Range::All, "1. a\n2. b\n3.");
}

#[test]
fn a_range_shows_its_lines_only() {
    let text = "line1\nline2\nline3\nline4\nline5\n";
    check(text, Range::Between(2, 4), "2. line2\n3. line3\n4. line4");
    check(text, Range::Between(5, 5), "5. line5");
    check(text, Range::Between(4, 99), "4. line4\n5. line5\n6.");
    check(text, Range::From(5), "5. line5\n6.");
    let past = read(text.as_bytes(), Range::From(7), &CancellationToken::new());
    assert_eq!(past.unwrap(), Page::PastTheEnd { lines: 6 });
}

#[test]
fn ranges_are_checked() {
    assert_eq!(Range::parse(None), Ok(Range::All));
    assert_eq!(Range::parse(Some([3, 9])), Ok(Range::Between(3, 9)));
    assert_eq!(Range::parse(Some([3, -1])), Ok(Range::From(3)));
    assert_eq!(Range::parse(Some([0, 3])), Ok(Range::Between(1, 3)));
    for wrong in [[-2, 3], [4, 3], [1, -2], [1, 0]] {
        let text = Range::parse(Some(wrong)).unwrap_err();
        assert!(text.starts_with("view_range ["), "{wrong:?}: {text}");
    }
}

#[test]
fn long_lines_are_cut() {
    let text = format!("{}\nb", "ü".repeat(5000));
    let expected = format!(
        "1. {}... [line cut, 10000 bytes in all]\n2. b",
        "ü".repeat(MAX_LINE)
    );
    check(&text, Range::All, &expected);
}

#[test]
fn long_texts_stop_and_say_where_to_go_on() {
    let text = "0123456789\n".repeat(10_000);
    let page = read(text.as_bytes(), Range::All, &CancellationToken::new()).unwrap();
    let Page::Lines(shown) = page else {
        unreachable!("{page:?}");
    };
    assert!(shown.len() < 51_200, "{}", shown.len());
    let last = shown.lines().rev().nth(1).unwrap();
    let number: u64 = last.split('.').next().unwrap().parse().unwrap();
    let next = number + 1;
    let note = format!(
        "[Lines 1-{number} of 10001 are shown, the rest is too long for one answer. Go on with view_range [{next}, {}].]",
        next + number - 1
    );
    assert_eq!(shown.lines().last().unwrap(), note);

    let page = read(
        text.as_bytes(),
        Range::From(next),
        &CancellationToken::new(),
    )
    .unwrap();
    let Page::Lines(shown) = page else {
        unreachable!("{page:?}");
    };
    assert!(shown.starts_with(&format!("{next}. 0123456789\n")));
}

#[test]
fn a_range_of_an_endless_file_ends() {
    let endless = io::repeat(b'\n');
    let page = read(
        endless,
        Range::Between(100_000, 100_001),
        &CancellationToken::new(),
    );
    assert_eq!(page.unwrap(), Page::Lines("100000. \n100001. ".to_owned()));
}

#[test]
fn reading_stops_with_the_turn() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let page = read(io::repeat(b'x'), Range::From(2), &cancel).unwrap();
    assert_eq!(page, Page::Interrupted);
}
