//! Computes what a patch does to every file, without changing any. Called by `apply_patch` before
//! it requests the permission and again before it writes.

use std::path::PathBuf;

use super::hunks;
use super::patch::{self, Action, FilePatch, Hunk};
use crate::tool::diff::{self, Change};
use crate::tool::disk::batch::Step;
use crate::tool::disk::{self, MAX_WHOLE_FILE, TextFile};
use crate::tool::resolved_path::{self, ResolvedPath};
use crate::tool::{AssessContext, Outcome, texts};

/// How many files one patch may change.
const MAX_FILES: usize = 200;

/// A prepared patch.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// The file of each step, as permission names it.
    pub(super) touched: Vec<String>,
    pub(super) also_named: Vec<String>,
    /// Folders in which git keeps a repository and that are written to.
    pub(super) repository_folders: Vec<String>,
    pub(super) diff: String,
    /// What the model is told when all is done.
    pub(super) summary: String,
}

impl Plan {
    /// The files that change, each once.
    pub(super) fn written(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in &self.touched {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The contents of the file, if the patch does no more than create one.
    pub(super) fn only_new_file(&self) -> Option<String> {
        match self.steps.as_slice() {
            [Step::Create { contents, .. }] => String::from_utf8(contents.clone()).ok(),
            _ => None,
        }
    }
}

/// Why there is no plan.
pub(super) struct NoPlan {
    pub(super) outcome: Outcome,
    /// The path that the reason tells of; `None` if the patch itself is the reason.
    pub(super) path: Option<String>,
}

/// Parses a patch and computes what it would do.
pub(super) fn make(text: &str, context: &AssessContext) -> Result<Plan, NoPlan> {
    let files = parse(text).map_err(|outcome| NoPlan {
        outcome,
        path: None,
    })?;
    let mut maker = Maker {
        context,
        at: None,
        taken: Vec::new(),
        lines: Vec::new(),
        plan: Plan {
            steps: Vec::new(),
            touched: Vec::new(),
            also_named: Vec::new(),
            repository_folders: Vec::new(),
            diff: String::new(),
            summary: String::new(),
        },
    };
    for file in &files {
        maker.file(file).map_err(|outcome| NoPlan {
            outcome,
            path: maker.at.take(),
        })?;
    }
    let mut plan = maker.plan;
    let count = match files.len() {
        1 => "one file".to_owned(),
        count => format!("{count} files"),
    };
    plan.summary = format!("Patch applied to {count}:\n{}", maker.lines.join("\n"));
    Ok(plan)
}

/// Parses a patch of bounded size.
fn parse(text: &str) -> Result<Vec<FilePatch>, Outcome> {
    if text.len() as u64 > MAX_WHOLE_FILE {
        return Err(refused(format!(
            "it has {} bytes, more than the limit of {MAX_WHOLE_FILE}",
            text.len()
        )));
    }
    let files = patch::parse(text).map_err(|error| refused(error.to_string()))?;
    if files.len() > MAX_FILES {
        return Err(refused(format!(
            "it changes {} files, more than the limit of {MAX_FILES}. Split it",
            files.len()
        )));
    }
    Ok(files)
}

fn refused(why: String) -> Outcome {
    Outcome::failure(format!(
        "The patch was not applied: {why}. Nothing was changed."
    ))
}

struct Maker<'a> {
    context: &'a AssessContext,
    /// The path that was looked at last.
    at: Option<String>,
    /// The real paths that a section already used.
    taken: Vec<PathBuf>,
    lines: Vec<String>,
    plan: Plan,
}

impl Maker<'_> {
    fn file(&mut self, file: &FilePatch) -> Result<(), Outcome> {
        match &file.action {
            Action::Add { contents } => self.add(&file.path, contents),
            Action::Delete => self.delete(&file.path),
            Action::Update {
                move_to: None,
                hunks,
            } => self.update(&file.path, hunks),
            Action::Update {
                move_to: Some(target),
                hunks,
            } => self.move_to(&file.path, target, hunks),
        }
    }

