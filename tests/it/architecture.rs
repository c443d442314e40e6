//! The shape of the code, checked: who may use whom, how large a file may be, what has a test.

mod source;

use std::collections::{BTreeMap, BTreeSet};

use source::{Source, root, sources, text};

/// Fails with everything that is wrong, one per line.
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// The modules of the daemon in the order of its lib.rs, in groups that blank lines part.
fn groups() -> Vec<Vec<String>> {
    let text = text("daemon/src/lib.rs");
    let blocks = text.split("\n\n");
    let groups = blocks.map(|block| {
        let lines = block
            .lines()
            .map(|line| line.strip_prefix("pub ").unwrap_or(line));
        lines
            .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    groups.filter(|group| !group.is_empty()).collect()
}

#[test]
fn arrows_between_the_daemons_modules_go_down() {
    let groups = groups();
    let level: BTreeMap<&str, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(level, group)| group.iter().map(move |name| (name.as_str(), level)))
        .collect();
    assert!(
        level.len() > 10,
        "the modules of lib.rs were not understood: {groups:?}"
    );
    let mut wrong = BTreeSet::new();
    for source in sources("daemon/src")
        .iter()
        .filter(|source| !source.is_test())
    {
        let from = source.module();
        let Some(own) = level.get(from.as_str()) else {
            continue; // main.rs and lib.rs see everything.
        };
        for used in source.crate_modules() {
            let Some(other) = level.get(used.as_str()) else {
                continue;
            };
            // The parts of the process at the top all know each other.
            let beside = own == other && *own == 0;
            if used != from && other <= own && !beside {
                wrong.insert(format!("{from} uses {used} (in {})", source.path));
            }
        }
    }
    none("these uses go up", &wrong.into_iter().collect::<Vec<_>>());
}

#[test]
fn the_kernel_is_pure() {
    let never = [
        "async ",
        ".await",
        "Atomic",
        "Mutex",
        "RwLock",
        "std::fs",
        "std::env",
        "std::time",
        "std::net",
        "std::process",
        "std::thread",
    ];
    let mut wrong = Vec::new();
    for source in sources("daemon/kernel/src")
        .iter()
        .filter(|source| !source.is_test())
    {
        for line in source.code() {
            if never.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}: {line}", source.path));
            }
        }
    }
    none("the kernel knows only data", &wrong);
}

#[test]
fn what_is_foreign_stays_in_its_place() {
    let places = [
        ("jsonrpsee", vec!["front"]),
        ("interprocess", vec!["front"]),
        ("SystemTime::now", vec![]),
        ("env::var", vec!["main"]),
        ("unbounded_channel", vec![]),
        ("println!", vec![]),
    ];
    let mut wrong = Vec::new();
    for source in ["daemon/src", "daemon/store/src"]
        .into_iter()
        .flat_map(sources)
        .filter(|source| !source.is_test())
    {
        for (word, allowed) in &places {
            let found = source
                .code()
                .find(|line| line.contains(word) && !line.contains("eprintln!"));
            if let Some(line) = found
                && !allowed.contains(&source.module().as_str())
            {
                wrong.push(format!("{}: {}", source.path, line.trim()));
            }
        }
        if let Some(line) = source
            .code()
            .find(|line| line.trim().starts_with("tokio::spawn("))
        {
            wrong.push(format!("{} keeps no handle: {}", source.path, line.trim()));
        }
    }
    none("these belong elsewhere", &wrong);
}

#[test]
fn only_the_front_knows_the_wire() {
    let crates = ["kernel", "exec", "model", "store"];
    let folders = crates.map(|name| format!("daemon/{name}/src"));
    let folders = folders.iter().map(String::as_str);
    let mut wrong = Vec::new();
    for source in folders.chain(["daemon/src"]).flat_map(sources) {
        let names = |line: &&str| line.contains("wire::") || line.contains("proto::{wire");
        let front = source.path.starts_with("daemon/src/") && source.module() == "front";
        if let Some(line) = source.code().find(names).filter(|_| !front) {
            wrong.push(format!("{}: {}", source.path, line.trim()));
        }
    }
    for name in crates {
        let manifest = text(&format!("daemon/{name}/Cargo.toml"));
        if manifest.lines().any(|line| line.contains("\"wire\"")) {
            wrong.push(format!(
                "daemon/{name}/Cargo.toml asks for the feature `wire`"
            ));
        }
    }
    none("these know how bytes travel", &wrong);
}

