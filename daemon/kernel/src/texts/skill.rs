//! What models are told about skills.

use std::path::Path;

/// The result of a call that loads a skill.
pub fn loaded(name: &str) -> String {
    format!("Skill \"{name}\" loaded successfully. Follow the instructions in the skill context.")
}

/// The text of a skill as models read it. `path` is its `SKILL.md`, or empty.
pub fn context(name: &str, path: &str, content: &str) -> String {
    let folder = Path::new(path).parent().and_then(Path::to_str);
    let folder = folder.filter(|folder| !folder.is_empty());
    let base = folder.map(|folder| format!("Base directory for this skill: {folder}\n\n"));
    let base = base.unwrap_or_default();
    format!("<skill-context name=\"{name}\">\n{base}{content}\n</skill-context>")
}

/// The result of a call that an active skill does not allow.
pub(crate) fn not_allowed(skill: &str, tool: &str, tools: &[String]) -> String {
    let allowed = if tools.is_empty() {
        "no tools".to_owned()
    } else {
        format!("only these tools: {}", tools.join(", "))
    };
    format!(
        "The skill \"{skill}\" is active and allows {allowed}. {tool} cannot be used before the user's next message. \
         Go on without it, or tell the user what is needed."
    )
}

/// Why a person is asked about a call that an active skill may not allow.
pub(crate) fn beyond(skill: &str) -> String {
    format!(
        "The skill \"{skill}\" is active and allows this tool for certain arguments only; this call may go beyond them."
    )
}
