//! Files in a work tree that the configuration of its repository names: further configuration,
//! hooks, and programs that git runs by itself. Writing to one of them does what writing to
//! `.git/config` does.
//!
//! Only the configuration of the repository is read, with what it includes; that of the user and of
//! the machine is not. A file that is too long is not read. No process is started.

use std::path::{Path, PathBuf};

use crate::regular_file;

/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// How many files are read for one repository.
const MAX_FILES: usize = 16;

/// How many paths are kept for one repository.
const MAX_PATHS: usize = 256;

/// Keys whose value is a path. The names between section and key are left out.
const PATHS: &[&str] = &[
    "core.hookspath",
    "core.attributesfile",
    "init.templatedir",
    "mergetool.path",
    "difftool.path",
    "browser.path",
    "man.path",
];

/// Keys whose value is a command that git runs.
const COMMANDS: &[&str] = &[
    "core.fsmonitor",
    "core.sshcommand",
    "core.editor",
    "core.pager",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "sequence.editor",
    "interactive.difffilter",
    "credential.helper",
    "filter.clean",
    "filter.smudge",
    "filter.process",
    "diff.external",
    "diff.textconv",
    "diff.command",
    "merge.driver",
    "mergetool.cmd",
    "difftool.cmd",
    "browser.cmd",
    "man.cmd",
    "guitool.cmd",
    "gpg.program",
    "gpg.defaultkeycommand",
    "trailer.command",
    "trailer.cmd",
    "remote.uploadpack",
    "remote.receivepack",
    "uploadpack.packobjectshook",
    "hook.command",
    "submodule.update",
    "sendemail.sendmailcmd",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sendemail.cccmd",
];

/// Sections in which every key is a command.
const COMMAND_SECTIONS: &[&str] = &["alias", "pager"];

/// Returns the paths that the configuration of the repository of a work tree names. `root` is the
/// folder that has a `.git`.
pub(super) fn named_files(root: &Path) -> Vec<PathBuf> {
    let mut reading = Reading {
        root: root.to_owned(),
        ..Reading::default()
    };
    reading.add_repository();
    // What is included is read as well, each file once.
    let mut at = 0;
    while let Some(file) = reading.files.get(at).cloned() {
        at += 1;
        if at > MAX_FILES {
            break;
        }
        if let Ok(text) = regular_file::read_text(&file, MAX_FILE) {
            reading.text(&file, &text);
        }
    }
    reading.found.truncate(MAX_PATHS);
    reading.found
}

#[derive(Default)]
struct Reading {
    root: PathBuf,
    files: Vec<PathBuf>,
    found: Vec<PathBuf>,
}

impl Reading {
    /// Adds the files with the configuration of the repository itself.
    fn add_repository(&mut self) {
        let dot_git = self.root.join(".git");
        // In a linked work tree and in a submodule it is a file that names the folder.
        let link = |file: &Path| regular_file::read_text(file, MAX_FILE).ok();
        let own = link(&dot_git)
            .and_then(|text| text.strip_prefix("gitdir:").map(|it| it.trim().to_owned()))
            .map_or(dot_git, |folder| self.root.join(folder));
        let common = link(&own.join("commondir")).map(|folder| own.join(folder.trim()));
        for folder in common.into_iter().chain([own]) {
            self.files.push(folder.join("config"));
            self.files.push(folder.join("config.worktree"));
        }
    }

    fn text(&mut self, file: &Path, text: &str) {
        let mut section = String::new();
        let text = text.replace("\\\r\n", "").replace("\\\n", "");
        for line in text.lines() {
            let mut line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let Some((name, rest)) = header.rsplit_once(']') else {
                    continue;
                };
                // `[filter "x"]`, and in old files `[filter.x]`.
                let name = name.split([' ', '\t', '"', '.']).next();
                section = name.unwrap_or_default().to_lowercase();
                line = rest.trim();
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let key = format!("{section}.{}", key.trim().to_lowercase());
            self.setting(file, &section, &key, &unquoted(value));
        }
    }

