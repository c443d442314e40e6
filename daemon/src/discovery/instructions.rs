//! Finds instructions: Markdown files that tell every agent how to work in a project or for a user.
//!
//! `instructions/places.rs` says where they are, `imports.rs` follows `@path`, `applies.rs` compares
//! files with `applyTo`, `stamp.rs` tells cheaply whether anything changed.

mod applies;
mod imports;
mod places;
mod stamp;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{InstructionKind, InstructionLocation, PathKind};
use serde_json::Value;

pub use places::{InstructionPlace, places, session_places};
pub use stamp::Stamps;

use super::files::FolderReader;
use super::front_matter::{Members, read_members};
use super::{Discovered, Problem};

/// How the names of files in folders of instructions end.
const PART_ENDING: &str = ".instructions.md";
/// The maximum depth to which such a folder is searched.
const DEEPEST: usize = 4;
/// The most folders between the root of a project and a file whose instructions are looked for.
const MOST_NESTED: usize = 32;

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
    /// The folder that the patterns of `apply_to` start from.
    pub project: Option<PathBuf>,
    /// The file that imports this one.
    pub imported_by: Option<PathBuf>,
}

/// What was found, and what of the disk it depends on.
#[derive(Debug, Default)]
pub struct FoundInstructions {
    pub files: Vec<InstructionFile>,
    pub problems: Vec<Problem>,
    /// The files and folders that were looked at, also those that do not exist.
    pub looked_at: BTreeSet<PathBuf>,
}

/// Reads the instructions of these files and folders.
pub fn discover(places: &[InstructionPlace]) -> Discovered<InstructionFile> {
    let found = find(places);
    Discovered {
        items: found.files,
        problems: found.problems,
    }
}

/// Reads the instructions of these files and folders, with what they import.
pub fn find(places: &[InstructionPlace]) -> FoundInstructions {
    let mut found = FoundInstructions::default();
    let mut overridden = BTreeSet::new();
    for place in places {
        let reader = match &place.project {
            Some(project) => FolderReader::within(project),
            None => FolderReader::own(),
        };
        found.looked_at.insert(place.path.clone());
        match place.shape {
            PathKind::File if overridden.contains(&place.path) => {}
            PathKind::File => {
                let is_used = found.add(&reader, place, &place.path, &place.label);
                overridden.extend(place.overrides().filter(|_| is_used));
            }
            PathKind::Directory => parts(&reader, place, &mut found),
        }
    }
    found
}

/// Returns the places of instructions between the root of a project and a file, without those of the
/// folders that the session has instructions of already.
pub fn nested_places(root: &Path, cwd: &Path, file: &Path) -> Vec<InstructionPlace> {
    let folders = file.parent().into_iter().flat_map(Path::ancestors);
    let inside = folders.take_while(|folder| folder.starts_with(root));
    let nested = inside.filter(|folder| !cwd.starts_with(folder));
    let mut nested: Vec<&Path> = nested.take(MOST_NESTED).collect();
    nested.reverse();
    let places = nested
        .into_iter()
        .flat_map(|folder| places::folder_places(folder, root, InstructionLocation::Repository));
    let places = places.map(|place| InstructionPlace {
        kind: InstructionKind::NestedAgents,
        ..place
    });
    places.collect()
}

impl InstructionFile {
    /// Returns whether the file is for certain files only.
    pub fn is_conditional(&self) -> bool {
        let globs = self.apply_to.as_deref();
        globs.is_some_and(|globs| !globs.iter().any(|glob| applies::is_universal(glob)))
    }

    /// Returns whether the file applies to another file.
    pub fn applies_to(&self, file: &Path) -> bool {
        match (&self.apply_to, &self.project) {
            (None, _) => true,
            (Some(globs), Some(project)) => applies::matches(globs, project, file),
            (Some(globs), None) => applies::matches(globs, Path::new("/"), file),
        }
    }
}

impl FoundInstructions {
    /// Reads a file and its imports. Returns whether it has a text.
    fn add(
        &mut self,
        reader: &FolderReader,
        place: &InstructionPlace,
        path: &Path,
        label: &str,
    ) -> bool {
        let file = match read(reader, place, path, label, &mut self.problems) {
            Ok(Some(file)) => file,
            Ok(None) => return false,
            Err(problem) => {
                self.problems.push(problem);
                return false;
            }
        };
        let has_text = !file.text.is_empty();
        let mut known = BTreeSet::from([path.to_owned()]);
        let mut waiting = vec![(file, 0)];
        while let Some((file, depth)) = waiting.pop() {
            let mut imported = self.imports_of(reader, place, &file, &mut known);
            if depth == imports::DEEPEST && !imported.is_empty() {
                let what = format!("imports are followed {depth} files deep; its own are left out");
                self.problems.push(Problem::new(&file.path, what));
                imported.clear();
            }
            imported.reverse();
            self.files.push(file);
            waiting.extend(imported.into_iter().map(|file| (file, depth + 1)));
        }
        has_text
    }

