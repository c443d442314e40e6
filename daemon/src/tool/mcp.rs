//! The tools of MCP servers: what models read of them, what a call needs, and how it runs.
//!
//! Every call needs a permission that names the server and the tool. What runs is what the permission
//! names, whatever the name means by then.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_mcp::port::CallRef;
use loopd_mcp::{Call, CallError, CallResult, OfferedTool, Progress, Server, ServerTool};
use loopd_proto::event::tool::BinaryResult;
use loopd_proto::permission::PermissionRequest;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::source::{ResolvedTool, ToolSource};
use super::{AssessContext, DynTool, Need, Outcome, Partial, ToolContext};
use loopd_kernel::model::ToolSpec;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tool_call::{McpToolRef, ToolOrigin};

/// The largest result as data that is stored beside its text.
const LARGEST_DATA: usize = 16 * 1024;
/// The most reports of progress that wait to be shown.
const MOST_PROGRESS: usize = 16;

/// One tool of a server.
#[derive(Clone)]
pub struct McpTool {
    pub server: Arc<Server>,
    /// Its name on the server.
    pub tool: String,
    /// What the server says about it; `None` if it does not list it now.
    pub listed: Option<ServerTool>,
    /// The member `_meta` of the call, from hooks.
    pub meta: Option<Map<String, Value>>,
}

impl McpTool {
    pub fn new(server: Arc<Server>, tool: &str) -> Self {
        let tools = server.tools();
        let listed = tools.and_then(|tools| tools.iter().find(|it| it.name == tool).cloned());
        Self {
            server,
            tool: tool.to_owned(),
            listed,
            meta: None,
        }
    }

    pub fn reference(&self) -> McpToolRef {
        McpToolRef {
            server: self.server.name.to_string(),
            tool: self.tool.clone(),
        }
    }

    /// Returns what has to be allowed before the tool may be called.
    pub fn request(&self, arguments: &Value) -> PermissionRequest {
        let listed = self.listed.as_ref();
        PermissionRequest::Mcp {
            tool_call_id: None,
            server_name: self.server.name.to_string(),
            tool_name: self.tool.clone(),
            tool_title: listed
                .and_then(|tool| tool.title.clone())
                .unwrap_or_else(|| self.tool.clone()),
            args: Some(arguments.clone()),
            read_only: listed.is_some_and(|tool| tool.read_only),
        }
    }

    /// Calls the tool.
    pub async fn call(&self, arguments: Value, context: &ToolContext) -> Outcome {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return Outcome::failure("The arguments of an MCP tool have to be an object."),
        };
        let (progress, mut reports) = mpsc::channel::<Progress>(MOST_PROGRESS);
        let call = Call {
            tool: self.tool.clone(),
            arguments,
            meta: self.meta.clone(),
            label: CallRef(Some(context.call.as_str().to_owned())),
            timeout: self.server.config().call_timeout,
            progress: Some(progress),
            cancel: context.cancel.clone(),
        };
        let called = self.server.call(call);
        let shown = async {
            while let Some(report) = reports.recv().await {
                let partial = Partial::Progress(report.text());
                // A report that does not fit is dropped: the next one says more.
                context.partial.try_send(partial).ok();
            }
        };
        tokio::pin!(called);
        let ended = tokio::select! {
            ended = &mut called => ended,
            () = shown => called.await,
        };
        match ended {
            Ok(result) => outcome(result),
            Err(CallError::Cancelled) => Outcome::interrupted(""),
            Err(error) => Outcome::failure(self.why(&error)),
        }
    }

    /// Says why a call has no result.
    fn why(&self, error: &CallError) -> String {
        let server = &self.server.name;
        match error {
            CallError::NeedsAuth => format!(
                "The MCP server {server} wants a login, so that the call was not carried out. A person \
                 can log in with `loop mcp login {server}`."
            ),
            CallError::NotConnected(why) => {
                format!(
                    "The MCP server {server} cannot be used now: {why}. The call was not carried out."
                )
            }
            CallError::Forgotten => format!(
                "The MCP server {server} had forgotten its connection and is connected anew. The call was \
                 not carried out; make it again if it is still needed."
            ),
            other => format!("The call failed: {other}."),
        }
    }
}

fn outcome(result: CallResult) -> Outcome {
    let mut outcome = if result.is_error {
        Outcome::failure(result.text)
    } else {
        Outcome::success(result.text)
    };
    let binaries = result.binaries.into_iter().map(|binary| BinaryResult {
        kind: if binary.is_image { "image" } else { "resource" }.to_owned(),
        data: binary.base64,
        mime_type: binary.mime_type,
        description: binary.description,
    });
    outcome.binaries = binaries.collect();
    let fits = |data: &Value| data.to_string().len() <= LARGEST_DATA;
    outcome.structured = result.structured.filter(fits).map(Box::new);
    outcome
}

impl DynTool for McpTool {
    fn name(&self) -> &str {
        &self.tool
    }

    fn description(&self) -> &str {
        self.listed.as_ref().map_or("", |tool| &tool.description)
    }

    fn parameters(&self) -> Value {
        self.listed
            .as_ref()
            .map(|tool| tool.schema.clone())
            .unwrap_or_default()
    }

    fn needs_terminal(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        false
    }

    fn waits_for_agents(&self) -> bool {
        false
    }

    fn need<'a>(&'a self, args: &'a Value, _context: &'a AssessContext) -> BoxFuture<'a, Need> {
        Box::pin(async move { Need::Permission(self.request(args)) })
    }

    fn run<'a>(
        &'a self,
        _grant: &'a Grant,
        args: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(args, context))
    }
}

/// The tools of all servers of a session.
pub struct McpTools(Vec<OfferedTool>);

impl McpTools {
    pub fn new(offered: Vec<OfferedTool>) -> Self {
        Self(offered)
    }

    fn get(&self, name: &str) -> Option<(&OfferedTool, &ServerTool)> {
        let offered = self.0.iter().find(|offered| offered.name == name)?;
        Some((offered, offered.tool()?))
    }

    /// Returns the tool of a server that models know by this name.
    pub fn reference(&self, name: &str) -> Option<McpToolRef> {
        let (offered, tool) = self.get(name)?;
        Some(McpToolRef {
            server: offered.server.name.to_string(),
            tool: tool.name.clone(),
        })
    }
}

impl ToolSource for McpTools {
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Mcp
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|offered| offered.name.as_str()).collect()
    }

    fn spec(&self, name: &str) -> Option<Cow<'_, ToolSpec>> {
        let (offered, tool) = self.get(name)?;
        // A description must not pass for one of ours: it says whose it is.
        let whose = format!(
            "Tool `{}` of the MCP server `{}`.",
            tool.name, offered.server.name
        );
        let description = match tool.description.trim() {
            "" => whose,
            said => format!("{said}\n\n[{whose}]"),
        };
        Some(Cow::Owned(ToolSpec {
            name: offered.name.clone(),
            description,
            parameters: tool.schema.clone(),
        }))
    }

    fn resolve(&self, name: &str) -> Option<ResolvedTool> {
        let (offered, tool) = self.get(name)?;
        Some(ResolvedTool::Mcp(Arc::new(McpTool {
            server: offered.server.clone(),
            tool: tool.name.clone(),
            listed: Some(tool.clone()),
            meta: None,
        })))
    }
}
