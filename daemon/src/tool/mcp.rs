//! The tools of MCP servers: what models read of them, what a call needs, and how it runs.
//!
//! Every call needs a permission that names the server and the tool. What runs is what the permission
//! names, whatever the name means by then.

mod tasks;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_mcp::port::CallRef;
use loopd_mcp::{
    Call, CallError, CallResult, Called, FollowedTask, OfferedTool, Progress, Server, ServerTool,
    StartedTask, TaskSupport,
};
use loopd_proto::event::task::McpTaskWork;
use loopd_proto::event::tool::BinaryResult;
use loopd_proto::permission::PermissionRequest;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::tasks::{AtClose, McpTasks, McpTasksSetup};
use self::tasks::{BackgroundTask, Following, MOST_NOTES};
use super::large_output::{self, OutputLimits};
use super::source::{ResolvedTool, ToolSource};
use super::{AssessContext, DynTool, Need, Outcome, Partial, ToolContext};
use loopd_kernel::model::{CountedOnce, ToolSpec};
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

    /// Calls the tool. A long result goes to a file, which must not hold secrets either.
    pub async fn call(&self, arguments: Value, context: &ToolContext) -> Outcome {
        let mut outcome = self.run_call(arguments, context).await;
        let AssessContext {
            redaction, scratch, ..
        } = &context.assess;
        redaction.clean_in_place(&mut outcome.text);
        let text = std::mem::take(&mut outcome.text);
        outcome.text = large_output::bound(text, scratch, OutputLimits::default()).await;
        outcome
    }

    async fn run_call(&self, arguments: Value, context: &ToolContext) -> Outcome {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return Outcome::failure("The arguments of an MCP tool have to be an object."),
        };
        let shown_arguments = Value::Object(arguments.clone()).to_string();
        let (progress, mut reports) = mpsc::channel::<Progress>(MOST_PROGRESS);
        let call = Call {
            tool: self.tool.clone(),
            arguments,
            meta: self.meta.clone(),
            label: CallRef(Some(context.call.as_str().to_owned())),
            timeout: self.server.config().call_timeout,
            progress: Some(progress),
            cancel: context.cancel.clone(),
            task: self.task_support(),
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
            Ok(Called::Result(result)) => outcome(result),
            Ok(Called::Task(task)) => self.follow(task, shown_arguments, context).await,
            Err(error) => self.failed(&error),
        }
    }

    fn task_support(&self) -> TaskSupport {
        let listed = self.listed.as_ref();
        listed.map_or(TaskSupport::Forbidden, |tool| tool.task_support)
    }

    fn failed(&self, error: &CallError) -> Outcome {
        match error {
            CallError::Cancelled => Outcome::interrupted(""),
            error => Outcome::failure(self.why(error)),
        }
    }

    /// Waits for a task for a while, and lets it go on in the background then. A sub-agent waits for the
    /// end: nobody would tell it later.
    async fn follow(&self, task: StartedTask, arguments: String, context: &ToolContext) -> Outcome {
        let work = McpTaskWork {
            server: self.server.name.to_string(),
            tool: self.tool.clone(),
            task_id: task.handle.id.clone(),
            dialect: task.handle.dialect,
        };
        let (notes, heard) = mpsc::channel(MOST_NOTES);
        let cancel = CancellationToken::new();
        let followed = FollowedTask {
            handle: task.handle.clone(),
            started: Some(task),
            label: CallRef(Some(context.call.as_str().to_owned())),
            notes,
            cancel: cancel.clone(),
        };
        let server = self.server.clone();
        let mut following = Following {
            end: async move { server.follow(followed).await }.boxed(),
            notes: heard,
            cancel,
        };
        let patience = context.mcp_tasks.patience(self.task_support());
        let patience = context.lease.is_none().then(|| Instant::now() + patience);
        if let Some(ended) = wait(&mut following, patience, context).await {
            return match ended {
                Ok(result) => outcome(result),
                Err(error) => self.failed(&error),
            };
        }
        let kept = context.mcp_tasks.keep(BackgroundTask {
            call: context.call.clone(),
            work,
            arguments,
            following,
        });
        match kept.await {
            Ok(id) => Outcome::success(format!(
                "The server goes on with this in the background, as the task {id}. You'll be notified when it has \
                 ended. Use read_agent with agent_id \"{id}\" to see how far it is, or stop_agent to cancel it."
            )),
            Err(why) => Outcome::failure(format!(
                "The server went on with this as a task, which could not be listed and was cancelled: {why}."
            )),
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

/// Waits for the end of a task; `None` if that takes longer than patience lasts. An abort cancels it.
async fn wait(
    following: &mut Following,
    patience: Option<Instant>,
    context: &ToolContext,
) -> Option<Result<CallResult, CallError>> {
    let out_of_patience = async {
        match patience {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(out_of_patience);
    loop {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                following.cancel.cancel();
                return Some((&mut following.end).await);
            }
            ended = &mut following.end => return Some(ended),
            Some(note) = following.notes.recv() => {
                // A report that does not fit is dropped: the next one says more.
                context.partial.try_send(Partial::Progress(note)).ok();
            }
            () = &mut out_of_patience => return None,
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

    fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
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
        Some(Arc::new(ToolSpec {
            name: offered.name.clone(),
            description,
            parameters: tool.schema.clone(),
            counted: CountedOnce::default(),
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
