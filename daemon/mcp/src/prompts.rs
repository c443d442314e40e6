//! The prompts of a server, which people use as slash commands.

use loopd_proto::visible::visible;
use serde_json::{Map, Value};

/// The most prompts of one server, and the most arguments of one prompt.
pub(crate) const MOST_PROMPTS: usize = 500;
const MOST_ARGUMENTS: usize = 50;
const LONGEST_TEXT: usize = 1_000;

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub is_required: bool,
}

impl ServerPrompt {
    /// Fills in the arguments from what a person wrote: `name=value` words anywhere, the other words in
    /// order, and all that is left for the last one. The error names what is missing.
    pub fn fill(&self, input: &str) -> Result<Map<String, Value>, String> {
        let mut filled = Map::new();
        let mut words = Vec::new();
        for word in input.split_whitespace() {
            let named = word.split_once('=').filter(|(name, _)| self.has(name));
            match named {
                Some((name, value)) => {
                    filled.insert(name.to_owned(), value.into());
                }
                None => words.push(word),
            }
        }
        let open: Vec<&PromptArgument> = self
            .arguments
            .iter()
            .filter(|argument| !filled.contains_key(&argument.name))
            .collect();
        let mut words = words.into_iter();
        for (at, argument) in open.iter().enumerate() {
            let value = if at + 1 == open.len() {
                words.by_ref().collect::<Vec<_>>().join(" ")
            } else {
                words.next().unwrap_or_default().to_owned()
            };
            if !value.is_empty() {
                filled.insert(argument.name.clone(), value.into());
            } else if argument.is_required {
                return Err(format!("the argument `{}` is missing", argument.name));
            }
        }
        match words.next() {
            Some(word) => Err(format!("there is no argument for `{word}`")),
            None => Ok(filled),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }
}

/// Reads the result of `prompts/list`. A prompt that cannot be used is left out.
pub(crate) fn read_list(result: &Value) -> Vec<ServerPrompt> {
    let listed = result.get("prompts").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().take(MOST_PROMPTS);
    let text = |value: &Value, member: &str| {
        let text = value.get(member).and_then(Value::as_str)?;
        Some(visible(text).chars().take(LONGEST_TEXT).collect::<String>())
    };
    let prompts = listed.filter_map(|prompt| {
        let arguments = prompt.get("arguments").and_then(Value::as_array);
        let arguments = arguments.into_iter().flatten().take(MOST_ARGUMENTS);
        Some(ServerPrompt {
            name: text(prompt, "name").filter(|name| !name.is_empty())?,
            description: text(prompt, "description").unwrap_or_default(),
            arguments: arguments
                .filter_map(|argument| {
                    Some(PromptArgument {
                        name: text(argument, "name")?,
                        is_required: argument.get("required").and_then(Value::as_bool)
                            == Some(true),
                    })
                })
                .collect(),
        })
    });
    prompts.collect()
}

/// Reads the result of `prompts/get` as one text. What is no text is named.
pub fn prompt_text(result: &Value) -> String {
    let messages = result.get("messages").and_then(Value::as_array);
    let messages = messages.into_iter().flatten();
    let texts: Vec<String> = messages
        .filter_map(|message| {
            let content = message.get("content")?;
            let text = content
                .get("text")
                .or_else(|| content.pointer("/resource/text"))
                .and_then(Value::as_str);
            let kind = content
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("part");
            let text = text.map_or_else(|| format!("[{kind}]"), str::to_owned);
            let role = message.get("role").and_then(Value::as_str);
            Some(match role {
                Some("assistant") => format!("(You said before:) {text}"),
                _ => text,
            })
        })
        .collect();
    visible(&texts.join("\n\n")).into_owned()
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_filled_in_from_words() {
        let list = json!({"prompts": [{"name": "greet", "arguments": [
            {"name": "who", "required": true}, {"name": "tone"}, {"name": "text"}]}, {"no": "name"}]});
        let prompts = read_list(&list);
        let [prompt] = prompts.as_slice() else {
            return assert_eq!(prompts.len(), 1);
        };
        let filled = |input: &str| prompt.fill(input).map(Value::Object);
        assert_eq!(filled("Ann"), Ok(json!({"who": "Ann"})));
        assert_eq!(
            filled("tone=loud Ann and all that"),
            Ok(json!({"tone": "loud", "who": "Ann", "text": "and all that"}))
        );
        assert!(
            filled("")
                .expect_err("an argument is missing")
                .contains("`who`")
        );
        let bare = ServerPrompt {
            arguments: Vec::new(),
            ..prompt.clone()
        };
        assert!(bare.fill("more").is_err());
    }

    #[test]
    fn messages_become_one_text() {
        let result = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "one"}},
            {"role": "assistant", "content": {"type": "text", "text": "two"}},
            {"role": "user", "content": {"type": "image", "data": ""}},
        ]});
        assert_eq!(
            prompt_text(&result),
            "one\n\n(You said before:) two\n\n[image]"
        );
    }
}