    /// Reads the files that a file imports and that were not read before, so that circles end.
    fn imports_of(
        &mut self,
        reader: &FolderReader,
        place: &InstructionPlace,
        file: &InstructionFile,
        known: &mut BTreeSet<PathBuf>,
    ) -> Vec<InstructionFile> {
        let mut found = Vec::new();
        for mention in imports::mentions(&file.text) {
            let path = match imports::resolve(place, &file.path, &mention) {
                Ok(Some(path)) => path,
                Ok(None) => continue,
                Err(problem) => {
                    self.problems.push(problem);
                    continue;
                }
            };
            self.looked_at.insert(path.clone());
            if known.contains(&path) {
                continue;
            }
            if known.len() > imports::MOST_FILES {
                let most = imports::MOST_FILES;
                let what = format!("more than {most} files are imported; the others are left out");
                self.problems
                    .push(Problem::at(&file.path, mention.line, what));
                break;
            }
            known.insert(path.clone());
            let root = place.project.as_deref().unwrap_or(Path::new(""));
            match reader.text(&path) {
                Ok(Some(content)) => found.push(InstructionFile {
                    label: places::label(&path, root),
                    text: plain_text(&content).trim().to_owned(),
                    kind: InstructionKind::ChildInstructions,
                    location: place.location,
                    apply_to: file.apply_to.clone(),
                    description: None,
                    project: place.project.clone(),
                    imported_by: Some(file.path.clone()),
                    path,
                    content,
                }),
                Ok(None) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
        found
    }
}

/// Reads the files below a folder. The depth is bounded, so that links in circles end.
fn parts(reader: &FolderReader, place: &InstructionPlace, found: &mut FoundInstructions) {
    let mut waiting = vec![(place.path.clone(), place.label.clone(), 0)];
    while let Some((folder, label, depth)) = waiting.pop() {
        found.looked_at.insert(folder.clone());
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
                found.looked_at.insert(entry.clone());
                found.add(reader, place, &entry, &label);
            } else if reader.is_folder(&entry) {
                if depth < DEEPEST {
                    waiting.push((entry, label, depth + 1));
                } else {
                    let what = format!("is more than {DEEPEST} folders deep and is not searched");
                    found.problems.push(Problem::new(&entry, what));
                }
            } else if name.to_lowercase().ends_with(".md") {
                let what =
                    format!("is not used: the name of the file does not end in {PART_ENDING}");
                found.problems.push(Problem::new(&entry, what));
            }
        }
    }
}

fn read(
    reader: &FolderReader,
    place: &InstructionPlace,
    path: &Path,
    label: &str,
    problems: &mut Vec<Problem>,
) -> Result<Option<InstructionFile>, Problem> {
    let Some(content) = reader.text(path)? else {
        return Ok(None);
    };
    let mut apply_to = None;
    let mut description = None;
    let text = match place.shape {
        // These files have no front matter: three dashes at the beginning are Markdown.
        PathKind::File => plain_text(&content),
        PathKind::Directory => {
            let members = read_members(path, &content)?;
            (apply_to, description) = front_matter(path, &members, problems);
            let Members { warnings, body, .. } = members;
            problems.extend(warnings);
            body
        }
    };
    Ok(Some(InstructionFile {
        path: path.to_owned(),
        label: label.to_owned(),
        text: text.trim().to_owned(),
        kind: place.kind,
        location: place.location,
        apply_to,
        description,
        project: place.project.clone(),
        imported_by: None,
        content,
    }))
}

/// Returns a text without the mark that some editors put before it.
fn plain_text(content: &str) -> &str {
    content.strip_prefix('\u{feff}').unwrap_or(content)
}

/// Returns which files the instructions are for, and their description. Patterns that cannot be read
/// are left out with a warning; if none is left, the instructions are for no file that is known.
fn front_matter(
    path: &Path,
    members: &Members<'_>,
    problems: &mut Vec<Problem>,
) -> (Option<Vec<String>>, Option<String>) {
    let mut apply_to = None;
    let mut description = None;
    for (line, text) in &members.unread {
        let what = format!("the line `{text}` is no member of front matter and is skipped");
        problems.push(Problem::at(path, *line, what));
    }
    for member in &members.list {
        let key = member.key.to_lowercase().replace(['-', '_'], "");
        match (key.as_str(), &member.value) {
            ("applyto" | "globs" | "paths", Value::Null) => {}
            ("applyto" | "globs" | "paths", value) => {
                let (globs, wrong) = applies::globs(value);
                for what in wrong {
                    problems.push(Problem::at(path, member.line, what));
                }
                apply_to = Some(globs);
            }
            ("description", Value::String(text)) => description = Some(text.clone()),
            ("description" | "name" | "title" | "mode" | "version" | "excludeagent", _) => {}
            _ => {
                let what = format!("`{}` means nothing here and is skipped", member.key);
                problems.push(Problem::at(path, member.line, what));
            }
        }
    }
    (apply_to, description)
}
