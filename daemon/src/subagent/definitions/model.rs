//! Which model a sub-agent gets: what the call asks for, else what people set, else what the
//! agent's author wants, else the session's own. Pure; whoever starts agents calls it.

use super::AgentSettings;
use super::family::{family, has_word, is_chat, is_small};
use super::start::listed;
use crate::discovery::agents::ModelPolicy;
use loopd_kernel::model::ModelInfo;

/// How many models an error lists.
const MOST_NAMES: usize = 40;
/// Short names that authors use for the newest model of a kind.
const SHORT_NAMES: [&str; 3] = ["haiku", "opus", "sonnet"];

/// All that the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// What the call asks for.
    pub requested: Option<&'a str>,
    /// What the agent's author wants.
    pub policy: &'a ModelPolicy,
    /// What people set for this agent; see [`AgentSettings::preferred`].
    pub preferred: Option<&'a str>,
    pub session_model: &'a str,
    /// The models there are; empty when nobody knows.
    pub available: &'a [ModelInfo],
    pub settings: &'a AgentSettings,
}

/// The model that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub model: String,
    /// Why it is another than the one that was wanted, for whoever wanted it.
    pub note: Option<String>,
}

/// Why none was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no model `{wanted}` here; leave `model` out for the usual one, or choose of: {listed}"
)]
pub struct ModelRefusal {
    pub wanted: String,
    pub listed: String,
}

/// Chooses. Only a call that asks for a model that is not there is refused: it can ask again.
pub fn choose(wish: &Wish<'_>) -> Result<Choice, ModelRefusal> {
    if let Some(wanted) = wish.requested.map(str::trim).filter(|it| !it.is_empty()) {
        return wish.asked_for(wanted);
    }
    if let Some(preferred) = wish.preferred {
        return Ok(match ModelPolicy::from(preferred) {
            ModelPolicy::Named(name) => match wish.set_by_people(&name) {
                Some(model) => plain(model),
                None => Choice {
                    note: Some(format!(
                        "the model `{name}` that is set for this agent is not available"
                    )),
                    ..wish.by(wish.policy)
                },
            },
            policy => wish.by(&policy),
        });
    }
    Ok(wish.by(wish.policy))
}

/// Returns the id of the model that a name means, by its id, its name or a short name; the name
/// itself if none of these models has it.
pub fn id_of(name: &str, available: &[ModelInfo]) -> String {
    let wish = Wish {
        requested: None,
        policy: &ModelPolicy::Inherit,
        preferred: None,
        session_model: name,
        available,
        settings: &AgentSettings::default(),
    };
    wish.find(name).unwrap_or_else(|| name.to_owned())
}

fn plain(model: impl Into<String>) -> Choice {
    Choice {
        model: model.into(),
        note: None,
    }
}

impl Wish<'_> {
    fn asked_for(&self, wanted: &str) -> Result<Choice, ModelRefusal> {
        let found = match ModelPolicy::from(wanted) {
            policy @ (ModelPolicy::Inherit | ModelPolicy::Small | ModelPolicy::OtherFamily) => {
                return Ok(self.by(&policy));
            }
            ModelPolicy::Named(name) if name == self.session_model => return Ok(plain(name)),
            ModelPolicy::Named(name) if self.available.is_empty() => name,
            ModelPolicy::Named(name) => self.find(&name).ok_or_else(|| {
                let ids: Vec<&str> = self.available.iter().map(|it| it.id.as_str()).collect();
                ModelRefusal {
                    wanted: name,
                    listed: listed(&ids, MOST_NAMES),
                }
            })?,
        };
        if self.is_costly(&found) && !self.is_costly(self.session_model) {
            let note = format!(
                "`{found}` is one of the costly models that only sessions with such a model may ask for; \
                 the session's own, `{}`, is used",
                self.session_model
            );
            return Ok(Choice {
                model: self.session_model.to_owned(),
                note: Some(note),
            });
        }
        Ok(plain(found))
    }

    /// What an author's wish comes to. It never fails: a definition must not break a session.
    fn by(&self, policy: &ModelPolicy) -> Choice {
        match policy {
            ModelPolicy::Inherit => plain(self.session_model),
            ModelPolicy::Small => plain(self.small()),
            ModelPolicy::OtherFamily => plain(self.other_family()),
            ModelPolicy::Named(name) if name == self.session_model => plain(name),
            ModelPolicy::Named(name) => match self.find(name) {
                Some(model) => plain(model),
                None => Choice {
                    model: self.session_model.to_owned(),
                    note: Some(format!(
                        "the agent's own model `{name}` is not available, so that the session's is used"
                    )),
                },
            },
        }
    }

    fn small(&self) -> String {
        let set = self.settings.small_model.as_deref();
        if let Some(model) = set.and_then(|name| self.set_by_people(name)) {
            return model;
        }
        if is_small(self.session_model) {
            return self.session_model.to_owned();
        }
        let own = family(self.session_model);
        let mut fitting: Vec<&str> = self.choosable().filter(|id| is_small(id)).collect();
        // Stable: among equals the provider's order stays.
        fitting.sort_by_key(|id| own.is_none() || family(id) != own);
        self.first_or_own(&fitting)
    }

    fn other_family(&self) -> String {
        let set = self.settings.critic_model.as_deref();
        if let Some(model) = set.and_then(|name| self.set_by_people(name)) {
            return model;
        }
        let own = family(self.session_model);
        let is_other = |id: &&str| family(id).is_some_and(|other| Some(other) != own);
        let mut fitting: Vec<&str> = self.choosable().filter(is_other).collect();
        // A critic should not be weaker than who is criticised.
        fitting.sort_by_key(|id| is_small(id));
        self.first_or_own(&fitting)
    }

    fn first_or_own(&self, models: &[&str]) -> String {
        let first = models.first().copied();
        first.unwrap_or(self.session_model).to_owned()
    }

    /// What may be chosen without anybody having named it.
    fn choosable(&self) -> impl Iterator<Item = &str> {
        let spares = !self.is_costly(self.session_model);
        let ids = self.available.iter().map(|model| model.id.as_str());
        ids.filter(move |id| is_chat(id) && !(spares && self.is_costly(id)))
    }

    /// A model that people named: believed when nobody knows which there are.
    fn set_by_people(&self, name: &str) -> Option<String> {
        if self.available.is_empty() || name == self.session_model {
            return Some(name.to_owned());
        }
        self.find(name)
    }

    /// The id of a model: by its id or name, also without its provider's or by a short name.
    fn find(&self, wanted: &str) -> Option<String> {
        let first = |is: &dyn Fn(&ModelInfo) -> bool| {
            let found = self.available.iter().find(|model| is(model));
            found.map(|model| model.id.clone())
        };
        let short = wanted.to_ascii_lowercase();
        first(&|model| model.id == wanted)
            .or_else(|| {
                first(&|model| {
                    model.id.eq_ignore_ascii_case(wanted) || model.name.eq_ignore_ascii_case(wanted)
                })
            })
            .or_else(|| first(&|model| model.id.rsplit('/').next() == Some(wanted)))
            .or_else(|| {
                SHORT_NAMES
                    .contains(&short.as_str())
                    .then(|| first(&|model| has_word(&model.id, &short)))
                    .flatten()
            })
    }

    fn is_costly(&self, model: &str) -> bool {
        let mut patterns = self.settings.costly_models.iter();
        patterns.any(|pattern| fits(pattern, model))
    }
}

/// Whether a text fits a pattern in which `*` stands for any text; capitals do not count.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut left) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = left.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
