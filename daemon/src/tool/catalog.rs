//! The list of built-in tools. It is built once and shared by all sessions. A tool that is not in
//! this list does not exist.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use loopd_kernel::model::{CountedOnce, ToolSpec};
use serde_json::{Map, Value};

use super::DynTool;
use super::apply_patch::ApplyPatch;
use super::ask_user::AskUser;
use super::bash::{self, Bash};
use super::context_board::ContextBoard;
use super::create::Create;
use super::edit::Edit;
use super::exit_plan_mode::ExitPlanMode;
use super::glob::Glob;
use super::grep::Grep;
use super::report_intent::ReportIntent;
use super::skill::LoadSkill;
use super::task;
use super::task_complete::TaskComplete;
use super::todo::{Sql, TodoRead, TodoWrite};
use super::view::View;
use super::web_fetch::WebFetch;

/// The built-in tools, in the order in which models see them.
#[derive(Clone)]
pub struct Catalog {
    tools: Arc<[Arc<dyn DynTool>]>,
    /// The names of the arguments that each tool reads, found out when somebody asks.
    arguments: Arc<OnceLock<HashMap<String, HashSet<String>>>>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    pub fn new() -> Self {
        let tools: [Arc<dyn DynTool>; 26] = [
            Arc::new(Bash),
            Arc::new(bash::Read),
            Arc::new(bash::Write),
            Arc::new(bash::Stop),
            Arc::new(bash::List),
            Arc::new(View),
            Arc::new(Create),
            Arc::new(Edit),
            Arc::new(AskUser),
            Arc::new(ExitPlanMode),
            Arc::new(Grep),
            Arc::new(Glob),
            Arc::new(ApplyPatch),
            Arc::new(WebFetch::default()),
            Arc::new(Sql),
            Arc::new(TodoWrite),
            Arc::new(TodoRead),
            Arc::new(LoadSkill),
            Arc::new(ReportIntent),
            Arc::new(ContextBoard),
            Arc::new(task::Start),
            Arc::new(task::Read::default()),
            Arc::new(task::Write),
            Arc::new(task::List::default()),
            Arc::new(task::Stop),
            Arc::new(TaskComplete),
        ];
        Self {
            tools: Arc::new(tools),
            arguments: Arc::default(),
        }
    }

    /// Finds a tool by its name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn DynTool>> {
        let tool = self.tools.iter().find(|tool| tool.name() == name)?;
        Some(Arc::clone(tool))
    }

    /// Takes the arguments out of a call that the tool does not read.
    pub fn keep_what_is_read(&self, tool: &str, arguments: &mut Map<String, Value>) {
        if let Some(read) = self.arguments_of(tool) {
            arguments.retain(|name, _| read.contains(name));
        }
    }

    /// Returns the names of the arguments of a call that the tool does not read.
    pub fn not_read<'a>(&self, tool: &str, arguments: &'a Map<String, Value>) -> Vec<&'a str> {
        let Some(read) = self.arguments_of(tool) else {
            return Vec::new();
        };
        let names = arguments.keys().map(String::as_str);
        names.filter(|name| !read.contains(*name)).collect()
    }

    fn arguments_of(&self, tool: &str) -> Option<&HashSet<String>> {
        let read = self.arguments.get_or_init(|| self.argument_names());
        read.get(tool)
    }

    fn argument_names(&self) -> HashMap<String, HashSet<String>> {
        let tools = self.tools().map(|tool| {
            let parameters = tool.parameters();
            let named = parameters.get("properties").and_then(Value::as_object);
            let named = named.into_iter().flat_map(Map::keys).cloned();
            let others = tool.other_names().iter().map(|&name| name.to_owned());
            (tool.name().to_owned(), named.chain(others).collect())
        });
        tools.collect()
    }

    /// Returns all tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = &dyn DynTool> {
        self.tools.iter().map(AsRef::as_ref)
    }

    /// Returns the names of all tools, in order.
    pub fn names(&self) -> Vec<&str> {
        self.tools().map(DynTool::name).collect()
    }

    /// Returns the descriptions of all tools for models, in order. `ask_user` belongs in a model
    /// request only where a client takes questions.
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.tools
            .iter()
            .map(|tool| {
                Arc::new(ToolSpec {
                    name: tool.name().to_owned(),
                    description: tool.description().to_owned(),
                    parameters: tool.parameters(),
                    counted: CountedOnce::default(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
