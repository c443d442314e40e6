use super::*;
use crate::tool::fixture::Fixture;

#[test]
fn an_answer_counts_what_found_no_room() {
    let mut answer = Answer::new(2);
    answer.add_break("--");
    for line in ["a", "b", "c", "d"] {
        answer.add(line);
    }
    assert_eq!(
        answer.finish("none", "Do less.", vec!["[note]".to_owned()]),
        "a\nb\n[2 more lines were left out. Do less.]\n[note]"
    );
    assert_eq!(Answer::new(0).finish("none", "", Vec::new()), "none");
    let mut answer = Answer::new(usize::MAX);
    for _ in 0..100 {
        answer.add(&"x".repeat(1000));
    }
    let text = answer.finish("none", "Do less.", Vec::new());
    assert!(text.len() < 51_200);
    assert!(
        text.ends_with("[51 more lines were left out. Do less.]"),
        "{text}"
    );
}

#[test]
fn files_come_sorted_and_without_what_git_ignores() {
    let fixture = Fixture::new();
    for path in [
        "b.txt",
        "a/z.txt",
        "a/b/c.txt",
        ".env",
        ".git/config",
        "build/out.o",
        "a/skip.log",
        "A.txt",
    ] {
        fixture.write(path, "");
    }
    fixture.write(".gitignore", "build/\n*.log\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", fixture.path("link")).unwrap();
    let found: Vec<PathBuf> = files(&fixture.context.cwd, Selection::default()).collect();
    let expected = [
        ".env",
        ".gitignore",
        "A.txt",
        "a/b/c.txt",
        "a/z.txt",
        "b.txt",
    ];
    assert_eq!(found, expected.map(|path| fixture.path(path)));
}

#[tokio::test]
async fn a_search_ends_with_the_turn() {
    let fixture = Fixture::new();
    let cancel = fixture.context.cancel.clone();
    let work = search(&fixture.context, |stop| {
        // Ends only because the token of the turn reaches it.
        while !stop.is_cancelled() {
            std::thread::yield_now();
        }
    });
    let (result, ()) = tokio::join!(work, async { cancel.cancel() });
    assert_eq!(result.unwrap_err().text, "The search was interrupted.");
}
