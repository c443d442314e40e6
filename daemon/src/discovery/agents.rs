//! Custom agents: Markdown files whose front matter says who they are and whose text is their
//! prompt.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use loopd_proto::params::discovery::AgentSource;

use super::files::Reader;
use super::front_matter::{self, Words};
use super::{Found, Host, OWN_FOLDER, Problem};

/// The folders of a project, the one for new agents first.
const PROJECT_FOLDERS: [&str; 3] = [".github/agents", ".claude/agents", ".opencode/agent"];
/// The user's own folders besides ours.
const USER_FOLDERS: [&str; 2] = [".claude/agents", ".config/opencode/agent"];

/// A folder in which agents are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    pub path: PathBuf,
    pub source: AgentSource,
    pub preferred_for_creation: bool,
    pub project: Option<PathBuf>,
}

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    pub name: String,
    pub display_name: Option<String>,
    pub description: String,
    pub prompt: String,
    /// The tools it may use; all when absent.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Vec<String>,
    /// The model it wants; the session's own when absent.
    pub model: Option<String>,
    pub effort: Option<String>,
    pub permission_mode: Option<String>,
    pub background: bool,
    pub isolation: Option<String>,
    pub max_turns: Option<u32>,
    pub mcp_servers: Option<Value>,
    pub skills: Option<Vec<String>>,
    pub initial_prompt: Option<String>,
    pub user_invocable: bool,
    pub source: AgentSource,
    pub path: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Front {
    name: Option<String>,
    #[serde(alias = "display-name")]
    display_name: Option<String>,
    description: Option<String>,
    tools: Option<Words>,
    #[serde(alias = "disallowed-tools")]
    disallowed_tools: Option<Words>,
    model: Option<String>,
    effort: Option<String>,
    #[serde(alias = "permission-mode")]
    permission_mode: Option<String>,
    background: bool,
    isolation: Option<String>,
    #[serde(alias = "max-turns")]
    max_turns: Option<u32>,
    #[serde(alias = "mcp-servers")]
    mcp_servers: Option<Value>,
    skills: Option<Words>,
    #[serde(alias = "initial-prompt")]
    initial_prompt: Option<String>,
    #[serde(alias = "user-invocable")]
    user_invocable: Option<bool>,
}

/// The folders of projects, then the user's own.
pub fn folders(host: Option<&Host>, projects: &[PathBuf]) -> Vec<AgentFolder> {
    let mut folders = Vec::new();
    for project in projects {
        let own = format!("{OWN_FOLDER}/agents");
        let below = PROJECT_FOLDERS.into_iter().chain([own.as_str()]);
        folders.extend(below.enumerate().map(|(index, folder)| AgentFolder {
            path: project.join(folder),
            source: AgentSource::Project,
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
            source: AgentSource::User,
            preferred_for_creation: index == 0,
            project: None,
        }));
    }
    folders
}

/// Reads the agents of these folders.
pub fn discover(folders: &[AgentFolder]) -> Found<AgentDefinition> {
    let mut found = Found::default();
    for folder in folders {
        let reader = match &folder.project {
            Some(project) => Reader::within(project),
            None => Reader::own(),
        };
        match reader.entries(&folder.path) {
            Ok(entries) => {
                for file in entries.iter().filter(|file| is_markdown(file)) {
                    found.add(read(&reader, folder, file));
                }
            }
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
        && path
            .file_stem()
            .is_some_and(|stem| !stem.eq_ignore_ascii_case("readme"))
}

fn read(
    reader: &Reader,
    folder: &AgentFolder,
    path: &Path,
) -> Result<Option<AgentDefinition>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(None);
    };
    let (front, body) = front_matter::read::<Front>(path, &text)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(".agent").unwrap_or(&stem).to_owned();
    let name = front.name.unwrap_or(stem);
    if name.trim().is_empty() {
        return Err(Problem::at(path, 1, "the agent has no name"));
    }
    let Some(description) = front.description.filter(|text| !text.trim().is_empty()) else {
        let what =
            "the front matter has no `description`, so that nobody can know what the agent is for";
        return Err(Problem::at(path, 1, what));
    };
    let (tools, off) = match front.tools {
        // Names that are on or off: the rest stays as it is.
        Some(Words::Switches(switches)) => {
            let off = switches.into_iter().filter(|(_, on)| !on);
            (None, off.map(|(name, _)| name).collect())
        }
        words => (words.map(Words::list), Vec::new()),
    };
    let disallowed = front.disallowed_tools.map(Words::list).unwrap_or_default();
    Ok(Some(AgentDefinition {
        name,
        display_name: front.display_name,
        description,
        prompt: body.trim().to_owned(),
        // A list that names everything is no list.
        tools: tools.filter(|tools| !tools.iter().any(|tool| tool == "*")),
        disallowed_tools: disallowed.into_iter().chain(off).collect(),
        model: front.model.filter(|model| model != "inherit"),
        effort: front.effort,
        permission_mode: front.permission_mode,
        background: front.background,
        isolation: front.isolation,
        max_turns: front.max_turns,
        mcp_servers: front.mcp_servers,
        skills: front.skills.map(Words::list),
        initial_prompt: front.initial_prompt,
        user_invocable: front.user_invocable.unwrap_or(true),
        source: folder.source,
        path: path.to_owned(),
    }))
}
