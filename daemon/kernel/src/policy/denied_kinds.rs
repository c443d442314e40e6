//! Deny rules without a path, which deny writing or reading anything, compared with a command. What
//! certainly writes or reads a file is denied, what may do so is asked about.

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};

use super::shell::Denial;
use super::shell::looks;
use super::shell::runs::{Certainty, ProgramRun, Runs};
use super::shell::word::{Word, base_name};
use super::shell::write_targets::WriteTargets;

/// Programs that read the files that they name.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "cat", "tac", "nl", "head", "tail", "less", "more", "bat", "wc", "sort", "uniq", "cut", "od", "xxd", "hexdump", "strings",
    "base64", "md5sum", "sha1sum", "sha256sum", "diff", "cmp", "comm", "paste", "join", "fold", "rev",
];

/// Programs that read the files that they name after a pattern or a script.
const SEARCHERS: &[&str] = &["grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "jq"];

/// Builtins that write nothing and read no file.
const STILL: &[&str] = &["cd", "pushd", "popd", "true", "false", ":", "echo", "pwd"];

/// Returns the verdict of deny rules without a path on what a command writes and reads.
pub(super) fn denial<'p>(permissions: &'p Permissions, request: &PermissionRequest) -> Denial<'p> {
    let PermissionRequest::Shell {
        full_command_text, ..
    } = request
    else {
        return Denial::No;
    };
    let text = full_command_text.replace("{enter}", "\n");
    let bare = |kind: &str| {
        let mut denied = permissions.denied.iter();
        denied.find(|rule| rule.kind == kind && rule.argument.is_none())
    };
    let write = bare("write").map_or(Denial::No, |rule| written(rule, &text));
    let read = bare("read").map_or(Denial::No, |rule| read(rule, &text));
    match (write, read) {
        (Denial::By(rule), _) | (_, Denial::By(rule)) => Denial::By(rule),
        (Denial::Possible, _) | (_, Denial::Possible) => Denial::Possible,
        (Denial::No, Denial::No) => Denial::No,
    }
}

fn written<'p>(rule: &'p PermissionRule, text: &str) -> Denial<'p> {
    if looks::only_looks(text) {
        return Denial::No;
    }
    let Some(targets) = WriteTargets::of(text) else {
        return Denial::Possible;
    };
    if targets.writes {
        return Denial::By(rule);
    }
    let runs = Runs::of(text);
    let is_still = |run: &ProgramRun| {
        let Some((program, arguments)) = run.words.split_first() else {
            return true;
        };
        let name = program.text();
        name.is_some_and(|name| STILL.contains(&name) || looks::is_looking(name, arguments))
    };
    if runs.anything || !runs.programs.iter().all(is_still) {
        return Denial::Possible;
    }
    Denial::No
}

fn read<'p>(rule: &'p PermissionRule, text: &str) -> Denial<'p> {
    let runs = Runs::of(text);
    let is_file = |word: &&Word| {
        let text = word.prefix();
        !word.is_computed() && !text.starts_with(['-', '+']) && text != "/dev/null"
    };
    let reads = |run: &ProgramRun| {
        let Some((program, arguments)) = run.words.split_first() else {
            return false;
        };
        let name = program.text().map_or("", base_name);
        let operands = arguments.iter().filter(is_file).count();
        run.certainty == Certainty::Sure
            && ((READERS.contains(&name) && operands > 0)
                || (SEARCHERS.contains(&name) && operands > 1))
    };
    if runs.opened().iter().any(|word| is_file(&word)) || runs.programs.iter().any(reads) {
        return Denial::By(rule);
    }
    let names_something = |run: &ProgramRun| {
        let Some((program, arguments)) = run.words.split_first() else {
            return false;
        };
        let is_still = program.text().is_some_and(|name| STILL.contains(&name));
        let mut words = arguments.iter();
        !is_still && words.any(|word| !word.prefix().starts_with(['-', '+']))
    };
    if runs.anything || runs.programs.iter().any(names_something) {
        return Denial::Possible;
    }
    Denial::No
}
