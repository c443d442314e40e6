//! Lets the model of a session answer for a server that asks for it with `sampling/createMessage`. The
//! permission gate decides as about a tool of the server, and the limits of the session hold.

use loopd_mcp::naming;
use loopd_proto::event::fact::CallPurpose;
use loopd_proto::id::{RequestId, ToolCallId};
use loopd_proto::permission::PermissionRequest;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use crate::discovery::hooks::HookKind;
use crate::hook::HookInput;
use crate::redaction::Redaction;
use crate::session::Message;
use crate::session::actor::Actor;
use crate::session::beside;
use crate::session::part::{WaitingPart, denied};
use crate::turn::side_call::{SideCall, SideReply};
use loopd_kernel::command::PartAsked;
use loopd_kernel::hook::HookVerdict;
use loopd_kernel::model::{
    AssistantTurn, Delivery, Finish, ModelMessage, ModelRequest, Part, ToolCall, ToolUse,
};
use loopd_kernel::policy::planning::ToolClaim;
use loopd_kernel::tokens;

/// The name under which rules and people know the request.
const METHOD: &str = "sampling/createMessage";

/// The most requests of servers that a session has open at a time, waiting or running.
pub(super) const MOST_OPEN: usize = 4;
/// The most messages of a request, and the most bytes of their texts and pictures.
const MOST_MESSAGES: usize = 100;
const LARGEST_REQUEST: usize = 1024 * 1024;
/// The most tokens that an answer may have, whatever the server asks for.
const MOST_OUTPUT: u64 = 8_192;

/// What a server gets.
pub type Sampled = Result<Value, String>;

/// A server's request for the model of the session.
pub struct SampleOrder {
    /// Names the permission request, if there is one.
    pub request: RequestId,
    pub server: String,
    pub params: Value,
}

/// A request that waits for its permission.
pub(in crate::session) struct WaitingSample {
    wanted: Wanted,
    reply: oneshot::Sender<Sampled>,
    place: OwnedSemaphorePermit,
}

impl WaitingSample {
    pub(in crate::session) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    pub(in crate::session) fn refuse(self, why: String) {
        // The send fails if the server has stopped waiting.
        self.reply.send(Err(why)).ok();
    }
}

/// What a server wants to know from a model.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    messages: Vec<ModelMessage>,
    most_output: u64,
    /// About how many tokens the messages have.
    tokens: u64,
}

impl Wanted {
    /// Reads the parameters of a request.
    fn read(params: &Value, redaction: &Redaction) -> Result<Self, String> {
        let has = |name: &str| {
            let value = params.get(name);
            value.is_some_and(|value| !value.is_null() && *value != json!([]))
        };
        if has("tools") || has("toolChoice") {
            return Err("`tools` are not offered to servers: ask without them".to_owned());
        }
        let mut messages = Vec::new();
        let mut size = 0;
        let mut clean = |text: &str| {
            size += text.len();
            redaction.clean(text).into_owned()
        };
        if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
            messages.push(ModelMessage::System(clean(system)));
        }
        let asked = params.get("messages").and_then(Value::as_array);
        let asked = asked.filter(|asked| !asked.is_empty());
        let asked = asked.ok_or("`messages` is missing or empty")?;
        if asked.len() > MOST_MESSAGES {
            return Err(format!("there are more than {MOST_MESSAGES} messages"));
        }
        for message in asked {
            let parts = parts(message, &mut clean)?;
            match message.get("role").and_then(Value::as_str) {
                Some("user") => messages.push(ModelMessage::User(parts)),
                Some("assistant") => {
                    let texts = parts.into_iter().filter_map(|part| match part {
                        Part::Text(text) => Some(text),
                        Part::Image { .. } | Part::Document { .. } => None,
                    });
                    let text = texts.collect::<Vec<_>>().join("\n");
                    messages.push(ModelMessage::Assistant(AssistantTurn {
                        text,
                        ..AssistantTurn::default()
                    }));
                }
                _ => return Err("a message has a `role` other than user and assistant".to_owned()),
            }
        }
        if size > LARGEST_REQUEST {
            return Err(format!("it has more than {LARGEST_REQUEST} bytes"));
        }
        let most = params.get("maxTokens").and_then(Value::as_u64);
        let most = most.filter(|most| *most > 0);
        let most = most.ok_or("`maxTokens` is missing")?;
        let texts = messages.iter().map(|message| match message {
            ModelMessage::System(text) | ModelMessage::ToolResult { text, .. } => {
                tokens::count(text)
            }
            ModelMessage::Assistant(turn) => tokens::count(&turn.text),
            ModelMessage::User(parts) => parts.iter().map(tokens_of).sum(),
        });
        Ok(Self {
            tokens: texts.sum(),
            messages,
            most_output: most.min(MOST_OUTPUT),
        })
    }
}

