//! Reads the members of answers. Both formats have them at the top; Claude's has some of them below
//! `hookSpecificOutput`, too.

use serde_json::{Map, Value};

use super::output::HookOutput;

/// The most bytes of what hooks tell the model.
const LONGEST_CONTEXT: usize = 10 * 1024;

impl HookOutput {
    /// Returns a member, from the top or from `hookSpecificOutput`.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        let top = self.members.get(name);
        let specific = || self.members.get("hookSpecificOutput")?.get(name);
        top.or_else(specific).filter(|value| !value.is_null())
    }

    /// Returns a member that has to be a text.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<&str>, String> {
        match self.member(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("its member `{name}` is not a text but {other}")),
        }
    }

    /// Returns a member that has to be an object.
    pub(super) fn object_of(&self, name: &str) -> Result<Option<&Map<String, Value>>, String> {
        match self.member(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(other) => Err(format!("its member `{name}` is not an object but {other}")),
        }
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.member(name) == Some(&Value::Bool(true))
    }

    /// Whether the hook wants the agent to stop here.
    pub(super) fn stops(&self) -> bool {
        self.member("continue") == Some(&Value::Bool(false))
    }

    /// Returns what the hook tells the model.
    pub(super) fn context(&self) -> Option<String> {
        let text = self.member("additionalContext")?.as_str()?;
        (!text.trim().is_empty()).then(|| cut(text))
    }

    /// Returns whether the hook blocks something, and why.
    pub(super) fn block(&self) -> Result<Option<String>, String> {
        if let Some(reason) = &self.refused {
            return Ok(Some(reason.clone()));
        }
        match self.text_of("decision")? {
            None | Some("approve" | "allow") => Ok(None),
            Some("block") => Ok(Some(self.text_of("reason")?.unwrap_or_default().to_owned())),
            Some(other) => Err(format!(
                "its `decision` is `{other}`; it can be `block` or `allow`"
            )),
        }
    }
}

/// Cuts a text for the model.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= LONGEST_CONTEXT {
        return text.to_owned();
    }
    let mut end = LONGEST_CONTEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!(
        "{kept}\n[{} more bytes of a hook are left out]",
        text.len() - end
    )
}
