//! Lines that read the files that they name and no others: no folder is searched, and no pattern is
//! expanded. Where deny rules for reading are in force, the rule `look` covers such lines alone.

use super::{Place, places};
use crate::policy::shell::reader::{Script, Simple};
use crate::policy::shell::word::Word;

/// Programs that read what they name, or nothing. None of them goes into a folder.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "cat", "tac", "head", "tail", "wc", "nl", "cut", "paste", "join", "comm", "fold", "fmt", "expand", "unexpand", "rev", "column", "md5sum",
    "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "stat", "cmp", "hexdump", "hd", "od", "realpath",
    "readlink", "base64", "base32", "file", "tr", "basename", "dirname", "echo", "printf", "seq", "true", "false", ":", "uname", "arch", "id",
    "whoami", "nproc", "which", "type", "pwd", "hostname", "date", "sort", "uniq", "sed", "jq", "xxd", "strings", "test", "[",
];

/// Commands of git that show neither files nor their names below a folder.
const OF_GIT: &[&str] = &["status", "branch", "rev-parse", "remote", "version"];

/// Returns the paths that a line reads, if it reads no others.
pub(crate) fn read_alone(text: &str) -> Option<Vec<Place>> {
    let script = Script::read(text);
    if !script.commands.iter().all(is_plain) {
        return None;
    }
    let places = places(text)?;
    (!places.iter().any(|place| place.is_pattern)).then_some(places)
}

fn is_plain(command: &Simple) -> bool {
    let Some((program, arguments)) = command.words.split_first() else {
        return true;
    };
    // Programs accept the beginning of a long option for the whole option.
    let has = |letters: &[char], long: &[&str]| {
        let mut options = arguments.iter().map(Word::prefix);
        options.any(|text| match text.strip_prefix("--") {
            Some(name) => long.iter().any(|start| name.starts_with(start)),
            None => text.starts_with('-') && text.contains(letters),
        })
    };
    match program.text() {
        // Without `-R` it shows names in one folder.
        Some("ls" | "dir") => !has(&['R'], &["r"]),
        // `-r` and `-d recurse` go into folders.
        Some("grep" | "egrep" | "fgrep") => !has(&['r', 'R', 'd', 'D'], &["r", "d"]),
        Some("git") => {
            let command = arguments.first().and_then(Word::text);
            command.is_some_and(|command| OF_GIT.contains(&command))
                && !has(&['u', 'v'], &["u", "v", "i"])
        }
        Some(name) => PLAIN.contains(&name),
        None => false,
    }
}