#[test]
fn crates_depend_only_downwards() {
    let allowed = [
        ("proto", vec![]),
        ("daemon/kernel", vec!["loopd-proto"]),
        ("daemon/exec", vec!["loopd-kernel", "loopd-proto"]),
        ("daemon/mcp", vec!["loopd-proto"]),
        ("daemon/model", vec!["loopd-kernel", "loopd-proto"]),
        ("daemon/store", vec!["loopd-kernel", "loopd-proto"]),
        ("daemon/relay", vec!["loopd-proto"]),
        (
            "daemon",
            vec![
                "loopd-exec",
                "loopd-kernel",
                "loopd-mcp",
                "loopd-model",
                "loopd-proto",
                "loopd-relay",
                "loopd-store",
            ],
        ),
        ("sdk", vec!["loopd-proto"]),
        ("cli-client", vec!["loopd-sdk"]),
    ];
    let mut wrong = Vec::new();
    for (folder, allowed) in allowed {
        let manifest = text(&format!("{folder}/Cargo.toml"));
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let ours = name.starts_with("loop") && section == "[dependencies]";
            if ours && !allowed.contains(&name) {
                wrong.push(format!("{folder} depends on {name}"));
            }
        }
    }
    none("these crates know too much", &wrong);
}

fn all_sources() -> Vec<Source> {
    let folders = [
        "proto/src",
        "daemon/kernel/src",
        "daemon/exec/src",
        "daemon/mcp/src",
        "daemon/model/src",
        "daemon/relay/src",
        "daemon/store/src",
        "daemon/src",
        "sdk/src",
        "cli-client/src",
        "tests/src",
        "tests/it",
        "tests/bench",
    ];
    folders.into_iter().flat_map(sources).collect()
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = all_sources()
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > 600)
        .map(|(lines, path)| format!("{path} has {lines} lines"))
        .collect();
    none("over 600 lines", &long);
}

#[test]
fn files_open_with_what_they_are_and_modules_are_not_called_mod() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        let is_test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        let opens = source.text.starts_with("//!");
        if !opens && (!is_test || source.path.starts_with("tests/it")) {
            wrong.push(format!("{} does not open with //!", source.path));
        }
        if source.path.ends_with("/mod.rs") {
            wrong.push(format!(
                "{} should be a file beside its folder",
                source.path
            ));
        }
    }
    none("files that are not as they should be", &wrong);
}

#[test]
fn no_test_file_is_left_out() {
    let files = sources("tests/it");
    let declares = |parent: &str, name: &str| {
        let parent = files.iter().find(|source| source.path == parent);
        parent.is_some_and(|parent| {
            parent
                .code()
                .any(|line| line.trim().trim_start_matches("pub(crate) ") == format!("mod {name};"))
        })
    };
    let mut wrong = Vec::new();
    for source in files
        .iter()
        .filter(|source| source.path != "tests/it/main.rs")
    {
        let (folder, file) = source.path.rsplit_once('/').unwrap();
        let parent = match folder {
            "tests/it" => "tests/it/main.rs".to_owned(),
            folder => format!("{folder}.rs"),
        };
        let name = file.trim_end_matches(".rs");
        if !declares(&parent, name) {
            wrong.push(format!("{} is not declared in {parent}", source.path));
        }
    }
    none("tests that never run", &wrong);
}

#[test]
fn every_method_is_named_in_a_test() {
    let tests: Vec<Source> = sources("tests/it")
        .into_iter()
        .filter(|source| !source.path.contains("architecture"))
        .collect();
    let missing: Vec<String> = loopd_proto::method::ALL
        .iter()
        .filter(|row| {
            let literal = format!("\"{}\"", row.name);
            let named = |source: &Source| source.text.contains(&literal);
            !tests.iter().any(named) && !text("tests/src/session.rs").contains(&literal)
        })
        .map(|row| row.name.to_owned())
        .collect();
    none("methods without a test", &missing);
}

#[test]
fn every_method_says_in_a_sentence_what_it_does() {
    let wrong: Vec<String> = loopd_proto::method::ALL
        .iter()
        .filter(|row| row.help.len() < 10 || !row.help.ends_with('.'))
        .map(|row| format!("{}: {:?}", row.name, row.help))
        .collect();
    none("methods without a sentence", &wrong);
}

#[test]
fn the_harness_does_not_lean_on_the_sdk() {
    let manifest = text("tests/Cargo.toml");
    assert!(
        !manifest.contains("loopd-sdk"),
        "the harness speaks the raw wire"
    );
    assert!(root().join("tests/src").is_dir());
}
