//! Finds skills: folders with a `SKILL.md` that says what the skill is for and how to do it.
//!
//! Of two skills with one name the first one counts. The order is: the folder of the session and those
//! above it up to the root of the project, each with `.github/skills`, `.agents/skills`, `.claude/skills`
//! and our own; the user's folders; plugins; folders that are named.

mod definition;
mod parse;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::SkillSource;

use super::files::FolderReader;
use super::project_folders::project_folders;
use super::{Host, OWN_FOLDER, Problem};

pub use definition::{SkillDefinition, SkillPlace, is_same_skill};
pub use parse::ParsedSkill;

/// The file that makes a folder a skill, and another spelling that is read, too.
const FILE: &str = "SKILL.md";
const OTHER_FILE: &str = "skill.md";
/// The folders of a project, the one for new skills first.
const PROJECT_FOLDERS: [&str; 3] = [".github/skills", ".agents/skills", ".claude/skills"];
/// The user's folders besides those of Copilot and of the daemon.
const USER_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The variable with further folders, with commas between them.
const DIRECTORIES_VARIABLE: &str = "COPILOT_SKILLS_DIRS";

/// The most skills, and the most bytes in all their files.
const MOST_SKILLS: usize = 500;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A folder that is searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    pub path: PathBuf,
    pub source: SkillSource,
    pub preferred_for_creation: bool,
    pub project: Option<PathBuf>,
    pub plugin: Option<String>,
}

/// The skills that were found, and what is wrong with files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundSkills {
    pub skills: Vec<SkillDefinition>,
    /// What is wrong with skills that are used all the same.
    pub warnings: Vec<Problem>,
    /// Why files are not used.
    pub errors: Vec<Problem>,
}

impl FoundSkills {
    /// Returns all problems, those of unusable files first.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.errors.iter().chain(&self.warnings)
    }
}

/// Where skills are looked for.
#[derive(Debug, Clone, Default)]
pub struct SkillPlaces {
    /// The user's own places; `None` if they are left out.
    pub host: Option<Host>,
    /// The folders of projects, in the order in which they count.
    pub projects: Vec<(PathBuf, SkillSource)>,
    /// The roots of plugins.
    pub plugins: Vec<PathBuf>,
    /// Folders that a client or the environment names.
    pub named: Vec<PathBuf>,
}

/// Returns the folders of the project of a session that works in `cwd`, that of the session first.
pub fn project_places(cwd: &Path, root: &Path) -> Vec<(PathBuf, SkillSource)> {
    let down = project_folders(cwd, root).into_iter();
    let up = down.rev().enumerate().map(|(above, folder)| {
        let source = if above == 0 {
            SkillSource::Project
        } else {
            SkillSource::Inherited
        };
        (folder, source)
    });
    up.collect()
}

/// Returns the folders that the environment names.
pub fn named_by_environment(env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = env.get(DIRECTORIES_VARIABLE).map(String::as_str);
    let named = named.unwrap_or_default().split(',').map(str::trim);
    let named = named.filter(|folder| !folder.is_empty());
    let user = env.get("HOME").filter(|user| !user.is_empty());
    let named = named.map(|folder| match (folder.strip_prefix("~/"), user) {
        (Some(below), Some(user)) => Path::new(user).join(below),
        _ => PathBuf::from(folder),
    });
    named.collect()
}

impl SkillPlaces {
    /// Returns the folders to search, in the order in which they count.
    pub fn folders(&self) -> Vec<SkillFolder> {
        let mut folders = Vec::new();
        for (project, source) in &self.projects {
            let own = format!("{OWN_FOLDER}/skills");
            let below = PROJECT_FOLDERS.into_iter().chain([own.as_str()]);
            folders.extend(below.enumerate().map(|(index, folder)| SkillFolder {
                path: project.join(folder),
                source: *source,
                preferred_for_creation: *source == SkillSource::Project && index == 0,
                project: Some(project.clone()),
                plugin: None,
            }));
        }
        if let Some(host) = &self.host {
            let own = host.copilot.iter().chain([&host.home]).enumerate();
            folders.extend(own.map(|(index, home)| SkillFolder {
                preferred_for_creation: index == 0,
                ..unowned(home.join("skills"), SkillSource::PersonalCopilot)
            }));
            let shared = host.user.iter();
            let shared = shared.flat_map(|user| USER_FOLDERS.map(|below| user.join(below)));
            folders.extend(shared.map(|path| unowned(path, SkillSource::PersonalAgents)));
        }
        folders.extend(self.plugins.iter().map(|plugin| {
            SkillFolder {
                project: Some(plugin.clone()),
                plugin: plugin
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
                ..unowned(plugin.join("skills"), SkillSource::Plugin)
            }
        }));
        let named = self.named.iter();
        folders.extend(named.map(|path| unowned(path.clone(), SkillSource::Custom)));
        folders
    }

    /// Returns whether any folder exists. This is much cheaper than reading them.
    pub fn has_folders(&self) -> bool {
        self.folders().iter().any(|folder| folder.path.is_dir())
    }
}

fn unowned(path: PathBuf, source: SkillSource) -> SkillFolder {
    SkillFolder {
        path,
        source,
        preferred_for_creation: false,
        project: None,
        plugin: None,
    }
}