    fn setting(&mut self, file: &Path, section: &str, key: &str, value: &str) {
        if matches!(key, "include.path" | "includeif.path") {
            let folder = file.parent().unwrap_or(&self.root);
            let included = folder.join(value);
            if !value.starts_with('~') && !self.files.contains(&included) {
                self.files.push(included.clone());
                self.add(included);
            }
        } else if PATHS.contains(&key) {
            self.add(self.root.join(value));
        } else if COMMANDS.contains(&key)
            || (COMMAND_SECTIONS.contains(&section) && value.starts_with('!'))
            || section == "pager"
        {
            self.command(value);
        }
    }

    /// Adds the words of a command that may name files. A first word without `/` is found elsewhere.
    fn command(&mut self, command: &str) {
        let between = |it: char| it.is_whitespace() || "'\"`;|&()<>=!{}".contains(it);
        let words = command.split(between).filter(|word| !word.is_empty());
        for (place, word) in words.enumerate() {
            let is_program = place == 0 && !word.contains('/');
            if !is_program && !word.starts_with(['-', '%', '$', '~']) {
                self.add(self.root.join(word));
            }
        }
    }

    fn add(&mut self, path: PathBuf) {
        if self.found.len() >= MAX_PATHS {
            return;
        }
        // The path as it is written, and by where links lead.
        let real = path.canonicalize().ok();
        for path in real.into_iter().chain([tidy(&path)]) {
            // A value such as `.` would name the whole work tree.
            if path != self.root && !self.root.starts_with(&path) && !self.found.contains(&path) {
                self.found.push(path);
            }
        }
    }
}

/// Returns a value without quotes, escapes and a comment at its end.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut in_quotes = false;
    let mut characters = value.trim().chars();
    while let Some(next) = characters.next() {
        match next {
            '"' => in_quotes = !in_quotes,
            '\\' => plain.extend(characters.next()),
            '#' | ';' if !in_quotes => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

/// Returns the path without `.` and `..`. Links are not followed.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_configuration_names_are_found_also_through_includes_and_links() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        let config = "[core]\n\tbare = false\n\thooksPath = scripts/hk ; ours\n\
            \tfsmonitor = \"./fs mon.sh\"\n[include]\n\tpath = ../inc.cfg\n\
            [includeIf \"onbranch:x\"]\n\tpath = ../never.cfg\n\
            [alias]\n\tst = status docs\n\tgo = !sh run/go.sh # x\n[diff \"x\"] textconv = node a.js\n\
            [remote \"origin\"]\n\turl = src\n";
        std::fs::write(root.join(".git/config"), config).unwrap();
        let included = "[filter \"big\"]\n\tclean = tool/clean \\\n --x %f\n\
            [CORE]\n\tSshCommand=ssh -F keys/conf\n[include]\n\tpath = inc.cfg\n";
        std::fs::write(root.join("inc.cfg"), included).unwrap();
        let found = named_files(&root);
        for named in [
            "scripts/hk",
            "mon.sh",
            "inc.cfg",
            "never.cfg",
            "run/go.sh",
            "a.js",
            "tool/clean",
            "keys/conf",
        ] {
            let has = found.contains(&root.join(named));
            assert!(has, "{named} in {found:?}");
        }
        for other in ["src", "docs", "", "node", "ssh", "false"] {
            assert!(!found.contains(&root.join(other)), "{other} in {found:?}");
        }
        // A linked work tree reads the configuration of its repository.
        let linked = root.join("linked");
        let own = root.join(".git/worktrees/linked");
        std::fs::create_dir_all(&linked).unwrap();
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(linked.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        assert!(named_files(&linked).contains(&linked.join("scripts/hk")));
    }

    #[test]
    fn what_is_damaged_or_endless_is_read_as_far_as_it_goes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        assert!(named_files(&root).is_empty());
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".git/config"), "[core\nhooksPath\n[]=\n\"").unwrap();
        assert!(named_files(&root).is_empty());
        // Each file includes the next.
        std::fs::write(root.join(".git/config"), "[include]\npath=../0").unwrap();
        for at in 0..40 {
            let next = format!("[include]\npath = {}\n", at + 1);
            std::fs::write(root.join(at.to_string()), next).unwrap();
        }
        let found = named_files(&root);
        assert!(found.len() <= MAX_FILES + 1, "{found:?}");
        assert!(found.contains(&root.join("3")), "{found:?}");
    }
}
