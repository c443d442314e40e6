//! The custom instructions of users and projects: those of the system message, and those that follow
//! when a file near them, or one that they are for, was used.
//!
//! Files are read again when the disk says that one of them changed, so that an edit takes effect with
//! the next message. Unchanged files give the same text, which lets providers reuse their cache.

mod section;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::permission::{PermissionRequest, Permissions};
use parking_lot::Mutex;

use crate::discovery::instructions::{
    FoundInstructions, InstructionFile, InstructionPlace, Stamps, find, nested_places,
};
use loopd_kernel::policy::{Verdict, judge};
use loopd_kernel::texts::instructions::InstructionText;

/// How often files are read in the hope that nobody writes to them meanwhile.
const MOST_READS: usize = 3;

/// The instructions of a session as they were last read.
#[derive(Clone, Default)]
pub struct InstructionCell(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    known: Option<Known>,
    /// What people were told about files.
    told: Vec<String>,
}

#[derive(Clone)]
struct Known {
    places: Vec<InstructionPlace>,
    found: Arc<FoundInstructions>,
    stamps: Arc<Stamps>,
}

/// Which instructions a session has, and what limits them.
#[derive(Clone)]
pub struct InstructionLookup {
    pub cell: InstructionCell,
    pub places: Vec<InstructionPlace>,
    /// The root of the project; `None` if the session has no instructions of its project.
    pub root: Option<PathBuf>,
    pub cwd: PathBuf,
    /// The sources that the session does not want.
    pub disabled: Vec<String>,
    /// Instructions that the client gives as text.
    pub organization: Option<String>,
    /// Whether instructions for certain files follow when such a file is used.
    pub on_demand: bool,
    /// The rules of the session: what may not be read is no instruction either.
    pub permissions: Permissions,
    /// How many tokens all instructions together may have.
    pub most_tokens: u64,
}

/// The instructions of the system message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InstructionSection {
    pub text: String,
    /// What people were not told yet.
    pub warnings: Vec<String>,
}

