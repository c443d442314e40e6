//! The built-in model `offline`: no network, no key, the same answer to the same conversation.
//!
//! It obeys the last user message, whose lines are commands:
//!
//! | command | tool it calls |
//! |---|---|
//! | `run <command>` | `bash` |
//! | `read <path>` | `view` |
//! | `find <pattern>` | `grep`; `glob` when the pattern holds one of `*`, `?`, `[`, `{` |
//! | `write <path> <text>` | `create`; `\n` in the text is a line break, a path with blanks is quoted |
//! | `ask <question>` | `ask_user` |
//!
//! Several commands, one per line or joined with ` then `, are carried out one after the other, one
//! call per turn. When all are done it answers with what the tools really returned; when a tool is
//! not offered it says so and stops. To any other message it answers that it is the offline model
//! and how to use it. It is for trying loopd out, for scripts and for tests that must not depend on
//! a service; it does not think.
//!
//! The daemon offers it in every session; `offline/script` reads the commands. It keeps no state: all it
//! knows is the conversation in the request.

mod script;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use loopd_proto::id::ToolCallId;

use loopd_kernel::model::{
    AssistantTurn, Delivery, ModelInfo, ModelMessage, ModelReply, ModelRequest, Part, ToolCall,
    Usage,
};

use super::error::ProviderError;
use super::{DeltaSink, EndpointDescription, Provider, built_in};
use script::{Instruction, Step};

/// The only model of this provider.
pub const MODEL: &str = "offline";

/// How much of each tool result is repeated in the answer, in characters.
const LONGEST_OUTPUT: usize = 8_000;
/// How much of an unknown message is repeated in the answer, in characters.
const LONGEST_ECHO: usize = 200;
/// The usual estimate of tokens from text.
const CHARACTERS_PER_TOKEN: u64 = 4;

const USAGE_HINT: &str = "I am the offline model: I do not think, I carry out commands. Write one per line, or join \
them with ` then `:\n- run <command>\n- read <path>\n- find <pattern>\n- write <path> <text>\n- ask <question>";

/// The provider of the model `offline`.
#[derive(Debug, Default)]
pub struct OfflineModel;

impl Provider for OfflineModel {
    fn name(&self) -> &str {
        MODEL
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        async move {
            let turn = answer(request);
            if request.delivery == Delivery::Streamed {
                stream(&turn.text, sink).await;
            }
            let usage = estimate(request, &turn);
            Ok(built_in::reply(MODEL, request, turn, usage))
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        let model = built_in::model_info(MODEL, "Offline (built in)");
        futures::future::ready(Ok(vec![model])).boxed()
    }

    fn describe(&self) -> EndpointDescription {
        built_in::describe(MODEL)
    }
}

/// Decides the turn from the conversation alone.
fn answer(request: &ModelRequest) -> AssistantTurn {
    let (message, since) = last_instruction(&request.messages);
    let steps = match message {
        Instruction::Commands(steps) => steps,
        Instruction::Other(text) => return says(explain(&text)),
        Instruction::HalfUnderstood { line } => {
            return says(format!(
                "I did not carry anything out: `{line}` is not a command I know.\n\n{USAGE_HINT}"
            ));
        }
    };
    let done = results(since);
    match steps.get(done.len()) {
        None => says(report(&steps, &done)),
        Some(step) if offers(request, step) => AssistantTurn {
            calls: vec![ToolCall {
                id: ToolCallId::from(format!("offline_{}", request.messages.len())),
                name: step.tool.to_owned(),
                arguments: step.arguments.clone(),
            }],
            ..AssistantTurn::default()
        },
        Some(step) => {
            let missing = format!(
                "`{}` needs the tool `{}`, which this session does not offer, so I stop here.",
                step.text, step.tool
            );
            if done.is_empty() {
                says(missing)
            } else {
                says(format!("{}\n\n{missing}", report(&steps, &done)))
            }
        }
    }
}

fn says(text: String) -> AssistantTurn {
    AssistantTurn {
        text,
        ..AssistantTurn::default()
    }
}

fn offers(request: &ModelRequest, step: &Step) -> bool {
    request.tools.iter().any(|tool| tool.name == step.tool)
}

/// Finds the last user message that says something, and what was said and done since.
fn last_instruction(messages: &[ModelMessage]) -> (Instruction, &[ModelMessage]) {
    messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(position, message)| {
            let ModelMessage::User(parts) = message else {
                return None;
            };
            let said = script::read(&text_of(parts))?;
            Some((said, messages.get(position + 1..).unwrap_or_default()))
        })
        .unwrap_or((Instruction::Other(String::new()), &[]))
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } | Part::Document { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// Lists what the tools returned for the calls made so far, in order.
fn results(since: &[ModelMessage]) -> Vec<&str> {
    since
        .iter()
        .filter_map(|message| match message {
            ModelMessage::ToolResult { text, .. } => Some(text.as_str()),
            ModelMessage::System(_) | ModelMessage::User(_) | ModelMessage::Assistant(_) => None,
        })
        .collect()
}

fn report(steps: &[Step], done: &[&str]) -> String {
    if let ([_], [output]) = (steps, done) {
        return format!("Done. The output was:\n{}", shorten(output, LONGEST_OUTPUT));
    }
    let mut report = "Done. The outputs were:".to_owned();
    for (number, (step, output)) in steps.iter().zip(done).enumerate() {
        let output = shorten(output, LONGEST_OUTPUT);
        report.extend([
            "\n\n",
            &(number + 1).to_string(),
            ". ",
            &step.text,
            "\n",
            &output,
        ]);
    }
    report
}

fn explain(text: &str) -> String {
    if text.is_empty() {
        return USAGE_HINT.to_owned();
    }
    format!("You wrote: {}\n\n{USAGE_HINT}", shorten(text, LONGEST_ECHO))
}

fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => {
            let left_out = text.chars().count() - longest;
            format!(
                "{}… ({left_out} more characters)",
                text.get(..end).unwrap_or_default()
            )
        }
        None => text.to_owned(),
    }
}

/// Gives the text away word by word, pausing so that others can run and the call can be cancelled.
async fn stream(text: &str, sink: &mut dyn DeltaSink) {
    let mut sent = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        sent += word.len();
        sink.text(word);
        sink.received(u64::try_from(sent).unwrap_or(u64::MAX));
        tokio::task::yield_now().await;
    }
}

fn estimate(request: &ModelRequest, turn: &AssistantTurn) -> Usage {
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    let input: usize = request.messages.iter().map(message_size).sum::<usize>() + tools;
    Usage {
        input_tokens: tokens(input),
        output_tokens: tokens(turn_size(turn)),
        ..Usage::default()
    }
}

fn message_size(message: &ModelMessage) -> usize {
    match message {
        ModelMessage::System(text) | ModelMessage::ToolResult { text, .. } => text.chars().count(),
        ModelMessage::User(parts) => text_of(parts).chars().count(),
        ModelMessage::Assistant(turn) => turn_size(turn),
    }
}

fn turn_size(turn: &AssistantTurn) -> usize {
    let argument_size = |arguments: &Value| arguments.to_string().chars().count();
    let calls: usize = turn
        .calls
        .iter()
        .map(|call| call.name.chars().count() + argument_size(&call.arguments))
        .sum();
    turn.text.chars().count() + calls
}

fn tokens(characters: usize) -> u64 {
    u64::try_from(characters)
        .unwrap_or(u64::MAX)
        .div_ceil(CHARACTERS_PER_TOKEN)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
