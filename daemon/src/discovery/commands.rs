//! Finds slash commands in files: Markdown whose front matter describes the command and whose text is
//! the prompt.
//!
//! Of two commands with one name the first one keeps it. The order is: the project, its nearest folder
//! first, then the user; within each the folders of loopd, of Copilot, of Claude, of opencode.
//! [`name_all`] names those that lose `project:…` or `user:…`, so that they can still be run.

mod arguments;
mod clash;
mod definition;
mod parse;
mod quoting;
mod template;

use std::path::{Path, PathBuf};

use super::files::FolderReader;
use super::{Discovered, Host, OWN_FOLDER, Problem};

pub use arguments::{LONGEST_TEXT, NotFilled, Wanted};
pub use clash::name_all;
pub use definition::{CommandDefinition, CommandFormat, CommandOrigin, CommandPlace};
pub use template::{Segment, Template};

/// The folders of a project and their formats, besides our own.
const PROJECT_FOLDERS: [(&str, CommandFormat); 4] = [
    (".github/prompts", CommandFormat::Prompt),
    (".claude/commands", CommandFormat::Claude),
    (".opencode/command", CommandFormat::Opencode),
    (".opencode/commands", CommandFormat::Opencode),
];
/// The user's folders and their formats, besides the one in the daemon's home.
const USER_FOLDERS: [(&str, CommandFormat); 3] = [
    (".claude/commands", CommandFormat::Claude),
    (".config/opencode/command", CommandFormat::Opencode),
    (".config/opencode/commands", CommandFormat::Opencode),
];

/// The most commands, the most bytes in all their files, and how deep folders are searched.
const MOST_COMMANDS: usize = 500;
const MOST_BYTES: usize = 4 * 1024 * 1024;
const DEEPEST: usize = 4;

/// A folder that is searched for commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFolder {
    pub path: PathBuf,
    pub format: CommandFormat,
    /// The project that it belongs to, and that links must not lead out of; `None` for the user's own.
    pub project: Option<PathBuf>,
}

/// Returns the folders of the projects, then those of the user.
pub fn folders(host: Option<&Host>, projects: &[PathBuf]) -> Vec<CommandFolder> {
    let mut folders = Vec::new();
    for project in projects {
        let own = (format!("{OWN_FOLDER}/commands"), CommandFormat::Claude);
        let others = PROJECT_FOLDERS.map(|(below, format)| (below.to_owned(), format));
        let all = [own].into_iter().chain(others);
        folders.extend(all.map(|(below, format)| CommandFolder {
            path: project.join(below),
            format,
            project: Some(project.clone()),
        }));
    }
    if let Some(host) = host {
        let own = [(host.home.join("commands"), CommandFormat::Claude)];
        let shared = host.user.iter().flat_map(|user| {
            let below = USER_FOLDERS.iter();
            below.map(|(below, format)| (user.join(below), *format))
        });
        folders.extend(
            own.into_iter()
                .chain(shared)
                .map(|(path, format)| CommandFolder {
                    path,
                    format,
                    project: None,
                }),
        );
    }
    folders
}

/// Reads the commands of these folders, in their order.
pub fn discover(folders: &[CommandFolder]) -> Discovered<CommandDefinition> {
    let mut search = Search {
        found: Discovered::default(),
        room: MOST_BYTES,
        is_full: false,
    };
    for folder in folders {
        let reader = match &folder.project {
            Some(project) => FolderReader::within(project),
            None => FolderReader::own(),
        };
        search.folder(&reader, folder, &folder.path, DEEPEST);
    }
    search.found
}

/// A search with its bounds.
struct Search {
    found: Discovered<CommandDefinition>,
    /// How many bytes may still be read.
    room: usize,
    /// Whether the most commands were found.
    is_full: bool,
}

impl Search {
    fn folder(&mut self, reader: &FolderReader, of: &CommandFolder, path: &Path, deep: usize) {
        let entries = match reader.entries(path) {
            Ok(entries) => entries,
            Err(problem) => return self.found.problems.push(problem),
        };
        for entry in entries {
            if self.is_full {
                return;
            }
            if is_command(&entry, of.format) {
                self.file(reader, of, &entry);
            } else if of.format.has_subfolders() && reader.is_folder(&entry) {
                if deep == 0 {
                    let what = format!("is not searched: it lies deeper than {DEEPEST} folders");
                    self.found.problems.push(Problem::new(&entry, what));
                } else {
                    self.folder(reader, of, &entry, deep - 1);
                }
            }
        }
    }

    fn file(&mut self, reader: &FolderReader, of: &CommandFolder, path: &Path) {
        if self.found.items.len() + self.found.problems.len() >= MOST_COMMANDS {
            self.is_full = true;
            let what =
                format!("the rest is not read: there are more than {MOST_COMMANDS} commands");
            self.found.problems.push(Problem::new(path, what));
            return;
        }
        let mut remarks = Vec::new();
        let outcome = self.read(reader, of, path, &mut remarks);
        self.found.add(outcome);
        self.found.problems.append(&mut remarks);
    }

    fn read(
        &mut self,
        reader: &FolderReader,
        of: &CommandFolder,
        path: &Path,
        remarks: &mut Vec<Problem>,
    ) -> Result<Option<CommandDefinition>, Problem> {
        let Some(text) = reader.text(path)? else {
            let what = "is a link to a file that does not exist";
            return if path.is_symlink() {
                Err(Problem::new(path, what))
            } else {
                Ok(None)
            };
        };
        let Some(left) = self.room.checked_sub(text.len()) else {
            let what = format!(
                "is not read: the files of commands take more than {} MiB together",
                MOST_BYTES / 1024 / 1024
            );
            return Err(Problem::new(path, what));
        };
        self.room = left;
        parse::parse(of, path, &text, remarks)
    }
}

/// Returns whether a file of a folder is a command. A README tells people about the others.
fn is_command(path: &Path, format: CommandFormat) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(format.extension());
    stem.is_some_and(|stem| !stem.is_empty() && !stem.eq_ignore_ascii_case("readme"))
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
