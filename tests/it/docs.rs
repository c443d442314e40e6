//! What the pages of docs/ say of the code is what the code says.

use std::path::{Path, PathBuf};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name)
}

/// The line after which the page is made of the code.
const MADE: &str = "<!-- From here on the page is made of the code: LOOPD_WRITE_DOCS=1 cargo nextest run -p loopd-tests -E 'test(docs)' -->\n";

#[test]
fn the_reference_of_settings_is_that_of_the_code() {
    let file = page("configuration.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let (written, made) = text.split_once(MADE).expect("the page has the line");
    let now = loopd::config::reference::markdown();
    if made == now {
        return;
    }
    if std::env::var_os("LOOPD_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{written}{MADE}{now}")).unwrap();
        return;
    }
    let lines = made.lines().zip(now.lines());
    let differs = lines.into_iter().find(|(page, code)| page != code);
    panic!(
        "docs/configuration.md is not what the code says: {differs:?}; write it anew with LOOPD_WRITE_DOCS=1"
    );
}

#[test]
fn every_variable_that_the_code_reads_is_in_a_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = std::fs::read_to_string(root.join("README.md")).unwrap();
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "md") {
            pages += &std::fs::read_to_string(path).unwrap();
        }
    }
    let mut missing = Vec::new();
    for name in variables(&root) {
        // These are set by us for our own processes, and by our tests.
        let is_inner = name.starts_with("LOOPD_TEST_") || name == "LOOPD_PROCESS";
        if !is_inner && !pages.contains(&format!("`{name}")) {
            missing.push(name);
        }
    }
    assert_eq!(missing, [""; 0], "these variables are in no page");
}

/// The variables of ours that are named in the code.
fn variables(root: &Path) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    let folders = ["daemon", "sdk/src", "cli-client/src", "proto/src"];
    let mut waiting: Vec<PathBuf> = folders.iter().map(|name| root.join(name)).collect();
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                for quoted in text.split('"') {
                    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
                    if quoted.starts_with("LOOPD_") && quoted.chars().all(is_name) {
                        found.insert(quoted.to_owned());
                    }
                }
            }
        }
    }
    found.into_iter().collect()
}
