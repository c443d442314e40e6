//! The interface of built-in tools: a name, a description for the model, typed arguments, the
//! permission that a call needs, and an async `run`. `tool/catalog.rs` lists the tools, and `turn`
//! runs them. Nothing here decides about permissions.

pub mod apply_patch;
pub mod ask_user;
pub(crate) mod bash;
pub mod capture;
pub mod catalog;
mod closed;
mod context;
pub mod context_board;
mod create;
mod diff;
pub(crate) mod disk;
mod edit;
pub mod exit_plan_mode;
#[cfg(test)]
mod fixture;
mod git_folder;
mod glob;
mod grep;
pub mod large_output;
pub mod mcp;
pub mod report_intent;
mod resolved_path;
pub mod shell_output;
pub mod skill;
pub mod source;
pub mod task;
mod task_complete;
mod texts;
pub mod todo;
mod view;
mod walk;
mod web_fetch;

pub use context::{AssessContext, Partial, PermitCheck, ShellLookup, ToolContext};
pub use web_fetch::Web;

use futures::future::BoxFuture;
use loopd_proto::event::skill::SkillInvoked;
use loopd_proto::parse_error::at_path;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use loopd_proto::event::tool::BinaryResult;
use loopd_proto::permission::PermissionRequest;

use loopd_kernel::command::CompletionRef;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tasks::Task;
use loopd_kernel::tool_call::{PlanProposal, UserQuestion};

/// How a tool call ended. The model reads successes and failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    /// The text for the model.
    pub text: String,
    /// The text for people, if it says more: a diff, the full output.
    pub detail: Option<String>,
    /// Images that the model sees after the result.
    pub images: Vec<ToolImage>,
    /// Further binary data, as it is stored.
    pub binaries: Vec<BinaryResult>,
    /// The result as data, as an MCP server sent it.
    pub structured: Option<Box<Value>>,
    /// The result for programs.
    pub facts: Option<Map<String, Value>>,
    /// The completions of tasks that the model learns from this result.
    pub delivered: Vec<CompletionRef>,
    /// The skill that the call loads.
    pub skill: Option<Box<SkillInvoked>>,
}

/// Whether a call did what the model asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Success,
    Failure,
    /// The shell that the command was meant for is gone, so the command was not run.
    ShellGone,
    /// The turn was aborted. The text is what the tool had until then.
    Interrupted,
}

/// An image that a tool read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolImage {
    pub path: String,
    pub media_type: String,
    pub base64: String,
    /// What was done so that models can see it.
    pub note: Option<String>,
}

impl Outcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            status: Status::Success,
            text: text.into(),
            detail: None,
            images: Vec::new(),
            binaries: Vec::new(),
            structured: None,
            facts: None,
            delivered: Vec::new(),
            skill: None,
        }
    }

    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            status: Status::Failure,
            ..Self::success(text)
        }
    }

    /// Makes the outcome of a call whose turn was aborted, with what there was until then.
    pub fn interrupted(left: impl Into<String>) -> Self {
        Self {
            status: Status::Interrupted,
            ..Self::success(left)
        }
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    #[must_use]
    pub fn with_facts(mut self, facts: Map<String, Value>) -> Self {
        self.facts = Some(facts);
        self
    }

    /// Records that the model learns from this result how a task completed.
    #[must_use]
    pub fn marking_delivered(mut self, task: &Task) -> Self {
        let completion = task.rested_at().map(|at| CompletionRef {
            task: task.id.clone(),
            at,
        });
        self.delivered.extend(completion);
        self
    }
}

/// What a call needs before it may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// The tool does nothing that needs permission.
    Nothing,
    /// Exactly this request has to be allowed.
    Permission(PermissionRequest),
    /// Exactly this request has to be allowed. An empty shell may be opened in the meantime.
    PermissionForShell(PermissionRequest),
    /// Nothing runs; the user's answer to this question is the result.
    Answer(UserQuestion),
    /// Nothing runs; the user's answer to this plan is the result.
    Approval(PlanProposal),
    /// The arguments are invalid. Nothing runs, and the model gets this outcome.
    Refused(Outcome),
}

/// A tool with typed arguments.
pub trait Tool: Send + Sync + 'static {
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    const NAME: &'static str;
    /// The description that the model reads.
    const DESCRIPTION: &'static str;
    /// Whether the tool is offered only where commands run on a terminal.
    const NEEDS_TERMINAL: bool = false;
    /// Whether the tool writes files. It is not offered in plan mode.
    const WRITES: bool = false;
    /// Whether a call mostly waits for sub-agents, whose work is counted on its own.
    const WAITS_FOR_AGENTS: bool = false;
    /// Other names of arguments that are read as well and that the schema does not show.
    const OTHER_NAMES: &'static [&'static str] = &[];

    /// Returns what this call needs. It may read the disk; it cannot start anything.
    fn need(&self, args: &Self::Args, context: &AssessContext)
    -> impl Future<Output = Need> + Send;

    /// Does the work. A failure is an outcome that the model can act on.
    fn run(
        &self,
        grant: &Grant,
        args: Self::Args,
        context: &ToolContext,
    ) -> impl Future<Output = Outcome> + Send;
}

/// A tool with its type erased, for the catalog.
pub trait DynTool: Send + Sync + 'static {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    fn parameters(&self) -> Value;
    /// Returns other names of arguments that are read as well.
    fn other_names(&self) -> &'static [&'static str] {
        &[]
    }
    fn needs_terminal(&self) -> bool;
    fn writes(&self) -> bool;
    fn waits_for_agents(&self) -> bool;
    fn need<'a>(&'a self, args: &'a Value, context: &'a AssessContext) -> BoxFuture<'a, Need>;
    fn run<'a>(
        &'a self,
        grant: &'a Grant,
        args: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Outcome>;
}

impl<T: Tool> DynTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn description(&self) -> &str {
        T::DESCRIPTION
    }

    fn waits_for_agents(&self) -> bool {
        T::WAITS_FOR_AGENTS
    }

    fn needs_terminal(&self) -> bool {
        T::NEEDS_TERMINAL
    }

    fn writes(&self) -> bool {
        T::WRITES
    }

    fn parameters(&self) -> Value {
        let schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            })
            .into_generator()
            .into_root_schema_for::<T::Args>();
        let mut value = schema.to_value();
        if let Some(object) = value.as_object_mut() {
            object.remove("title");
        }
        value
    }

    fn other_names(&self) -> &'static [&'static str] {
        T::OTHER_NAMES
    }

    fn need<'a>(&'a self, args: &'a Value, context: &'a AssessContext) -> BoxFuture<'a, Need> {
        Box::pin(async move {
            match parse::<T>(args) {
                Ok(args) => Tool::need(self, &args, context).await,
                Err(outcome) => Need::Refused(outcome),
            }
        })
    }

    fn run<'a>(
        &'a self,
        grant: &'a Grant,
        args: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match parse::<T>(&args) {
                Ok(args) => Tool::run(self, grant, args, context).await,
                Err(outcome) => outcome,
            }
        })
    }
}

fn parse<T: Tool>(args: &Value) -> Result<T::Args, Outcome> {
    serde_path_to_error::deserialize(args).map_err(|error| {
        Outcome::failure(format!(
            "The arguments of {} are not valid: {}",
            T::NAME,
            at_path(&error)
        ))
    })
}
