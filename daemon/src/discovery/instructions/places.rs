//! The files and folders in which instructions are looked for.

use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{InstructionKind, InstructionLocation, PathKind};

use crate::discovery::Host;

/// The files of a folder of a project, the one for new instructions first.
const PROJECT_FILES: [(&str, InstructionKind); 8] = [
    (".github/copilot-instructions.md", InstructionKind::Repo),
    (OVERRIDE, InstructionKind::Model),
    (OVERRIDDEN, InstructionKind::Model),
    (".claude/CLAUDE.md", InstructionKind::Model),
    ("CLAUDE.md", InstructionKind::Model),
    ("CLAUDE.local.md", InstructionKind::Model),
    (".gemini/GEMINI.md", InstructionKind::Model),
    ("GEMINI.md", InstructionKind::Model),
];
/// Of these two files of one folder, only the first counts.
const OVERRIDE: &str = "AGENTS.override.md";
const OVERRIDDEN: &str = "AGENTS.md";
/// The folder of instructions for parts of a project.
const PARTS_FOLDER: &str = ".github/instructions";
/// The files in the home of the daemon, the one for new instructions first.
const HOME_FILES: [&str; 3] = ["copilot-instructions.md", OVERRIDE, OVERRIDDEN];
/// The files in the folder of Copilot, and its folder of instructions.
const COPILOT_FILES: [&str; 2] = ["copilot-instructions.md", OVERRIDDEN];
const COPILOT_PARTS: &str = "instructions";
/// The files of other programs in the home directory of the user.
const USER_FILES: [&str; 6] = [
    ".agents/AGENTS.md",
    ".codex/AGENTS.override.md",
    ".codex/AGENTS.md",
    ".claude/CLAUDE.md",
    ".gemini/GEMINI.md",
    ".config/opencode/AGENTS.md",
];

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
    /// The folder that links and imports must not lead out of; `None` for files of the user.
    pub project: Option<PathBuf>,
    /// The home directory of the user, for imports of the user's own files.
    pub user: Option<PathBuf>,
}

impl InstructionPlace {
    /// Returns the file that does not count if this one has a text.
    pub(super) fn overrides(&self) -> Option<PathBuf> {
        let name = self.path.file_name()?;
        (name == OVERRIDE).then(|| self.path.with_file_name(OVERRIDDEN))
    }
}

/// Returns the files and folders of the projects, then those of the user.
pub fn places(host: Option<&Host>, projects: &[PathBuf]) -> Vec<InstructionPlace> {
    let mut places: Vec<InstructionPlace> = Vec::new();
    for project in projects {
        places.extend(folder_places(
            project,
            project,
            InstructionLocation::Repository,
        ));
        places.push(parts_of(project, project));
    }
    places.extend(host.map(user_places).unwrap_or_default());
    places
}

/// Returns where the instructions of a session are: those of the user, those of the project from its
/// root down to the directory of the session, then those of the folders that a client names.
pub fn session_places(
    host: Option<&Host>,
    root: &Path,
    folders: &[PathBuf],
    named: &[PathBuf],
) -> Vec<InstructionPlace> {
    let mut places = host.map(user_places).unwrap_or_default();
    for folder in folders {
        let location = if folder == root {
            InstructionLocation::Repository
        } else {
            InstructionLocation::WorkingDirectory
        };
        places.extend(folder_places(folder, root, location));
        places.push(parts_of(folder, root));
    }
    for folder in named {
        places.extend(folder_places(
            folder,
            folder,
            InstructionLocation::Repository,
        ));
        places.push(parts_of(folder, folder));
    }
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|place| seen.insert(place.path.clone()));
    places
}

/// Returns the files of one folder of a project, without its folder of instructions for parts.
pub(super) fn folder_places(
    folder: &Path,
    root: &Path,
    location: InstructionLocation,
) -> Vec<InstructionPlace> {
    let files = PROJECT_FILES.iter().enumerate();
    let places = files.map(|(index, (name, kind))| {
        let path = folder.join(name);
        InstructionPlace {
            label: label(&path, root),
            path,
            kind: *kind,
            location,
            shape: PathKind::File,
            preferred_for_creation: index == 0,
            project: Some(root.to_owned()),
            user: None,
        }
    });
    places.collect()
}

fn parts_of(folder: &Path, root: &Path) -> InstructionPlace {
    let path = folder.join(PARTS_FOLDER);
    InstructionPlace {
        label: label(&path, root),
        path,
        kind: InstructionKind::Vscode,
        location: InstructionLocation::Repository,
        shape: PathKind::Directory,
        preferred_for_creation: false,
        project: Some(root.to_owned()),
        user: None,
    }
}

pub(super) fn label(path: &Path, root: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    inside.to_string_lossy().into_owned()
}

fn user_places(host: &Host) -> Vec<InstructionPlace> {
    let mut files: Vec<(PathBuf, PathKind)> = Vec::new();
    let mut add = |folder: &Path, names: &[&str]| {
        files.extend(names.iter().map(|name| (folder.join(name), PathKind::File)));
    };
    add(&host.home, &HOME_FILES);
    if let Some(copilot) = &host.copilot {
        add(copilot, &COPILOT_FILES);
    }
    if let Some(user) = &host.user {
        add(user, &USER_FILES);
    }
    if let Some(copilot) = &host.copilot {
        files.push((copilot.join(COPILOT_PARTS), PathKind::Directory));
    }
    let places = files
        .into_iter()
        .enumerate()
        .map(|(index, (path, shape))| InstructionPlace {
            label: path.to_string_lossy().into_owned(),
            path,
            kind: InstructionKind::Home,
            location: InstructionLocation::User,
            shape,
            preferred_for_creation: index == 0,
            project: None,
            user: host.user.clone(),
        });
    places.collect()
}
