//! Finds instructions: Markdown files that tell every agent how to work in a project or for a user.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use loopd_proto::params::discovery::{InstructionKind, InstructionLocation, PathKind};

use super::files::FolderReader;
use super::front_matter::{self, Words};
use super::{Discovered, Host, Problem};

/// The files of a project, the one for new instructions first.
const PROJECT_FILES: [(&str, InstructionKind); 4] = [
    (".github/copilot-instructions.md", InstructionKind::Repo),
    ("AGENTS.md", InstructionKind::Model),
    ("CLAUDE.md", InstructionKind::Model),
    ("GEMINI.md", InstructionKind::Model),
];
/// The folder of instructions for parts of a project, and how their file names end.
const PARTS_FOLDER: &str = ".github/instructions";
const PART_ENDING: &str = ".instructions.md";
/// The maximum depth to which that folder is searched.
const DEEPEST: usize = 4;
/// The user's own files, in the home of the daemon.
const USER_FILES: [&str; 2] = ["copilot-instructions.md", "AGENTS.md"];

/// A file or folder that is searched for instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionPlace {
    pub path: PathBuf,
    /// The path to show to people.
    pub label: String,
    pub kind: InstructionKind,
    pub location: InstructionLocation,
    pub shape: PathKind,
    pub preferred_for_creation: bool,
    pub project: Option<PathBuf>,
}

/// One file of instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub label: String,
    /// The whole file, front matter included.
    pub content: String,
    /// The file without its front matter.
    pub text: String,
    pub kind: InstructionKind,
    pub location: InstructionLocation,
    /// The files that they apply to; all when absent.
    pub apply_to: Option<Vec<String>>,
    pub description: Option<String>,
    pub project: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InstructionFrontMatter {
    #[serde(alias = "apply-to")]
    apply_to: Option<Words>,
    description: Option<String>,
}

/// Returns the files and folders of the projects, then those of the user.
pub fn places(host: Option<&Host>, projects: &[PathBuf]) -> Vec<InstructionPlace> {
    let mut places = Vec::new();
    for project in projects {
        let files = PROJECT_FILES.map(|(name, kind)| (name, kind, PathKind::File));
        let parts = (PARTS_FOLDER, InstructionKind::Vscode, PathKind::Directory);
        let all = files.into_iter().chain([parts]).enumerate();
        places.extend(all.map(|(index, (name, kind, shape))| InstructionPlace {
            path: project.join(name),
            label: name.to_owned(),
            kind,
            location: InstructionLocation::Repository,
            shape,
            preferred_for_creation: index == 0,
            project: Some(project.clone()),
        }));
    }
    if let Some(host) = host {
        let files = USER_FILES.iter().enumerate();
        places.extend(files.map(|(index, name)| {
            let path = host.home.join(name);
            InstructionPlace {
                label: path.to_string_lossy().into_owned(),
                path,
                kind: InstructionKind::Home,
                location: InstructionLocation::User,
                shape: PathKind::File,
                preferred_for_creation: index == 0,
                project: None,
            }
        }));
    }
    places
}

/// Reads the instructions of these files and folders.
pub fn discover(places: &[InstructionPlace]) -> Discovered<InstructionFile> {
    let mut found = Discovered::default();
    for place in places {
        let reader = match &place.project {
            Some(project) => FolderReader::within(project),
            None => FolderReader::own(),
        };
        match place.shape {
            PathKind::File => found.add(read(&reader, place, &place.path, &place.label)),
            PathKind::Directory => parts(&reader, place, &mut found),
        }
    }
    found
}

/// Reads the files below a folder. The depth is bounded, so that links in circles end.
fn parts(reader: &FolderReader, place: &InstructionPlace, found: &mut Discovered<InstructionFile>) {
    let mut waiting = vec![(place.path.clone(), place.label.clone(), 0)];
    while let Some((folder, label, depth)) = waiting.pop() {
        let entries = match reader.entries(&folder) {
            Ok(entries) => entries,
            Err(problem) => {
                found.problems.push(problem);
                continue;
            }
        };
        for entry in entries {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            let label = format!("{label}/{name}");
            if name.ends_with(PART_ENDING) {
                found.add(read(reader, place, &entry, &label));
            } else if depth < DEEPEST && reader.is_folder(&entry) {
                waiting.push((entry, label, depth + 1));
            }
        }
    }
}

fn read(
    reader: &FolderReader,
    place: &InstructionPlace,
    path: &Path,
    label: &str,
) -> Result<Option<InstructionFile>, Problem> {
    let Some(content) = reader.text(path)? else {
        return Ok(None);
    };
    let (front, text) = match place.shape {
        PathKind::Directory => front_matter::read::<InstructionFrontMatter>(path, &content)?,
        // These files have no front matter: three dashes at the beginning are Markdown.
        PathKind::File => (InstructionFrontMatter::default(), content.as_str()),
    };
    Ok(Some(InstructionFile {
        path: path.to_owned(),
        label: label.to_owned(),
        text: text.trim().to_owned(),
        kind: place.kind,
        location: place.location,
        apply_to: front.apply_to.map(Words::list),
        description: front.description,
        project: place.project.clone(),
        content,
    }))
}
