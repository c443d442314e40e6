//! Finds skills: folders with a `SKILL.md` that describes the skill.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use loopd_proto::params::discovery::SkillSource;

use super::files::FolderReader;
use super::{Discovered, Host, OWN_FOLDER, Problem, front_matter};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// The folders of a project, the one for new skills first.
const PROJECT_FOLDERS: [&str; 3] = [".github/skills", ".agents/skills", ".claude/skills"];

/// A folder that is searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    pub path: PathBuf,
    pub source: SkillSource,
    pub preferred_for_creation: bool,
    pub project: Option<PathBuf>,
}

/// The front matter of a skill. Its text is read from the file when the skill is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDefinition {
    pub name: String,
    pub description: String,
    pub argument_hint: Option<String>,
    pub user_invocable: bool,
    pub source: SkillSource,
    pub path: PathBuf,
    pub project: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct SkillFrontMatter {
    name: Option<String>,
    description: Option<String>,
    argument_hint: Option<String>,
    user_invocable: Option<bool>,
}

/// Returns the folders of the projects, then those of the user, then the named ones.
pub fn folders(host: Option<&Host>, projects: &[PathBuf], named: &[PathBuf]) -> Vec<SkillFolder> {
    let mut folders = Vec::new();
    for project in projects {
        let own = format!("{OWN_FOLDER}/skills");
        let below = PROJECT_FOLDERS.into_iter().chain([own.as_str()]);
        folders.extend(below.enumerate().map(|(index, folder)| SkillFolder {
            path: project.join(folder),
            source: SkillSource::Project,
            preferred_for_creation: index == 0,
            project: Some(project.clone()),
        }));
    }
    if let Some(host) = host {
        let own = host.home.join("skills");
        folders.push(personal(own, SkillSource::PersonalCopilot));
        for below in [".agents/skills", ".claude/skills"] {
            let shared = host.user.as_ref().map(|user| user.join(below));
            let shared = shared.map(|path| personal(path, SkillSource::PersonalAgents));
            folders.extend(shared);
        }
    }
    folders.extend(named.iter().map(|path| SkillFolder {
        path: path.clone(),
        source: SkillSource::Custom,
        preferred_for_creation: false,
        project: None,
    }));
    folders
}

fn personal(path: PathBuf, source: SkillSource) -> SkillFolder {
    SkillFolder {
        path,
        preferred_for_creation: source == SkillSource::PersonalCopilot,
        source,
        project: None,
    }
}

/// Reads the skills of these folders. A skill in two folders is listed once.
pub fn discover(folders: &[SkillFolder]) -> Discovered<SkillDefinition> {
    let mut found = Discovered::default();
    let mut seen = HashSet::new();
    for folder in folders {
        let reader = match (folder.source, &folder.project) {
            (_, Some(project)) => FolderReader::within(project),
            (SkillSource::Custom, None) => FolderReader::within(&folder.path),
            (
                SkillSource::Project | SkillSource::PersonalCopilot | SkillSource::PersonalAgents,
                None,
            ) => FolderReader::own(),
        };
        for file in skill_files(&reader, folder, &mut found.problems) {
            let real = std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if seen.insert(real) {
                found.add(read(&reader, folder, &file));
            }
        }
    }
    found
}

/// Returns the skill files of a folder, which may be a skill itself.
fn skill_files(
    reader: &FolderReader,
    folder: &SkillFolder,
    problems: &mut Vec<Problem>,
) -> Vec<PathBuf> {
    if folder.path.join(FILE).is_file() {
        return vec![folder.path.join(FILE)];
    }
    let entries = reader.entries(&folder.path).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    entries
        .into_iter()
        .map(|entry| entry.join(FILE))
        .filter(|file| file.symlink_metadata().is_ok())
        .collect()
}

fn read(
    reader: &FolderReader,
    folder: &SkillFolder,
    path: &Path,
) -> Result<Option<SkillDefinition>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(None);
    };
    let (front, _) = front_matter::read::<SkillFrontMatter>(path, &text)?;
    let own_name = path.parent().and_then(Path::file_name);
    let own_name = own_name.map(|name| name.to_string_lossy().into_owned());
    let name = front.name.or(own_name).unwrap_or_default();
    if name.trim().is_empty() {
        return Err(Problem::at(path, 1, "the skill has no name"));
    }
    let Some(description) = front.description.filter(|text| !text.trim().is_empty()) else {
        let what =
            "the front matter has no `description`, so that nobody can know when to use the skill";
        return Err(Problem::at(path, 1, what));
    };
    Ok(Some(SkillDefinition {
        name,
        description,
        argument_hint: front.argument_hint,
        user_invocable: front.user_invocable.unwrap_or(true),
        source: folder.source,
        path: path.to_owned(),
        project: folder.project.clone(),
    }))
}
