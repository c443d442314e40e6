use super::super::patch;
use super::*;

fn parse_text(text: &str) -> Result<Vec<FilePatch>, String> {
    patch::parse(text).map_err(|error| error.to_string())
}

fn actions(text: &str) -> Vec<(String, &'static str)> {
    let files = parse_text(text).unwrap_or_else(|error| unreachable!("{error}"));
    files
        .into_iter()
        .map(|file| {
            let kind = match file.action {
                Action::Add { .. } => "add",
                Action::Delete => "delete",
                Action::Update { move_to: None, .. } => "update",
                Action::Update { .. } => "move",
            };
            (file.path, kind)
        })
        .collect()
}

#[test]
fn what_git_prints_is_read() {
    let text = "commit message\n\ndiff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n\
        @@ -1,3 +1,3 @@ fn main\n one\n-two\n+2\n three\n\
        diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
        diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
        diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n\
        diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n";
    let expected = [
        ("a.txt", "update"),
        ("new", "add"),
        ("old", "delete"),
        ("from", "move"),
        ("empty", "add"),
    ];
    assert_eq!(
        actions(text),
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
    let files = parse_text(text).unwrap_or_default();
    let added = files.get(1).map(|file| file.action.clone());
    let contents = "x".to_owned();
    assert_eq!(added, Some(Action::Add { contents }));
}

#[test]
fn plain_diffs_with_times_and_without_prefixes_are_read() {
    let text = "--- src/a.c\t2024-01-01 00:00:00\n+++ src/a.c\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n\
        --- src/b.c\n+++ src/b.c\n@@ -1 +1 @@\n-a\n+b\n";
    let expected = [("src/a.c", "update"), ("src/b.c", "update")];
    assert_eq!(
        actions(text),
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
}

#[test]
fn removed_dashes_are_not_a_header() {
    let text =
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new comment\n select 1\n";
    let files = parse_text(text).unwrap_or_default();
    let Some(Action::Update { hunks, .. }) = files.first().map(|file| &file.action) else {
        unreachable!("an update");
    };
    let lines = hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
    assert_eq!((files.len(), lines), (1, 3));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let table = [
        (
            "@@ -1 +1 @@\n-a\n+b\n",
            "line 1: the hunk belongs to no file",
        ),
        ("--- a/x\n+++ b/x\n", "line 1: the patch of x has no hunks"),
        (
            "--- a/x\n+++ b/x\n@@ nonsense @@\n-a\n",
            "line 3: the hunk has to begin with",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
            "line 3: the hunk has no lines",
        ),
        (
            "--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "line 1: a new file cannot have lines",
        ),
        (
            "diff --git a/x b/x\nindex 1..2\nGIT binary patch\n",
            "line 3: binary patches",
        ),
        (
            "diff --git a/x b/y\ncopy from x\n",
            "line 2: copies are not supported",
        ),
    ];
    for (text, expected) in table {
        let error = parse_text(text).err().unwrap_or_default();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