impl InstructionLookup {
    /// Returns the section of the system message. Reads the disk if something changed.
    pub async fn section(self) -> InstructionSection {
        let reading = tokio::task::spawn_blocking(move || self.read_section());
        reading.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the instructions could not be looked for");
            InstructionSection::default()
        })
    }

    fn read_section(&self) -> InstructionSection {
        let found = self.found();
        let mut warnings: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        let files = self.given(&found, &mut warnings);
        let organization = self.organization.as_deref();
        let bounds = section::Bounds::of(self.most_tokens);
        let text = section::text(organization, &files, self.on_demand, bounds, &mut warnings);
        InstructionSection {
            text,
            warnings: self.cell.untold(warnings),
        }
    }

    /// Returns the files that count, without duplicate texts. Reads the disk if something changed.
    pub fn files(&self) -> Vec<InstructionFile> {
        let found = self.found();
        let mut warnings = Vec::new();
        self.given(&found, &mut warnings)
            .into_iter()
            .cloned()
            .collect()
    }

    /// Returns the instructions that follow because these files were used, in the order in which they
    /// apply. Reads the disk.
    pub fn near(&self, used: &[PathBuf]) -> (Vec<InstructionText>, Vec<String>) {
        let is_for = |file: &InstructionFile| used.iter().any(|it| file.applies_to(it));
        // Whoever reads instructions as a file has read them.
        let is_new = |file: &InstructionFile| !used.contains(&file.path);
        let (texts, warnings) = self.near_all(used, |file| is_for(file) && is_new(file));
        (texts, self.cell.untold_more(warnings))
    }

    /// Returns the instructions near these files that are wanted.
    fn near_all(
        &self,
        used: &[PathBuf],
        is_wanted: impl Fn(&InstructionFile) -> bool,
    ) -> (Vec<InstructionText>, Vec<String>) {
        let mut warnings = Vec::new();
        let mut files: Vec<InstructionFile> = Vec::new();
        let mut add = |file: &InstructionFile| {
            let is_known = files
                .iter()
                .any(|it| it.path == file.path || it.text == file.text);
            if !is_known && !file.text.is_empty() {
                files.push(file.clone());
            }
        };
        let found = self.found();
        let own = self.given(&found, &mut Vec::new());
        if self.on_demand {
            let conditional = own.iter().filter(|file| file.is_conditional());
            for file in conditional.filter(|file| is_wanted(file)) {
                add(file);
            }
        }
        for path in used {
            let Some(root) = &self.root else { break };
            let nested = find(&nested_places(root, &self.cwd, path));
            warnings.extend(nested.problems.iter().map(ToString::to_string));
            let nested = self.given(&nested, &mut warnings);
            let is_new = |file: &InstructionFile| {
                !own.iter()
                    .any(|own| own.path == file.path || own.text == file.text)
            };
            for file in nested
                .into_iter()
                .filter(|file| is_new(file) && is_wanted(file))
            {
                add(file);
            }
        }
        let bounds = section::Bounds::of(self.most_tokens);
        let texts = section::bounded(&files, bounds, &mut warnings);
        (texts, warnings)
    }

    /// Reads files again that were given before, as far as they still count. Reads the disk.
    pub fn again(&self, given: &[PathBuf]) -> Vec<InstructionText> {
        self.near_all(given, |file| given.contains(&file.path)).0
    }

    /// Returns whether a look at the disk can find instructions near these files.
    pub fn may_be_near(&self, used: &[PathBuf]) -> bool {
        let is_nested = |path: &PathBuf| {
            let root = self.root.as_ref();
            let folder = path.parent().unwrap_or(path);
            root.is_some_and(|root| folder.starts_with(root)) && !self.cwd.starts_with(folder)
        };
        let has_conditional = || {
            let inner = self.cell.0.lock();
            let known = inner.known.as_ref();
            known.is_some_and(|known| {
                known
                    .found
                    .files
                    .iter()
                    .any(InstructionFile::is_conditional)
            })
        };
        self.on_demand && !used.is_empty() && (used.iter().any(is_nested) || has_conditional())
    }

    /// Returns what was found when the disk was as it is now.
    fn found(&self) -> Arc<FoundInstructions> {
        let known = self.cell.0.lock().known.clone();
        if let Some(known) = known.filter(|known| known.places == self.places)
            && known.stamps.still_hold()
        {
            return known.found;
        }
        let mut found = find(&self.places);
        for _ in 0..MOST_READS {
            // The stamps have to be older than what they vouch for.
            let stamps = Stamps::of(found.looked_at.iter().map(PathBuf::as_path));
            let again = find(&self.places);
            let is_same = again.files == found.files && again.looked_at == found.looked_at;
            found = again;
            if is_same {
                let found = Arc::new(found);
                self.cell.0.lock().known = Some(Known {
                    places: self.places.clone(),
                    found: found.clone(),
                    stamps: Arc::new(stamps),
                });
                return found;
            }
        }
        // Somebody keeps writing; the next message reads again.
        Arc::new(found)
    }

    fn given<'f>(
        &self,
        found: &'f FoundInstructions,
        warnings: &mut Vec<String>,
    ) -> Vec<&'f InstructionFile> {
        let mut files: Vec<&InstructionFile> = Vec::new();
        for file in &found.files {
            // One file is often a link to another, or a copy of it.
            let is_known = files.iter().any(|known| known.text == file.text);
            if is_known || file.text.is_empty() || self.is_disabled(file) {
                continue;
            }
            if self.is_denied(&file.path) {
                let path = file.path.display();
                warnings.push(format!("{path}: is left out: a rule denies reading it"));
                continue;
            }
            files.push(file);
        }
        files
    }

    fn is_disabled(&self, file: &InstructionFile) -> bool {
        let id = file.path.to_string_lossy();
        self.disabled
            .iter()
            .any(|disabled| *disabled == *id || *disabled == file.label)
    }

    fn is_denied(&self, path: &Path) -> bool {
        let real = std::fs::canonicalize(path).ok();
        let real = real.map(|real| real.to_string_lossy().into_owned());
        let request = PermissionRequest::Read {
            managed_approval_required: None,
            tool_call_id: None,
            intention: "Read instructions".to_owned(),
            path: path.to_string_lossy().into_owned(),
            also_named: real.into_iter().collect(),
        };
        let cwd = self.cwd.to_string_lossy();
        matches!(judge(&self.permissions, &*cwd, &request), Verdict::Deny(_))
    }
}

impl InstructionCell {
    /// Returns those warnings that nobody was told yet; a warning that is gone may come again.
    fn untold(&self, warnings: Vec<String>) -> Vec<String> {
        let mut inner = self.0.lock();
        let told = std::mem::replace(&mut inner.told, warnings.clone());
        let new = warnings.into_iter();
        new.filter(|warning| !told.contains(warning)).collect()
    }

    /// Returns those warnings that nobody was told yet, and keeps the others.
    fn untold_more(&self, mut warnings: Vec<String>) -> Vec<String> {
        let mut inner = self.0.lock();
        warnings.retain(|warning| !inner.told.contains(warning));
        inner.told.extend(warnings.iter().cloned());
        warnings
    }
}
