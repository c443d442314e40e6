use super::*;

const TEXT: &str = "# Title\n\nSome *soft* and **strong** words with `code`\nin two lines, see [it](https://a.example/x).\n\n\
- one\n- two\n  1. deep\n  2. deeper\n- three\n\n```rust\nfn main() {\n    // hi\n}\n```\n\n\
| name | size |\n|---|---|\n| a | 1 |\n| bcd | 22 |\n\n> quoted\n> text\n\n---\n\nEnd &#27;[31m.";

const SHOWN: &str = "Title

Some soft and strong words with code
in two lines, see it (https://a.example/x).

• one
• two
  1. deep
  2. deeper
• three

```rust
fn main() {
    // hi
}
```

name │ size
─────┼─────
a    │ 1
bcd  │ 22

│ quoted
│ text

────────────────────────────────────────

End \\x1b[31m.";

fn text(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(Line::text).collect();
    lines.join("\n")
}

#[test]
fn a_text_is_laid_out() {
    let mut stream = MarkdownStream::default();
    stream.push(TEXT);
    assert_eq!(text(&stream.finish(200)), SHOWN);
}

/// However the text is cut into pieces, what is printed comes out the same, and nothing twice.
#[test]
fn pieces_come_to_the_same_as_the_whole() {
    for size in [1, 2, 3, 7, 20, 64] {
        let mut stream = MarkdownStream::default();
        let mut printed = Vec::new();
        let letters: Vec<char> = TEXT.chars().collect();
        for part in letters.chunks(size) {
            stream.push(&part.iter().collect::<String>());
            printed.extend(stream.take_finished(200));
            let now = format!("{}\n{}", text(&printed), text(&stream.unfinished(200)));
            assert!(now.len() < SHOWN.len() + 40, "{size}: {now}");
        }
        printed.extend(stream.finish(200));
        assert_eq!(text(&printed), SHOWN, "{size}");
    }
}

#[test]
fn code_is_printed_line_by_line() {
    let mut stream = MarkdownStream::default();
    stream.push("```sh\none\ntwo\nthr");
    assert_eq!(text(&stream.take_finished(80)), "```sh\none");
    assert_eq!(text(&stream.unfinished(80)), "two\nthr");
    stream.push("ee\n```\n\nnext");
    assert_eq!(text(&stream.take_finished(80)), "two\nthree");
    stream.push("\n\nlast");
    assert_eq!(text(&stream.take_finished(80)), "```");
}

#[test]
fn a_table_that_does_not_fit_becomes_lines() {
    let mut stream = MarkdownStream::default();
    stream.push("| name | what it is for |\n|---|---|\n| a | something long |\n");
    assert_eq!(
        text(&stream.finish(19)),
        "• name: a\n  what it is for: something long"
    );
}
