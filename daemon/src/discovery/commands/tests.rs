use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn found(root: &Path) -> Discovered<CommandDefinition> {
    discover(&folders(None, &[root.to_owned()]))
}

fn names(found: &Discovered<CommandDefinition>) -> Vec<&str> {
    found.items.iter().map(|it| it.name.as_str()).collect()
}

#[test]
fn every_folder_is_searched_in_the_documented_order() {
    let (project, home, user) = (
        TempDir::new().unwrap(),
        TempDir::new().unwrap(),
        TempDir::new().unwrap(),
    );
    let files = [
        (project.path(), ".loopd/commands/a.md"),
        (project.path(), ".github/prompts/b.prompt.md"),
        (project.path(), ".claude/commands/c.md"),
        (project.path(), ".opencode/command/d.md"),
        (project.path(), ".opencode/commands/e.md"),
        (home.path(), "commands/f.md"),
        (user.path(), ".claude/commands/g.md"),
        (user.path(), ".config/opencode/command/h.md"),
        (user.path(), ".config/opencode/commands/i.md"),
    ];
    for (root, file) in files {
        write(root, file, "Text.");
    }
    let host = Host {
        copilot: None,
        home: home.path().to_owned(),
        user: Some(user.path().to_owned()),
    };
    let found = discover(&folders(Some(&host), &[project.path().to_owned()]));
    assert_eq!(names(&found), ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    assert_eq!(found.problems, []);
}

#[test]
fn bounds_hold_and_are_told() {
    let root = TempDir::new().unwrap();
    let folder = ".claude/commands";
    write(root.path(), &format!("{folder}/1/2/3/4/5/deep.md"), "Text.");
    write(root.path(), &format!("{folder}/1/2/3/4/near.md"), "Text.");
    let large = "x".repeat(2 * 1024 * 1024);
    write(root.path(), &format!("{folder}/large.md"), &large);
    let many = "!`date` ".repeat(21);
    write(root.path(), &format!("{folder}/many.md"), &many);
    let found = found(root.path());
    assert_eq!(names(&found), ["1:2:3:4:near"]);
    let told: Vec<String> = found.problems.iter().map(|it| it.what.clone()).collect();
    for (text, word) in told.iter().zip(["deeper", "larger", "more than 20"]) {
        assert!(text.contains(word), "{told:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn too_many_files_end_the_search() {
    let root = TempDir::new().unwrap();
    for number in 0..MOST_COMMANDS + 5 {
        write(
            root.path(),
            &format!(".claude/commands/c{number}.md"),
            "Text.",
        );
    }
    let found = found(root.path());
    assert_eq!(found.items.len(), MOST_COMMANDS);
    assert!(found.problems[0].what.contains("more than 500"));
}

#[cfg(unix)]
#[test]
fn pipes_and_links_out_of_the_project_are_not_read() {
    use std::os::unix::fs::symlink;
    let (root, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(outside.path(), "own.md", "Text.");
    write(root.path(), ".claude/commands/good.md", "Text.");
    let folder = root.path().join(".claude/commands");
    symlink(outside.path().join("own.md"), folder.join("link.md")).unwrap();
    symlink(outside.path(), folder.join("away")).unwrap();
    symlink("nowhere.md", folder.join("dangling.md")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("pipe.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let found = found(root.path());
    assert_eq!(names(&found), ["good"]);
    let mut files: Vec<PathBuf> = found.problems.into_iter().map(|it| it.file).collect();
    files.sort_unstable();
    let expected = ["dangling.md", "link.md", "pipe.md"].map(|file| folder.join(file));
    assert_eq!(files, expected);
}

#[test]
fn only_a_command_that_runs_something_needs_trust_and_every_change_of_it_counts() {
    let root = TempDir::new().unwrap();
    let file = ".claude/commands/x.md";
    let read = |text: &str| {
        write(root.path(), file, text);
        found(root.path()).items.into_iter().next().unwrap()
    };
    assert!(
        read("Say `!`date`` and \\!`date`.")
            .needs_trust_of()
            .is_none()
    );
    let one = read("Say !`date`.");
    assert!(one.needs_trust_of().is_some());
    assert_ne!(one.hash, read("Say !`date -u`.").hash);
    assert_ne!(one.hash, read("---\nmodel: x\n---\nSay !`date`.").hash);
    assert_eq!(one.hash, read("Say !`date`.").hash);
}

/// Fills in the text of a prompt file.
fn filled_prompt(text: &str, input: &str) -> Result<Vec<Segment>, String> {
    let template = Template::parse(text, CommandFormat::Prompt).unwrap();
    template.fill(input, "/work").map_err(|why| why.to_string())
}

#[test]
fn named_inputs_take_the_words_after_their_names() {
    let one = "<${input:topic}>";
    let two = "<${input:a}|${input:b}>";
    for (text, input, expected) in [
        (one, "topic=a b c", "<a b c>"),
        (one, "a b c", "<a b c>"),
        (one, "topic=\"a b\" c", "<a b c>"),
        (two, "a=1 x y", "<1|x y>"),
        (two, "a=1 x b=2 y", "<1 x|2 y>"),
        (two, "b=2 y", "<y|2>"),
    ] {
        let filled = filled_prompt(text, input).unwrap();
        assert_eq!(filled, [Segment::Text(expected.to_owned())], "{input}");
    }
    let refused = filled_prompt(one, "x topic=a").unwrap_err();
    assert!(refused.contains("`x` belongs to no input"), "{refused}");
}

#[test]
fn what_is_filled_in_never_takes_more_memory_than_a_prompt_may() {
    let argument = "x".repeat(400_000);
    for text in [
        "$ARGUMENTS ",
        "$1 ",
        "!`echo $ARGUMENTS $ARGUMENTS $ARGUMENTS`",
        "@$1 ",
    ] {
        let text = if text.starts_with(['!', '@']) {
            text.repeat(20)
        } else {
            text.repeat(20_000)
        };
        let template = Template::parse(&text, CommandFormat::Claude).unwrap();
        assert_eq!(template.fill(&argument, "/work"), Err(NotFilled::TooLong));
    }
}

#[test]
fn a_restriction_that_is_not_at_the_beginning_is_not_ignored() {
    let folder = TempDir::new().unwrap();
    let files = [
        ("blank", "\n---\nallowed-tools: Read\n---\nGo."),
        ("space", " ---\nallowed-tools: Read\n---\nGo."),
        ("comment", "# mine\n---\nallowed-tools: Read\n---\nGo."),
        ("returns", "---\rallowed-tools: Read\r---\rGo."),
        ("dashes", "----\nallowed-tools: Read\n----\nGo."),
    ];
    for (name, text) in files {
        write(folder.path(), &format!(".claude/commands/{name}.md"), text);
    }
    write(
        folder.path(),
        ".claude/commands/plain.md",
        "# Go\n\n---\n\nGo on.",
    );
    let found = found(folder.path());
    assert_eq!(names(&found), ["plain"]);
    assert_eq!(found.problems.len(), files.len(), "{:?}", found.problems);
    for problem in &found.problems {
        let told = problem.to_string();
        assert!(told.contains("looks like front matter"), "{told}");
    }
}
