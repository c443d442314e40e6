//! Loads a skill: reads its text anew and checks that it may still be used as it is asked for.

use loopd_proto::event::skill::{SkillInvoked, SkillTrigger};
use loopd_proto::id::SessionId;

use super::{SessionSkill, SkillView, provider};
use crate::discovery::skills::{self, ParsedSkill, SkillDefinition};

/// The most names that an error lists.
const MOST_NAMES: usize = 30;
/// The longest text of a skill with its arguments filled in, in bytes.
const LONGEST_TEXT: usize = 2 * 1024 * 1024;

/// Who wants which skill.
#[derive(Debug, Clone, Copy)]
pub struct LoadRequest<'a> {
    pub session: &'a SessionId,
    pub name: &'a str,
    /// The words for the place of the arguments in its text.
    pub arguments: &'a str,
    pub trigger: SkillTrigger,
}

/// Why a skill is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("there is no skill {name}{known}")]
    Unknown { name: String, known: String },
    #[error("the skill {0} is out of use in this session")]
    Off(String),
    #[error("the skill {name} cannot be used: {why}")]
    Unavailable { name: String, why: String },
    #[error(
        "the skill {name} is for people only: its file sets disable-model-invocation; the user can type /{command}"
    )]
    ForPeople { name: String, command: String },
    #[error("the skill {0} is not for people: its file sets user-invocable to false")]
    NotForPeople(String),
    #[error("the skill {0} changed on disk while it was loaded; try again with the next message")]
    Changed(String),
}

impl SkillView {
    /// Finds a skill that may be used as it is asked for.
    pub fn find(&self, name: &str, trigger: SkillTrigger) -> Result<&SessionSkill, SkillError> {
        let Some(skill) = self.get(name) else {
            return Err(self.unknown(name, trigger));
        };
        let definition = &skill.definition;
        if self.is_off(&definition.name) {
            return Err(SkillError::Off(definition.name.clone()));
        }
        if let Some(why) = &skill.unavailable {
            return Err(SkillError::Unavailable {
                name: definition.name.clone(),
                why: why.clone(),
            });
        }
        permits(definition, trigger)?;
        Ok(skill)
    }

    /// Loads a skill. Reads its file, or asks the client that has its text.
    pub async fn load(&self, request: LoadRequest<'_>) -> Result<SkillInvoked, SkillError> {
        let skill = self.find(request.name, request.trigger)?;
        let known = &skill.definition;
        let ParsedSkill { definition, text } = match &skill.provider {
            Some(client) => provider::read(client.as_ref(), request.session, known).await?,
            None => read_file(known).await?,
        };
        permits(&definition, request.trigger)?;
        let needs_trust = known.needs_trust_of().is_some();
        if definition.name != known.name || needs_trust && definition.hash() != known.hash() {
            return Err(SkillError::Changed(known.name.clone()));
        }
        invoked(&definition, &text, &request)
    }

    fn unknown(&self, name: &str, trigger: SkillTrigger) -> SkillError {
        let usable = self.usable().map(|skill| &skill.definition);
        let usable = usable.filter(|skill| permits(skill, trigger).is_ok());
        let names: Vec<&str> = usable.map(|skill| skill.name.as_str()).collect();
        let more = names.len().saturating_sub(MOST_NAMES);
        let shown = names
            .get(..names.len() - more)
            .unwrap_or_default()
            .join(", ");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        SkillError::Unknown {
            name: name.to_owned(),
            known: if shown.is_empty() {
                "; this session has none".to_owned()
            } else {
                format!("; there are {shown}{more}")
            },
        }
    }
}

/// Checks that a skill may be used by whoever asks for it.
fn permits(skill: &SkillDefinition, trigger: SkillTrigger) -> Result<(), SkillError> {
    match trigger {
        SkillTrigger::UserInvoked if !skill.user_invocable => {
            Err(SkillError::NotForPeople(skill.name.clone()))
        }
        SkillTrigger::AgentInvoked | SkillTrigger::ContextLoad if !skill.model_invocable => {
            Err(SkillError::ForPeople {
                name: skill.name.clone(),
                command: skill.command_name(),
            })
        }
        SkillTrigger::UserInvoked | SkillTrigger::AgentInvoked | SkillTrigger::ContextLoad => {
            Ok(())
        }
    }
}

