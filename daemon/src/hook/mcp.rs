//! Hooks before a call of an MCP tool: they set the request's `_meta`, or keep the call from being made.
//! Like other guards they fail closed.

use loopd_proto::event::hook::HookEnd;
use serde_json::{Map, Value};

use super::context::HookContext;
use super::input::HookInput;
use super::output::HookOutput;
use loopd_kernel::model::ToolCall;
use loopd_kernel::tool_call::McpToolRef;

/// What hooks say about a call.
#[derive(Debug, Default)]
pub struct McpCallEnd {
    /// The `_meta` of the request; `None` if no hook sets one.
    pub meta: Option<Map<String, Value>>,
    /// Why the call is not made.
    pub denied: Option<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// What one hook says.
enum Said {
    Nothing,
    Meta(Option<Map<String, Value>>),
    Denied(String),
}

impl HookContext {
    /// Asks the hooks before a tool of a server is called.
    pub async fn before_mcp_call(&self, call: &ToolCall, target: &McpToolRef) -> McpCallEnd {
        let input = HookInput::pre_mcp_tool_call(call, target);
        let mut end = McpCallEnd::default();
        let mut set = false;
        for outcome in self.dispatch(&input).await {
            let said = match &outcome.result {
                Ok(output) => read(output),
                Err(failure) => Err(failure.cause().to_owned()),
            };
            let said = said.unwrap_or_else(|cause| {
                self.warn_of(input.kind, &outcome.source, &cause);
                if outcome.source.goes_on() {
                    Said::Nothing
                } else {
                    let source = outcome.source.shown();
                    Said::Denied(format!("{source} failed: {cause}"))
                }
            });
            let has_effect = !matches!(said, Said::Nothing);
            match said {
                Said::Nothing => {}
                // The first one counts: those of whoever owns the machine come first.
                Said::Meta(meta) => {
                    if !std::mem::replace(&mut set, true) {
                        end.meta = meta;
                    }
                }
                Said::Denied(why) => {
                    end.denied.get_or_insert(why);
                }
            }
            end.ended.extend(self.close(outcome, has_effect));
        }
        end
    }
}

fn read(output: &HookOutput) -> Result<Said, String> {
    if let Some(why) = &output.refused {
        return Ok(Said::Denied(why.clone()));
    }
    if let Some(odd) = output
        .odd
        .iter()
        .find(|odd| odd.seems_to_decide() || odd.says_no(output))
    {
        return Err(odd.told());
    }
    let why = || {
        let given = ["permissionDecisionReason", "reason", "stopReason"];
        let mut given = given
            .into_iter()
            .filter_map(|name| output.member(name)?.as_str());
        let given = given.find(|why| !why.trim().is_empty());
        Said::Denied(given.unwrap_or("a hook denied the call").to_owned())
    };
    for decision in output.texts_of("permissionDecision")? {
        match decision {
            "allow" | "defer" => {}
            "deny" => return Ok(why()),
            other => {
                return Err(format!(
                    "its `permissionDecision` is `{other}`; here it can be `allow` or `deny`"
                ));
            }
        }
    }
    for decision in output.texts_of("decision")? {
        match decision {
            "allow" | "approve" => {}
            "block" | "deny" => return Ok(why()),
            other => {
                return Err(format!(
                    "its `decision` is `{other}`; it can be `approve` or `block`"
                ));
            }
        }
    }
    if output.stops() {
        return Ok(why());
    }
    // `null` says that there is no `_meta`, and a missing member says nothing.
    match output.members.get("metaToUse") {
        None => Ok(Said::Nothing),
        Some(Value::Null) => Ok(Said::Meta(None)),
        Some(Value::Object(meta)) => Ok(Said::Meta(Some(meta.clone()))),
        Some(_) => Err("its `metaToUse` is neither an object nor null".to_owned()),
    }
}
