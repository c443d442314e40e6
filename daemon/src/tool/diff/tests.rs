use super::*;

fn check(change: Change<'_>, expected: &str) {
    assert_eq!(git_style(Path::new("/project/a.txt"), change), expected);
}

#[test]
fn a_new_file_comes_from_nowhere() {
    check(
        Change::Create { new: "one\ntwo\n" },
        "\ndiff --git a/project/a.txt b/project/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/project/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n",
    );
}

#[test]
fn an_edit_shows_three_lines_around_it() {
    check(
        Change::Edit {
            old: "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            new: "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
        },
        "\ndiff --git a/project/a.txt b/project/a.txt\n--- a/project/a.txt\n+++ b/project/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
    );
}

#[test]
fn a_missing_final_newline_is_told() {
    check(
        Change::Edit {
            old: "a",
            new: "a\n",
        },
        "\ndiff --git a/project/a.txt b/project/a.txt\n--- a/project/a.txt\n+++ b/project/a.txt\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
    );
}

#[test]
fn a_changed_line_ending_is_a_change() {
    check(
        Change::Edit {
            old: "a\r\nb\n",
            new: "a\nb\n",
        },
        "\ndiff --git a/project/a.txt b/project/a.txt\n--- a/project/a.txt\n+++ b/project/a.txt\n@@ -1,2 +1,2 @@\n-a\r\n+a\n b\n",
    );
}

#[test]
fn a_path_cannot_forge_a_header() {
    let diff = git_style(
        Path::new("/project/x\n+++ b/etc/passwd"),
        Change::Create { new: "1\n" },
    );
    assert!(!diff.contains("\n+++ b/etc"), "{diff}");
}
