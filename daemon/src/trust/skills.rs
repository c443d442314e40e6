//! Which skills of a project count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_store::{Store, StoreError};

use super::{TrustedContent, project_root, shell_word};
use crate::approvals;
use crate::discovery::skills::SkillDefinition;

/// The skills of a project that the user does not trust the project with, by their folder.
#[derive(Debug, Default)]
pub struct UntrustedSkills(BTreeMap<PathBuf, Vec<String>>);

impl UntrustedSkills {
    /// Finds out which of these skills need trust and do not have it.
    pub async fn of(
        store: &dyn Store,
        cwd: &Path,
        skills: &[SkillDefinition],
    ) -> Result<Self, StoreError> {
        let mut untrusted = Self::default();
        // Most skills are the user's own, and then it does not matter.
        if skills.iter().all(|skill| skill.needs_trust_of().is_none()) {
            return Ok(untrusted);
        }
        let root = project_root(cwd);
        if approvals::is_trusted(store, &root.to_string_lossy()).await? {
            return Ok(untrusted);
        }
        let trusted = TrustedContent::read(store).await?;
        for skill in skills {
            if let Some(folder) = skill.needs_trust_of()
                && !trusted.covers(&folder, &skill.hash())
            {
                let names = untrusted.0.entry(folder).or_default();
                names.push(skill.name.clone());
            }
        }
        Ok(untrusted)
    }

    /// Treats every skill that needs trust as untrusted: whether it is trusted could not be read.
    pub fn all(skills: &[SkillDefinition]) -> Self {
        let mut untrusted = Self::default();
        for skill in skills {
            if let Some(folder) = skill.needs_trust_of() {
                let names = untrusted.0.entry(folder).or_default();
                names.push(skill.name.clone());
            }
        }
        untrusted
    }

    /// Returns why a skill is not used.
    pub fn why(&self, skill: &SkillDefinition) -> Option<String> {
        let folder = skill.needs_trust_of()?;
        let names = self.0.get(&folder)?;
        names.contains(&skill.name).then(|| {
            format!(
                "this folder is not trusted with the skill, or not as it is now; to look and to trust: loop trust {}",
                shell_word(&folder)
            )
        })
    }

    /// Returns one sentence for each folder with skills that are not used.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(folder, names)| {
            let what = match names.as_slice() {
                [one] => format!("the skill `{one}` is"),
                several => format!("the skills `{}` are", several.join("`, `")),
            };
            format!(
                "{}: {what} not used, because this folder is not trusted with it; to look and to trust: loop trust {}",
                folder.display(),
                shell_word(folder)
            )
        })
    }
}