/// Reads the skills of these folders. Of two with one name the first one counts.
pub fn discover(folders: &[SkillFolder]) -> FoundSkills {
    let mut found = FoundSkills::default();
    let mut seen = HashSet::new();
    let mut room = MOST_BYTES;
    let mut looked_at = 0;
    for folder in folders {
        let reader = reader(folder);
        for file in skill_files(&reader, folder, &mut found) {
            let real = std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if seen.contains(&real) {
                continue;
            }
            if looked_at == MOST_SKILLS {
                let what =
                    format!("the rest is not read: there are more than {MOST_SKILLS} skills");
                found.errors.push(Problem::new(&file, what));
                return found;
            }
            looked_at += 1;
            let mut warnings = Vec::new();
            match read(&reader, folder, &file, &mut room, &mut warnings) {
                Ok(Some(skill)) => {
                    // A link that is not followed here may be followed from another folder.
                    seen.insert(real);
                    add(&mut found, skill.definition, warnings);
                }
                Ok(None) => {}
                Err(problem) => found.errors.push(problem),
            }
        }
    }
    found
}

/// Reads a skill again, with its text. `None` if its file is gone.
pub fn read_again(
    skill: &SkillDefinition,
    warnings: &mut Vec<Problem>,
) -> Result<Option<ParsedSkill>, Problem> {
    let folder = SkillFolder {
        path: skill.folder().unwrap_or(Path::new("")).to_owned(),
        source: skill.source,
        preferred_for_creation: false,
        project: skill.project.clone(),
        plugin: skill.plugin.clone(),
    };
    let mut room = MOST_BYTES;
    read(&reader(&folder), &folder, &skill.path, &mut room, warnings)
}

/// Parses the text of a skill that a client provides.
pub fn parse_provided(name: &str, text: &str) -> Result<ParsedSkill, Problem> {
    let folder = unowned(PathBuf::new(), SkillSource::Sdk);
    // The folder of a skill has its name, and a client's skill is in none.
    let path = Path::new(name).join(FILE);
    parse::parse(&folder, &path, text, &mut Vec::new())
}

fn reader(folder: &SkillFolder) -> FolderReader {
    match (folder.source, &folder.project) {
        (_, Some(project)) => FolderReader::within(project),
        (SkillSource::Custom, None) => FolderReader::within(&folder.path),
        (
            SkillSource::Project
            | SkillSource::Inherited
            | SkillSource::PersonalCopilot
            | SkillSource::PersonalAgents
            | SkillSource::Plugin
            | SkillSource::Sdk,
            None,
        ) => FolderReader::own(),
    }
}

/// Adds a skill, unless an earlier one has its name. In the same folder that is a mistake; in another
/// one the nearest counts, as people expect.
fn add(found: &mut FoundSkills, skill: SkillDefinition, warnings: Vec<Problem>) {
    let mut known = found.skills.iter();
    let Some(known) = known.find(|known| is_same_skill(&known.name, &skill.name)) else {
        found.warnings.extend(warnings);
        found.skills.push(skill);
        return;
    };
    let beside =
        |skill: &SkillDefinition| skill.folder().and_then(Path::parent).map(Path::to_owned);
    if beside(known) == beside(&skill) {
        let what = format!(
            "is not used: {} has the same name, `{}`",
            known.path.display(),
            skill.name
        );
        found.errors.push(Problem::new(&skill.path, what));
    }
}

/// Returns the skill files of a folder, which may be a skill itself.
fn skill_files(
    reader: &FolderReader,
    folder: &SkillFolder,
    found: &mut FoundSkills,
) -> Vec<PathBuf> {
    if let Some(file) = file_in(&folder.path) {
        return vec![file];
    }
    let entries = reader.entries(&folder.path).unwrap_or_else(|problem| {
        found.errors.push(problem);
        Vec::new()
    });
    let mut files = Vec::new();
    for entry in entries {
        if let Some(file) = file_in(&entry) {
            files.push(file);
        } else if let Some(why) = almost_a_skill(reader, &entry) {
            found.errors.push(Problem::new(&entry, why));
        }
    }
    files
}

fn file_in(folder: &Path) -> Option<PathBuf> {
    let files = [FILE, OTHER_FILE].map(|name| folder.join(name));
    files
        .into_iter()
        .find(|file| file.symlink_metadata().is_ok())
}

/// Returns why an entry of a folder of skills is no skill, if its author most likely took it for one.
fn almost_a_skill(reader: &FolderReader, entry: &Path) -> Option<&'static str> {
    let name = entry.file_name().unwrap_or_default().to_string_lossy();
    if !reader.is_folder(entry) {
        let stem = name.strip_suffix(".md")?;
        let is_readme = stem.eq_ignore_ascii_case("readme");
        return (!is_readme)
            .then_some("is not a skill: a skill is a folder with a SKILL.md; put it into one");
    }
    // A problem with the folder itself was reported with the folder above it.
    let below = reader.entries(entry).unwrap_or_default();
    let is_file = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.eq_ignore_ascii_case(FILE)
    };
    if below.iter().any(is_file) {
        return Some("is not a skill: its file has to be called SKILL.md, in capital letters");
    }
    let has_skills = below.iter().any(|path| file_in(path).is_some());
    has_skills.then_some("is not a skill: skills lie directly in the folder of skills, not deeper")
}

fn read(
    reader: &FolderReader,
    folder: &SkillFolder,
    path: &Path,
    room: &mut usize,
    warnings: &mut Vec<Problem>,
) -> Result<Option<ParsedSkill>, Problem> {
    let Some(text) = reader.text(path)? else {
        let what = "is a link to a file that does not exist";
        return if path.is_symlink() {
            Err(Problem::new(path, what))
        } else {
            Ok(None)
        };
    };
    let Some(left) = room.checked_sub(text.len()) else {
        let what = format!(
            "is not read: the files of skills take more than {} MiB together",
            MOST_BYTES / 1024 / 1024
        );
        return Err(Problem::new(path, what));
    };
    *room = left;
    parse::parse(folder, path, &text, warnings).map(Some)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
