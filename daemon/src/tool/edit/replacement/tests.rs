use super::*;

fn check(text: &str, old: &str, new: &str, expected: Result<&str, NoReplacement>) {
    assert_eq!(
        apply(text, old, new, Count::Once),
        expected.map(str::to_owned),
        "{text:?}: {old:?} -> {new:?}"
    );
}

#[test]
fn one_place_is_replaced_and_nothing_else() {
    check("a b c", "b", "B", Ok("a B c"));
    check("a b c", "b ", "", Ok("a c"));
    check("no end", "end", "end\n", Ok("no end\n"));
    check("end\n", "end\n", "end", Ok("end"));
    check("Grüße, 世界!", "世界", "мир", Ok("Grüße, мир!"));
}

#[test]
fn line_endings_of_the_file_win() {
    check("a\r\nb\r\n", "a", "x\ny", Ok("x\r\ny\r\nb\r\n"));
    check("a\r\nb\r\nc\r\n", "a\nb", "1\n2", Ok("1\r\n2\r\nc\r\n"));
    check("a\r\nb\r\n", "a\r\nb", "1\r\n2", Ok("1\r\n2\r\n"));
    check("a\nb\n", "a\r\nb", "1\r\n2", Ok("1\n2\n"));
    check("only", "only", "x\r\ny", Ok("x\r\ny"));
}

#[test]
fn a_mixed_file_is_matched_as_it_is() {
    check("a\nb\r\nc\r\n", "a\nb", "z", Ok("z\r\nc\r\n"));
}

#[test]
fn what_cannot_work_is_named() {
    check("abc", "", "x", Err(NoReplacement::Empty));
    check("abc", "b", "b", Err(NoReplacement::Unchanged));
    check("abc", "x", "y", Err(NoReplacement::NotFound));
    check(
        "x\ny\nx\n",
        "x",
        "z",
        Err(NoReplacement::Several {
            count: 2,
            lines: vec![1, 3],
        }),
    );
    let overlapping = NoReplacement::Several {
        count: 2,
        lines: vec![1, 1],
    };
    check("aaa", "aa", "b", Err(overlapping));
}

#[test]
fn only_the_first_places_are_named() {
    let text = "x\n".repeat(25);
    let expected = NoReplacement::Several {
        count: 25,
        lines: (1..=10).collect(),
    };
    check(&text, "x", "y", Err(expected));
}

#[test]
fn every_place_is_replaced_where_that_is_wanted() {
    let every = |text: &str, old: &str, new: &str| apply(text, old, new, Count::Every);
    assert_eq!(every("a b a", "a", "aa"), Ok("aa b aa".to_owned()));
    assert_eq!(every("aaa", "aa", "b"), Ok("ba".to_owned()));
    assert_eq!(
        every("a\r\nb\r\na\r\n", "a\n", "c\n"),
        Ok("c\r\nb\r\nc\r\n".to_owned())
    );
    assert_eq!(every("a", "b", "c"), Err(NoReplacement::NotFound));
}
