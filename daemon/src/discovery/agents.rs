//! Finds custom agents: Markdown files whose front matter describes the agent and whose text is its
//! prompt.

use std::path::{Path, PathBuf};

use super::files::FolderReader;
use super::{Discovered, Host, OWN_FOLDER, Problem};

mod definition;
mod parse;
mod restrictions;

pub use definition::{
    AgentDefinition, AgentMode, AgentOrigin, Isolation, MemoryScope, ModelPolicy, PermissionMode,
};
use parse::without_effect;
pub use parse::{EFFORTS, parse, wrong_name};

/// The folders of a project, the one for new agents first.
const PROJECT_FOLDERS: [&str; 3] = [".github/agents", ".claude/agents", ".opencode/agent"];
/// The user's folders besides the one in the daemon's home.
const USER_FOLDERS: [&str; 2] = [".claude/agents", ".config/opencode/agent"];

/// The maximum number of agents, and of bytes in all their files.
const MOST_AGENTS: usize = 500;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// How much of a file that cannot be used is searched for the name of its agent, in bytes.
const LONGEST_FRONT: u64 = 16 * 1024;

/// A folder that is searched for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    pub path: PathBuf,
    pub origin: AgentOrigin,
    pub preferred_for_creation: bool,
    /// The project that links must not lead out of.
    pub project: Option<PathBuf>,
}

/// Returns the folders of the projects, then those of the user.
pub fn folders(host: Option<&Host>, projects: &[PathBuf]) -> Vec<AgentFolder> {
    let mut folders = Vec::new();
    for project in projects {
        let own = format!("{OWN_FOLDER}/agents");
        let below = PROJECT_FOLDERS.into_iter().chain([own.as_str()]);
        folders.extend(below.enumerate().map(|(index, folder)| AgentFolder {
            path: project.join(folder),
            origin: AgentOrigin::Project,
            preferred_for_creation: index == 0,
            project: Some(project.clone()),
        }));
    }
    if let Some(host) = host {
        let shared = host.user.iter();
        let shared = shared.flat_map(|user| USER_FOLDERS.map(|below| user.join(below)));
        let own = [host.home.join("agents")];
        let all = own.into_iter().chain(shared).enumerate();
        folders.extend(all.map(|(index, path)| AgentFolder {
            path,
            origin: AgentOrigin::User,
            preferred_for_creation: index == 0,
            project: None,
        }));
    }
    folders
}

/// Returns the folders that a client names. Their agents count as the user's own.
pub fn named_folders(named: &[PathBuf]) -> Vec<AgentFolder> {
    let folders = named.iter().map(|folder| AgentFolder {
        path: folder.clone(),
        origin: AgentOrigin::User,
        preferred_for_creation: false,
        project: Some(folder.clone()),
    });
    folders.collect()
}

/// Returns the folders of plugins, given their roots.
pub fn plugin_folders(plugins: &[PathBuf]) -> Vec<AgentFolder> {
    let folders = plugins.iter().map(|plugin| AgentFolder {
        path: plugin.join("agents"),
        origin: AgentOrigin::Plugin,
        preferred_for_creation: false,
        project: Some(plugin.clone()),
    });
    folders.collect()
}

/// Reads the agents of these folders, in their order.
pub fn discover(folders: &[AgentFolder]) -> Discovered<AgentDefinition> {
    let mut found = Discovered::default();
    let mut room = MOST_BYTES;
    for folder in folders {
        let reader = match &folder.project {
            Some(project) => FolderReader::within(project),
            None => FolderReader::own(),
        };
        match reader.entries(&folder.path) {
            Ok(entries) => {
                for file in entries.iter().filter(|file| is_markdown(file)) {
                    if found.items.len() + found.problems.len() == MOST_AGENTS {
                        let what = format!(
                            "the rest is not read: there are more than {MOST_AGENTS} agents"
                        );
                        found.problems.push(Problem::new(&folder.path, what));
                        return found;
                    }
                    let mut remarks = Vec::new();
                    found.add(read(&reader, folder, file, &mut room, &mut remarks));
                    found.problems.append(&mut remarks);
                }
            }
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

/// Returns the names that the agent of a file has which cannot be used: that of the file, and the one that
/// the file gives.
pub fn names_of_broken(path: &Path) -> Vec<String> {
    use std::io::Read as _;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(".agent").unwrap_or(&stem).to_owned();
    let mut beginning = Vec::new();
    if let Ok(file) = crate::regular_file::open(path) {
        // What cannot be read gives no name.
        file.take(LONGEST_FRONT).read_to_end(&mut beginning).ok();
    }
    let text = String::from_utf8_lossy(&beginning);
    let mut lines = text
        .lines()
        .skip(1)
        .take_while(|line| line.trim_end() != "---");
    let given = lines.find_map(|line| line.strip_prefix("name:"));
    let given = given.map(|name| name.trim().trim_matches(['"', '\'']).to_owned());
    std::iter::once(stem).chain(given).collect()
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
        && path
            .file_stem()
            .is_some_and(|stem| !stem.eq_ignore_ascii_case("readme"))
}

fn read(
    reader: &FolderReader,
    folder: &AgentFolder,
    path: &Path,
    room: &mut usize,
    remarks: &mut Vec<Problem>,
) -> Result<Option<AgentDefinition>, Problem> {
    let Some(text) = reader.text(path)? else {
        if path.is_symlink() {
            return Err(Problem::new(
                path,
                "is a link to a file that does not exist",
            ));
        }
        return Ok(None);
    };
    let Some(left) = room.checked_sub(text.len()) else {
        let what = format!(
            "is not read: the files of agents take more than {} MiB together",
            MOST_BYTES / 1024 / 1024
        );
        return Err(Problem::new(path, what));
    };
    *room = left;
    let agent = parse(path, &text, folder.origin)?;
    remarks.extend(without_effect(path, &text));
    Ok(Some(agent))
}