/// About how many tokens a piece of a message has. A picture counts as one of the usual size.
fn tokens_of(part: &Part) -> u64 {
    match part {
        Part::Text(text) => tokens::count(text),
        Part::Image { .. } | Part::Document { .. } => 1_500,
    }
}

/// Reads the content of a message: one piece or several.
fn parts(message: &Value, clean: &mut impl FnMut(&str) -> String) -> Result<Vec<Part>, String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let pieces = match content {
        Value::Array(pieces) => pieces.as_slice(),
        piece => std::slice::from_ref(piece),
    };
    let text = |piece: &Value, name: &str| {
        let text = piece.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
            .ok_or_else(|| format!("a message has a content without `{name}`"))
    };
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match piece.get("type").and_then(Value::as_str) {
            Some("text") => parts.push(Part::Text(clean(&text(piece, "text")?))),
            Some("image") => parts.push(Part::Image {
                media_type: text(piece, "mimeType")?,
                base64: clean(&text(piece, "data")?),
            }),
            _ => return Err("a message has a content other than text and image".to_owned()),
        }
    }
    Ok(parts)
}

impl Actor {
    /// Asks the hooks about a server's request for the model. The session decides then.
    pub(super) fn prepare_sample(&mut self, order: SampleOrder, reply: oneshot::Sender<Sampled>) {
        let SampleOrder {
            request,
            server,
            mut params,
        } = order;
        let redaction = self.redaction();
        let wanted = match Wanted::read(&params, &redaction) {
            Ok(wanted) => wanted,
            Err(why) => {
                reply
                    .send(Err(format!("the request cannot be used: {why}")))
                    .ok();
                return;
            }
        };
        let Ok(place) = self.mcp.samples.clone().try_acquire_owned() else {
            let why = format!("{MOST_OPEN} requests of servers are open already");
            reply.send(Err(why)).ok();
            return;
        };
        redaction.clean_value(&mut params);
        let permission = PermissionRequest::Mcp {
            tool_call_id: None,
            server_name: server.clone(),
            tool_name: METHOD.to_owned(),
            tool_title: "use the model of this session".to_owned(),
            args: Some(params.clone()),
            read_only: false,
        };
        let call = ToolCall {
            id: ToolCallId::from(self.services.clock.id()),
            name: naming::plain(&server, METHOD),
            arguments: params,
        };
        let may_ask = self.effective_permissions().may_ask;
        let can_ask = may_ask
            && if self.subagents.is_child() {
                self.can_ask_above()
            } else {
                self.clients.answer_permissions()
            };
        let guarded = self.has_hooks(HookKind::PreToolUse, Some(&call.name));
        let hooks = guarded.then(|| self.hook_context());
        let mailbox = self.mailbox.clone();
        self.running.spawn(async move {
            let mut verdict = HookVerdict::None;
            if let Some(mut hooks) = hooks {
                hooks.cancel = CancellationToken::new();
                verdict = match hooks.guard(&HookInput::pre_tool_use(&call)).await {
                    Ok(end) if end.arguments.is_some() => {
                        denied("a hook wants to change it, which is possible for calls only")
                    }
                    Ok(end) => end.verdict,
                    Err(_) => denied("the client whose hooks guard this session is not there"),
                };
            }
            let asked = PartAsked {
                request,
                tool: call.name,
                permission,
                claim: ToolClaim::Nothing,
                can_ask,
                hooks: verdict,
            };
            let part = WaitingPart::Sample(WaitingSample {
                wanted,
                reply,
                place,
            });
            let message = Message::AskForPart(Box::new(asked), part);
            // The send fails if the session has ended; then the reply ends, too.
            mailbox.send(message).await.ok();
        });
    }

