//! The complete path: real bash runs what the rules allow without a question. Every program is a
//! stub that records how it was called.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions, ShellCommand};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::policy::shell::analysis::{Analysis, SessionApproval, Syntax};
use crate::policy::{Verdict, judge};

/// Programs that the rules allow, and programs that must never run.
const ALLOWED: &[&str] = &["good", "fine", "git status"];
const PROGRAMS: &[&str] = &["good", "fine", "git", "evil", "rm"];

/// A command of mostly harmless words, with a hostile one here and there.
fn command() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => prop::sample::select(vec![
            "good", "fine", "git status", "a", "-x", "--long=v", "'q r'", "\"s t\"", "x/y.z", "''",
            "a@b:c", "'$(evil)'", "'`evil`'", "\"a;evil\"", "'a\\'", "%20", "1,2", "+x", "'é世'",
        ]),
        2 => prop::sample::select(vec![
            "evil", "rm", "$(evil)", "`evil`", "\"$(evil)\"", "a[$(evil)]", "'a[$(evil)]'", "$x", "*",
            "{evil,a}", "~", "<(evil)", ">", "> out", "2>&1", "<<E", "A=b", "!", "time", "coproc",
            "eval", "command", "exec", "printf -v", "test -v", "[[", "if", "then", "fi", "(", ")",
            "{", "}", "\\", "#", "$'\\x65vil'", "\t", "\r", "\n", "\u{a0}", "\u{202e}", "=", "^",
        ]),
    ];
    let joint = prop::sample::select(vec![
        " ", " ", " ", " ", "  ", "", " && ", " || ", "; ", " | ", ";", "&&", "|", " & ", "|&",
        "\n",
    ]);
    let start = prop::sample::select(vec!["good", "good", "fine", "git status", "", "evil"]);
    (start, prop::collection::vec((joint, word), 0..6)).prop_map(|(start, rest)| {
        let mut text = start.to_owned();
        for (joint, word) in rest {
            text.push_str(joint);
            text.push_str(word);
        }
        text
    })
}

/// The permission request for running a command.
pub(crate) fn request(command: &str) -> PermissionRequest {
    let analysis = Analysis::of(command);
    let identifiers = analysis.identifiers.into_iter();
    PermissionRequest::Shell {
        managed_approval_required: None,
        tool_call_id: None,
        full_command_text: command.to_owned(),
        intention: String::new(),
        commands: identifiers
            .map(|identifier| ShellCommand {
                identifier,
                read_only: false,
            })
            .collect(),
        possible_paths: analysis.possible_paths,
        possible_urls: Vec::new(),
        has_write_file_redirection: analysis.writes_by_redirection,
        can_offer_session_approval: analysis.session_approval == SessionApproval::Offer,
        warning: analysis.warning,
        resolved_paths: std::collections::BTreeMap::new(),
        resolved_working_directory: Some("/project".to_owned()),
        changed_shell: None,
        shell_directories: Vec::new(),
        shell_directory_unknown: None,
        repository_folders: Vec::new(),
        writes_protected: None,
        reached: None,
        typed_before: Vec::new(),
    }
}

#[test]
fn a_command_that_runs_without_a_question_runs_as_predicted() {
    let root = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    let (bin, work, log) = (
        root.path().join("bin"),
        root.path().join("work"),
        root.path().join("log"),
    );
    for folder in [&bin, &work] {
        std::fs::create_dir(folder).unwrap_or_else(|error| unreachable!("{error}"));
    }
    for program in PROGRAMS {
        let stub = format!(
            "#!/bin/bash\nIFS=$'\\x1f'\nprintf '%s\\x1e' \"{program}\u{1f}$*\" >> '{}'\n",
            log.display()
        );
        let path = bin.join(program);
        std::fs::write(&path, stub).unwrap_or_else(|error| unreachable!("{error}"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))
            .unwrap_or_else(|error| unreachable!("{error}"));
    }
    let permissions = Permissions {
        approved: ALLOWED
            .iter()
            .map(|argument| PermissionRule {
                kind: "shell".to_owned(),
                argument: Some((*argument).to_owned()),
            })
            .collect(),
        ..Permissions::default()
    };
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    });
    let commands = command();
    let mut ran = 0;
    for _ in 0..6000 {
        let command = commands
            .new_tree(&mut runner)
            .unwrap_or_else(|error| unreachable!("{error}"))
            .current();
        if judge(&permissions, "/project", &request(&command)) != Verdict::Allow {
            continue;
        }
        let Syntax::Plain(predicted) = Syntax::of(&command) else {
            unreachable!("{command:?} was allowed without being understood");
        };
        let predicted: BTreeSet<String> = predicted
            .iter()
            .map(|argv| {
                let (program, arguments) = argv.split_first().unwrap_or_else(|| unreachable!());
                format!("{program}\u{1f}{}", arguments.join("\u{1f}"))
            })
            .collect();
        for call in calls(&command, &bin, &work, &log) {
            assert!(
                predicted.contains(&call),
                "{command:?} ran {call:?}, predicted {predicted:?}"
            );
        }
        let left = std::fs::read_dir(&work).map(Iterator::count);
        assert!(matches!(left, Ok(0)), "{command:?} wrote a file");
        ran += 1;
        if ran == 300 {
            break;
        }
    }
    assert!(ran >= 200, "only {ran} commands were allowed");
}

/// Runs a command in bash and lists the programs that were called.
fn calls(command: &str, bin: &Path, work: &Path, log: &Path) -> Vec<String> {
    std::fs::write(log, "").unwrap_or_else(|error| unreachable!("{error}"));
    let status = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", command])
        .current_dir(work)
        .env_clear()
        .env("PATH", bin)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok());
    let log = std::fs::read_to_string(log).unwrap_or_else(|error| unreachable!("{error}"));
    log.split_terminator('\u{1e}').map(str::to_owned).collect()
}
