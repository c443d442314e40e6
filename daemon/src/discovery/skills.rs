//! Skills: folders with a `SKILL.md` that tells what they are for and how they are done.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use loopd_proto::params::discovery::SkillSource;

use super::files::Reader;
use super::{Found, Host, OWN_FOLDER, Problem, front_matter};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// The folders of a project, the one for new skills first.
const PROJECT_FOLDERS: [&str; 3] = [".github/skills", ".agents/skills", ".claude/skills"];

/// A folder in which skills are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    pub path: PathBuf,
    pub source: SkillSource,
    pub preferred_for_creation: bool,
    pub project: Option<PathBuf>,
}

/// A skill as its file describes it; how it is done is read from the file when it is used.
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
struct Front {
    name: Option<String>,
    description: Option<String>,
    argument_hint: Option<String>,
    user_invocable: Option<bool>,
}

/// The folders of projects, then the user's own, then those that were named.
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

/// Reads the skills of these folders; one that two folders show is told once.
pub fn discover(folders: &[SkillFolder]) -> Found<SkillDefinition> {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    for folder in folders {
        let reader = match (folder.source, &folder.project) {
            (_, Some(project)) => Reader::within(project),
            (SkillSource::Custom, None) => Reader::within(&folder.path),
            (
                SkillSource::Project | SkillSource::PersonalCopilot | SkillSource::PersonalAgents,
                None,
            ) => Reader::own(),
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

/// The skills of a folder: it may be one itself.
fn skill_files(reader: &Reader, folder: &SkillFolder, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
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
    reader: &Reader,
    folder: &SkillFolder,
    path: &Path,
) -> Result<Option<SkillDefinition>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(None);
    };
    let (front, _) = front_matter::read::<Front>(path, &text)?;
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
