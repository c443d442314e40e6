//! Files of instructions as people write them, with their mistakes: what is loaded, and what is
//! reported.

use super::*;

/// A file, what it says, and what comes of it: a line for each source, then one for each problem.
type Case = (&'static str, &'static str, &'static [&'static str]);

const PART: &str = ".github/instructions/a.instructions.md";
const LINE_BY_LINE: &str = "it is read line by line, so put quotes around text with `: ` in it";

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("AGENTS.md", "Be kind.\n", &["model *: Be kind."]),
    ("AGENTS.md", "\u{feff}Be kind.\r\n", &["model *: Be kind."]),
    ("AGENTS.md", "", &[]),
    ("AGENTS.md", "  \n\n", &[]),
    // Three dashes at the beginning of these files are Markdown.
    ("CLAUDE.md", "---\ntitle: x\n---\nBe kind.", &["model *: ---\ntitle: x\n---\nBe kind."]),
    ("agents.md", "Be kind.", &[]),
    ("AGENTS.override.md", "Mine.", &["model *: Mine."]),
    (".github/copilot-instructions.md", "Be kind.", &["repo *: Be kind."]),
    ("copilot-instructions.md", "Be kind.", &[]),
    ("GEMINI.md", "See @./missing.md.", &["model *: See @./missing.md.",
        "GEMINI.md:1 the import @./missing.md is left out: there is no such file"]),
    ("CLAUDE.md", "Ask @anna, use @scope/x and @/components/a.", &["model *: Ask @anna, use @scope/x and @/components/a."]),
    ("CLAUDE.md", "@../outside.md", &["model *: @../outside.md",
        "CLAUDE.md:1 the import @../outside.md is left out: it leads out of the project"]),
    ("CLAUDE.md", "@~/.ssh/config.md", &["model *: @~/.ssh/config.md",
        "CLAUDE.md:1 the import @~/.ssh/config.md is left out: it leads out of the project"]),
    ("CLAUDE.md", "@CLAUDE.md", &["model *: @CLAUDE.md"]),
    (PART, "Be kind.", &["vscode *: Be kind."]),
    (PART, "---\napplyTo: '**/*.ts'\ndescription: Types\n---\nBe kind.", &["vscode **/*.ts: Be kind."]),
    (PART, "---\napplyTo: \"**/*.ts,**/*.tsx\"\n---\nBe kind.", &["vscode **/*.ts,**/*.tsx: Be kind."]),
    (PART, "---\napplyTo:\n  - src/**\n  - '*.rs'\n---\nBe kind.", &["vscode src/**,*.rs: Be kind."]),
    // A star at the beginning is no text in YAML.
    (PART, "---\napplyTo: **/*.ts\n---\nBe kind.", &["vscode **/*.ts: Be kind.", LINE_BY_LINE]),
    (PART, "---\ndescription: Use: it\napplyTo: '*.rs'\n---\nBe kind.", &["vscode *.rs: Be kind.", LINE_BY_LINE]),
    (PART, "---\napply_to: '*.rs'\n---\nBe kind.", &["vscode *.rs: Be kind."]),
    (PART, "---\nglobs: '*.rs'\n---\nBe kind.", &["vscode *.rs: Be kind."]),
    (PART, "---\napplyTo: ''\n---\nBe kind.", &["vscode : Be kind.",
        ":2 applyTo: there is no pattern, so that it applies to no file"]),
    (PART, "---\napplyTo: 7\n---\nBe kind.", &["vscode : Be kind.", ":2 applyTo: 7 is no pattern of file names"]),
    (PART, "---\napplyTo: 'a[', '*.rs'\n---\nBe kind.", &["vscode *.rs: Be kind.", "applyTo: error parsing glob", LINE_BY_LINE]),
    (PART, "---\napplyTo: '**'\nBe kind.", &["the front matter that begins here is not closed"]),
    (PART, "\n\n---\napplyTo: '*.rs'\n---\nBe kind.", &["vscode *.rs: Be kind.", "the empty lines before it are skipped"]),
    (PART, "---\nalwaysApply: true\n---\nBe kind.", &["vscode *: Be kind.", ":2 `alwaysApply` means nothing here"]),
    (PART, "---\r\napplyTo: '*.rs'\r\n---\r\nBe kind.\r\n", &["vscode *.rs: Be kind."]),
    (".github/instructions/notes.md", "Be kind.", &["the name of the file does not end in .instructions.md"]),
    (".github/instructions/1/2/3/4/5/a.instructions.md", "Be kind.", &["is more than 4 folders deep and is not searched"]),
];

#[tokio::test]
async fn what_is_loaded_of_files_with_mistakes_and_what_is_reported() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let mut wrong = Vec::new();
    for (number, (file, text, expected)) in CASES.iter().enumerate() {
        let app = daemon.file(&format!("case{number}"));
        fs::create_dir_all(app.join(".git")).unwrap();
        write(&daemon, &format!("case{number}/{file}"), text);
        let session = client.create(json!({"workingDirectory": app})).await;
        let sources = session
            .call("session.instructions.getSources", json!({}))
            .await;
        let sources = sources["sources"].as_array().unwrap().iter();
        let mut shown: Vec<String> = sources.map(one).collect();
        let named = json!({"workingDirectory": app});
        let problems = client.call("loopd.discoveryProblems", named).await;
        shown.extend(
            problems["problems"]
                .as_array()
                .unwrap()
                .iter()
                .map(|problem| {
                    let file = problem["file"].as_str().unwrap();
                    let line = problem["line"].as_u64().map(|line| format!(":{line}"));
                    let message = problem["message"].as_str().unwrap();
                    format!("{file}{} {message}", line.unwrap_or_default())
                }),
        );
        // A source is compared as a whole, a problem by what it has to contain.
        let fits = shown.len() == expected.len()
            && shown.iter().zip(*expected).all(|(shown, expected)| {
                shown == expected || shown.starts_with('/') && shown.contains(expected)
            });
        if !fits {
            wrong.push(format!(
                "{file} {text:?}\n  {shown:?}\n  but expected {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    daemon.finish().await;
}

fn one(source: &Value) -> String {
    let kind = source["type"].as_str().unwrap();
    let content = source["content"].as_str().unwrap();
    let globs = source["applyTo"].as_array().map(|globs| {
        let globs = globs.iter().map(|glob| glob.as_str().unwrap());
        globs.collect::<Vec<_>>().join(",")
    });
    let is_part = kind == "vscode" && content.trim_start().starts_with("---");
    let text = content.trim_start_matches('\u{feff}');
    let text = if is_part {
        text.rsplit("---").next().unwrap()
    } else {
        text
    };
    format!(
        "{kind} {}: {}",
        globs.as_deref().unwrap_or("*"),
        text.trim()
    )
}
