use super::*;

fn worktree(contents: WorktreeContents) -> Worktree {
    Worktree {
        id: "abc".to_owned(),
        path: "/home/worktrees/abc".to_owned(),
        repository: Some("/project".to_owned()),
        commit: Some("0123456789abcdef".to_owned()),
        session_id: None,
        created_at: None,
        usage: WorktreeUse::Kept,
        contents,
    }
}

#[test]
fn the_first_changed_files_are_named_and_all_are_counted() {
    let files = (0..7)
        .map(|number| format!("f{number}\u{1b}[31m"))
        .collect();
    let shown = described(&worktree(WorktreeContents::Changed {
        files,
        more_files: 3,
        commits: 1,
        branch: Some("topic".to_owned()),
    }));
    assert!(
        shown.starts_with("abc  kept, 10 changed files, 1 commit\n"),
        "{shown}"
    );
    assert!(shown.contains("    commit      0123456789\n"), "{shown}");
    assert!(shown.contains("    branch      topic\n"), "{shown}");
    assert_eq!(shown.matches("    changed ").count(), 5, "{shown}");
    assert!(shown.ends_with("and 5 more\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn unclear_contents_are_explained_in_one_line() {
    let why = "git said\nmuch".to_owned();
    let shown = described(&worktree(WorktreeContents::Unclear { why }));
    let first = shown.lines().next().unwrap_or_default();
    assert_eq!(first, "abc  kept, contents unclear: git said much");
}
