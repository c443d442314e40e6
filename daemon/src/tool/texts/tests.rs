use super::*;

#[test]
fn sizes_have_one_decimal_and_a_unit() {
    let table = [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (51_201, "50.0 KB"),
        (100_000, "97.7 KB"),
        (50 * 1024 * 1024, "50.0 MB"),
        (3 * 1024 * 1024 * 1024, "3.0 GB"),
    ];
    for (bytes, expected) in table {
        assert_eq!(size(bytes), expected);
    }
}

#[test]
fn a_long_line_is_cut_at_a_character_and_says_so() {
    assert_eq!(clipped("short", 5, 5), "short");
    assert_eq!(clipped("äöüß", 8, 2), "äö... [line cut, 8 bytes in all]");
}