    /// Asks the model for a server that is permitted to.
    pub(in crate::session) fn run_sample(&mut self, sample: WaitingSample) {
        let WaitingSample {
            wanted,
            reply,
            place,
        } = sample;
        let facts = self.request_facts();
        let known = facts.window.output.unwrap_or(u64::MAX);
        let output = wanted.most_output.min(known);
        let budget = self.side_budget(&facts.model, wanted.tokens, output);
        let call = SideCall {
            request: ModelRequest {
                model: facts.model,
                messages: wanted.messages,
                tools: Vec::new(),
                delivery: Delivery::Whole,
                reasoning_effort: None,
                reasoning_summary: None,
                max_output_tokens: Some(output),
                tool_use: ToolUse::Forbidden,
                headers: self.running.headers(),
            },
            route: self.route(),
            services: self.services.clone(),
            sent: wanted.tokens,
        };
        let mailbox = self.mailbox.clone();
        let at_work = self.services.keep_alive.work();
        self.running.spawn(async move {
            let _at_work = (at_work, place);
            // It goes on if the server stops waiting: what it uses has to be counted.
            let model = call.request.model.clone();
            let asked = beside::ask(call, budget, CallPurpose::Sampling, &mailbox).await;
            let sampled = asked.and_then(|reply| answer(reply, model));
            // The send fails if the server has stopped waiting.
            reply.send(sampled).ok();
        });
    }
}

/// Returns the answer as the protocol has it.
fn answer(reply: SideReply, model: String) -> Sampled {
    let why = match reply.finish {
        Finish::Stop | Finish::ToolCalls => "endTurn",
        Finish::Length => "maxTokens",
        // The protocol leaves the list of reasons open.
        Finish::Unknown => "unknown",
        Finish::ContentFilter => {
            return Err("the provider did not let the answer through".to_owned());
        }
    };
    let mut answer = Map::new();
    answer.insert("role".to_owned(), json!("assistant"));
    answer.insert(
        "content".to_owned(),
        json!({"type": "text", "text": reply.text}),
    );
    answer.insert("model".to_owned(), json!(model));
    answer.insert("stopReason".to_owned(), json!(why));
    Ok(Value::Object(answer))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    fn read(params: &Value) -> Result<Wanted, String> {
        Wanted::read(params, &Redaction::default())
    }

    #[test]
    fn messages_of_servers_are_read_and_bounded() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let wanted = read(&json!({
            "systemPrompt": "Be brief.",
            "messages": [
                {"role": "user", "content": text("one")},
                {"role": "assistant", "content": [text("two"), text("three")]},
            ],
            "maxTokens": 1_000_000,
        }));
        let wanted = wanted.unwrap();
        assert_eq!(wanted.messages.len(), 3);
        assert_eq!(wanted.most_output, MOST_OUTPUT);
        assert!(wanted.tokens > 3);
        let user = json!([{"role": "user", "content": text("one")}]);
        for (params, why) in [
            (json!({"messages": user}), "maxTokens"),
            (json!({"messages": [], "maxTokens": 5}), "messages"),
            (
                json!({"messages": user, "maxTokens": 5, "tools": [{}]}),
                "tools",
            ),
            (
                json!({"messages": [{"role": "user", "content": {"type": "audio"}}], "maxTokens": 5}),
                "text and image",
            ),
            (
                json!({"messages": [{"role": "boss", "content": text("x")}], "maxTokens": 5}),
                "role",
            ),
        ] {
            let error = read(&params).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