async fn read_file(known: &SkillDefinition) -> Result<ParsedSkill, SkillError> {
    let unavailable = |why: String| SkillError::Unavailable {
        name: known.name.clone(),
        why,
    };
    let again = known.clone();
    let read = tokio::task::spawn_blocking(move || skills::read_again(&again, &mut Vec::new()));
    let read = read.await;
    let read = read.map_err(|error| unavailable(format!("reading its file failed: {error}")))?;
    match read {
        Ok(Some(parsed)) => Ok(parsed),
        Ok(None) => Err(unavailable(format!("{} is gone", known.path.display()))),
        Err(problem) => Err(unavailable(problem.to_string())),
    }
}

fn invoked(
    skill: &SkillDefinition,
    text: &str,
    request: &LoadRequest<'_>,
) -> Result<SkillInvoked, SkillError> {
    let folder = skill.folder();
    let shown = folder.map(|folder| folder.to_string_lossy().into_owned());
    let real = folder.and_then(|folder| folder.canonicalize().ok());
    let real = real.map(|real| real.to_string_lossy().into_owned());
    let content = filled(text, request.arguments, shown.as_deref());
    let content = content.ok_or_else(|| SkillError::Unavailable {
        name: skill.name.clone(),
        why: format!(
            "its text has more than {} KiB with its arguments filled in",
            LONGEST_TEXT / 1024
        ),
    })?;
    Ok(SkillInvoked {
        name: skill.name.clone(),
        model: None,
        path: skill.path.to_string_lossy().into_owned(),
        content,
        folder: real.filter(|real| Some(real) != shown.as_ref()),
        allowed_tools: skill.allowed_tools.clone(),
        disable_model_invocation: (!skill.model_invocable).then_some(true),
        source: Some(skill.source),
        plugin_name: skill.plugin.clone(),
        description: Some(skill.description.clone()),
        trigger: Some(request.trigger),
    })
}

/// Fills in the arguments and the folder of the skill. Without arguments the text stays as it is:
/// single words (`$1`) are left alone, because texts of skills have scripts in them. Returns `None` if
/// the text would get too long.
fn filled(text: &str, arguments: &str, folder: Option<&str>) -> Option<String> {
    const ARGUMENTS: &str = "$ARGUMENTS";
    let text = match folder {
        Some(folder) => replaced(text, "${CLAUDE_SKILL_DIR}", folder)?,
        None => text.to_owned(),
    };
    let arguments = arguments.trim();
    if arguments.is_empty() {
        return Some(text);
    }
    if text.contains(ARGUMENTS) {
        return replaced(&text, ARGUMENTS, arguments);
    }
    Some(format!("{}\n\nArguments: {arguments}\n", text.trim_end()))
}

/// Replaces a word. How long the text gets is known before memory is taken for it.
fn replaced(text: &str, word: &str, by: &str) -> Option<String> {
    let added = text.matches(word).count().saturating_mul(by.len());
    (text.len().saturating_add(added) <= LONGEST_TEXT).then(|| text.replace(word, by))
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn arguments_are_filled_in_or_added() {
        let cases = [
            ("Do it.\n", "", "Do it.\n"),
            ("Echo $1 of $ARGUMENTS.\n", "", "Echo $1 of $ARGUMENTS.\n"),
            ("Echo $1 of $ARGUMENTS.\n", " a b ", "Echo $1 of a b.\n"),
            ("Do it.\n", "a b", "Do it.\n\nArguments: a b\n"),
            ("Run ${CLAUDE_SKILL_DIR}/x.sh\n", "", "Run /s/x.sh\n"),
        ];
        for (text, arguments, expected) in cases {
            let filled = filled(text, arguments, Some("/s"));
            assert_eq!(filled.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn arguments_that_would_fill_the_memory_are_not_filled_in() {
        let text = "$ARGUMENTS ".repeat(20_000);
        let arguments = "x".repeat(400_000);
        assert_eq!(filled(&text, &arguments, None), None);
        let text = "${CLAUDE_SKILL_DIR} ".repeat(20_000);
        assert_eq!(filled(&text, "", Some(&"/x".repeat(2_000))), None);
    }
}