    fn add(&mut self, path: &str, contents: &str) -> Result<(), Outcome> {
        let place = self.free(path)?;
        self.show(&place, Change::Create { new: contents });
        self.lines.push(format!("added {}", place.asked.display()));
        self.step(
            &place,
            Step::Create {
                real: place.real.clone(),
                contents: contents.as_bytes().to_vec(),
                like: None,
            },
        );
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<(), Outcome> {
        let (place, found) = self.existing(path)?;
        self.not_a_link(path)?;
        self.show(&place, Change::Delete { old: &found.text });
        self.lines
            .push(format!("deleted {}", place.asked.display()));
        let real = place.real.clone();
        let seen = found.stamp;
        self.step(&place, Step::Remove { real, seen });
        Ok(())
    }

    fn update(&mut self, path: &str, hunks: &[Hunk]) -> Result<(), Outcome> {
        let (place, found) = self.existing(path)?;
        let new = changed(path, &found.text, hunks)?;
        if new == found.text {
            return Err(refused(format!("it would not change {path}")));
        }
        self.show(
            &place,
            Change::Edit {
                old: &found.text,
                new: &new,
            },
        );
        self.lines
            .push(format!("updated {}", place.asked.display()));
        self.step(
            &place,
            Step::Replace {
                real: place.real.clone(),
                contents: new.into_bytes(),
                seen: found.stamp,
            },
        );
        Ok(())
    }

    fn move_to(&mut self, path: &str, target: &str, hunks: &[Hunk]) -> Result<(), Outcome> {
        let (from, found) = self.existing(path)?;
        self.not_a_link(path)?;
        let to = self.free(target)?;
        let new = changed(path, &found.text, hunks)?;
        self.show(
            &to,
            Change::Move {
                from: &from.shown,
                old: &found.text,
                new: &new,
            },
        );
        self.lines.push(format!(
            "moved {} to {}",
            from.asked.display(),
            to.asked.display()
        ));
        self.step(
            &to,
            Step::Create {
                real: to.real.clone(),
                contents: new.into_bytes(),
                like: Some(from.real.clone()),
            },
        );
        let real = from.real.clone();
        let seen = found.stamp;
        self.step(&from, Step::Remove { real, seen });
        Ok(())
    }

    fn show(&mut self, place: &ResolvedPath, change: Change<'_>) {
        self.plan
            .diff
            .push_str(&diff::git_style(&place.shown, change));
    }

    fn step(&mut self, place: &ResolvedPath, step: Step) {
        self.plan.steps.push(step);
        self.plan.touched.push(texts::path(&place.shown));
        self.plan.also_named.extend(place.other_names());
        for folder in place.repository_folders() {
            if !self.plan.repository_folders.contains(&folder) {
                self.plan.repository_folders.push(folder);
            }
        }
    }

    /// Finds a text file that no other section of the patch changes.
    fn existing(&mut self, path: &str) -> Result<(ResolvedPath, TextFile), Outcome> {
        self.at = Some(path.to_owned());
        let place = resolved_path::existing(self.context, path)
            .map_err(|outcome| refused(outcome.text.trim_end_matches('.').to_owned()))?;
        self.take(path, &place)?;
        let found = disk::read_text(&place.real)
            .map_err(|error| refused(format!("{path} cannot be changed: {error}")))?;
        Ok((place, found))
    }

    /// Finds where a file can be created.
    fn free(&mut self, path: &str) -> Result<ResolvedPath, Outcome> {
        self.at = Some(path.to_owned());
        if path.ends_with('/') {
            return Err(refused(format!("{path} does not name a file")));
        }
        let place = resolved_path::possible(self.context, path)
            .map_err(|outcome| refused(outcome.text.trim_end_matches('.').to_owned()))?;
        self.take(path, &place)?;
        if place.real.symlink_metadata().is_ok() {
            return Err(refused(format!(
                "{path} already exists. Update it instead, or choose another name"
            )));
        }
        let above = place.real.ancestors().skip(1).find(|path| path.exists());
        if let Some(file) = above.filter(|path| !path.is_dir()) {
            return Err(refused(format!(
                "{path} cannot be made: {} is a file, not a folder",
                file.display()
            )));
        }
        Ok(place)
    }

    fn take(&mut self, path: &str, place: &ResolvedPath) -> Result<(), Outcome> {
        if self.taken.contains(&place.real) {
            return Err(refused(format!(
                "it names {path} more than once. Put all changes of a file into one section"
            )));
        }
        self.taken.push(place.real.clone());
        Ok(())
    }

    /// Refuses to remove a link: the patch does not say whether it means the link or its target.
    fn not_a_link(&self, path: &str) -> Result<(), Outcome> {
        if self.context.resolve(path).is_symlink() {
            return Err(refused(format!(
                "{path} is a symbolic link, which a patch cannot delete or move. Use a shell command"
            )));
        }
        Ok(())
    }
}

fn changed(path: &str, text: &str, hunks: &[Hunk]) -> Result<String, Outcome> {
    let applied = hunks::apply(text, hunks).or_else(|why| {
        // The lines may be copied from what `view` shows, which writes hidden characters as escapes.
        let hidden: Option<Vec<Hunk>> = patch::with_hidden_characters(hunks);
        hidden
            .and_then(|hunks| hunks::apply(text, &hunks).ok())
            .ok_or(why)
    });
    let new = applied.map_err(|why| refused(format!("{path}: {why}")))?;
    if new.len() as u64 > MAX_WHOLE_FILE {
        return Err(refused(format!(
            "{path} would grow beyond {MAX_WHOLE_FILE} bytes"
        )));
    }
    Ok(new)
}
