//! Skills that clients provide: they list them, and send the text of one when it is used.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::SessionId;
use loopd_proto::params::discovery::SkillSource;
use loopd_proto::params::skill::ProvidedSkill;

use super::{SessionSkill, SkillError};
use crate::client::{Asking, Client};
use crate::discovery::skills::{self, ParsedSkill, SkillDefinition, SkillPlace};

/// How long a client may take to answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The most skills that a client may list, the longest description, and the longest text, in bytes.
const MOST_SKILLS: usize = 1_024;
const LONGEST_DESCRIPTION: usize = 1_024;
const LONGEST_TEXT: usize = 1024 * 1024;

/// A client that provides skills for a session.
#[derive(Clone)]
pub struct SkillProvider {
    pub client: Arc<dyn Client>,
    pub session: SessionId,
}

impl SkillProvider {
    /// Asks the client for its skills. The error says why it has none.
    pub(super) async fn list(&self) -> Result<Vec<Arc<SessionSkill>>, String> {
        let listed = within(self.client.ask_skills(&self.session)).await?;
        if listed.len() > MOST_SKILLS {
            return Err(format!("it lists more than {MOST_SKILLS} skills"));
        }
        let skills = listed.into_iter().map(|skill| {
            let definition = definition(skill)?;
            Ok(Arc::new(SessionSkill {
                definition,
                unavailable: None,
                provider: Some(self.client.clone()),
            }))
        });
        skills.collect()
    }
}

async fn within<T>(asked: Asking<T>) -> Result<T, String> {
    match tokio::time::timeout(LONGEST_WAIT, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!(
            "it did not answer in {} seconds",
            LONGEST_WAIT.as_secs()
        )),
    }
}

fn definition(skill: ProvidedSkill) -> Result<SkillDefinition, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = skill.name;
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > 64 || !name.chars().all(plain) {
        return Err(format!(
            "the name {name:?} is not 1 to 64 letters, digits, `.`, `_` and `-`"
        ));
    }
    if skill.description.chars().count() > LONGEST_DESCRIPTION {
        return Err(format!(
            "the description of {name} is longer than {LONGEST_DESCRIPTION} characters"
        ));
    }
    let words: Vec<&str> = skill.description.split_whitespace().collect();
    Ok(SkillDefinition {
        description: words.join(" "),
        name,
        argument_hint: skill.argument_hint,
        user_invocable: skill.user_invocable.unwrap_or(true),
        model_invocable: !skill.disable_model_invocation.unwrap_or(false),
        allowed_tools: None,
        place: SkillPlace::Conversation,
        source: SkillSource::Sdk,
        path: PathBuf::new(),
        project: None,
        plugin: None,
    })
}

/// Asks a client for the text of one of its skills. What the list said restricts the skill, too.
pub(super) async fn read(
    client: &dyn Client,
    session: &SessionId,
    known: &SkillDefinition,
) -> Result<ParsedSkill, SkillError> {
    let unavailable = |why: String| SkillError::Unavailable {
        name: known.name.clone(),
        why,
    };
    let text = within(client.ask_skill(session, &known.name)).await;
    let text = text.map_err(|why| unavailable(format!("the app that provides it: {why}")))?;
    if text.len() > LONGEST_TEXT {
        let why = format!("its text has more than {} KiB", LONGEST_TEXT / 1024);
        return Err(unavailable(why));
    }
    let parsed = skills::parse_provided(&known.name, &text);
    let mut parsed = parsed.map_err(|problem| unavailable(problem.what))?;
    let definition = &mut parsed.definition;
    definition.user_invocable &= known.user_invocable;
    definition.model_invocable &= known.model_invocable;
    definition.name.clone_from(&known.name);
    definition.description.clone_from(&known.description);
    definition.path = PathBuf::new();
    Ok(parsed)
}
