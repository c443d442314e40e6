//! Reads the members of answers. Both formats have them at the top; Claude's has some of them below
//! `hookSpecificOutput`, too.

use serde_json::{Map, Value};

use super::output::{HookFailure, HookOutput};
use crate::discovery::hooks::own_arguments;

/// The most bytes of what hooks tell the model.
const LONGEST_CONTEXT: usize = 10 * 1024;

/// A hook changes what cannot be taken back.
fn changes_typed() -> HookFailure {
    HookFailure::failed("it changes what is typed already; what it wants has to begin with that")
}

impl HookOutput {
    /// Returns the objects that members are looked for in: the answer, and its `hookSpecificOutput`.
    pub(super) fn levels(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let specific = self.members.get("hookSpecificOutput");
        std::iter::once(&self.members).chain(specific.and_then(Value::as_object))
    }

    /// Returns a member wherever it is. What decides about something looks at all of them.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let found = self.levels().filter_map(move |level| level.get(name));
        found.filter(|value| !value.is_null())
    }

    /// Returns a member, from the top or from `hookSpecificOutput`.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        let levels = self.levels();
        let mut found = levels.filter_map(|level| level.get(name));
        found.find(|value| !value.is_null())
    }

    /// Gives the changed arguments of a call our names.
    pub(super) fn take_own_arguments(&mut self, tool: &str) {
        self.change_arguments(|arguments| {
            *arguments = own_arguments(tool, std::mem::take(arguments));
        });
    }

    /// Takes a changed `input` for what is typed into a shell on a line that begins with `start`.
    pub(super) fn take_typed_input(&mut self, start: &str) -> Result<(), HookFailure> {
        let mut is_wrong = false;
        self.change_arguments(|arguments| {
            let Some(Value::String(input)) = arguments.get_mut("input") else {
                return;
            };
            match input.strip_prefix(start) {
                Some(rest) => *input = rest.to_owned(),
                None => is_wrong = true,
            }
        });
        if is_wrong {
            Err(changes_typed())
        } else {
            Ok(())
        }
    }

    /// Takes a changed `command` for what is typed into a shell. `told` is the command that the hook was
    /// told of, `start` what stands on the line already.
    pub(super) fn take_typed_command(
        &mut self,
        told: &str,
        start: &str,
    ) -> Result<(), HookFailure> {
        let mut is_wrong = false;
        self.change_arguments(|arguments| {
            let command = arguments.remove("command");
            let Some(command) = command.filter(|command| command.as_str() != Some(told)) else {
                return;
            };
            let typed = match command.as_str().map(|it| it.strip_prefix(start)) {
                Some(Some(rest)) => format!("{rest}{{enter}}").into(),
                Some(None) => {
                    is_wrong = true;
                    return;
                }
                None => command,
            };
            arguments.insert("input".to_owned(), typed);
        });
        if is_wrong {
            Err(changes_typed())
        } else {
            Ok(())
        }
    }

    /// Changes the arguments that the hook wants, wherever they are.
    fn change_arguments(&mut self, mut change: impl FnMut(&mut Map<String, Value>)) {
        let mut in_level = |level: &mut Map<String, Value>| {
            for name in ["modifiedArgs", "updatedInput"] {
                if let Some(Value::Object(arguments)) = level.get_mut(name) {
                    change(arguments);
                }
            }
        };
        in_level(&mut self.members);
        if let Some(Value::Object(specific)) = self.members.get_mut("hookSpecificOutput") {
            in_level(specific);
        }
    }

    /// Returns a member that has to be a text, wherever it is.
    pub(super) fn texts_of<'a>(&'a self, name: &'a str) -> Result<Vec<&'a str>, String> {
        self.all(name).map(|value| text(name, value)).collect()
    }

    /// Returns a member that has to be a text.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<&str>, String> {
        self.member(name).map(|value| text(name, value)).transpose()
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
        self.levels()
            .any(|level| level.get(name) == Some(&Value::Bool(true)))
    }

    /// Whether the hook wants the agent to stop here.
    pub(super) fn stops(&self) -> bool {
        self.levels()
            .any(|level| level.get("continue") == Some(&Value::Bool(false)))
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
        let mut blocks = false;
        for decision in self.texts_of("decision")? {
            match decision {
                "approve" | "allow" => {}
                "block" => blocks = true,
                other => {
                    return Err(format!(
                        "its `decision` is `{other}`; it can be `block` or `allow`"
                    ));
                }
            }
        }
        let reason = self.text_of("reason")?.unwrap_or_default();
        Ok(blocks.then(|| reason.to_owned()))
    }
}

/// Returns the text of a member that has to be one.
pub(super) fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("its member `{name}` is not a text but {value}"))
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
