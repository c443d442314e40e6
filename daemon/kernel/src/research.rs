//! Research: a run of the loop that only hands out questions to research agents, reads their answers
//! and writes a report. The rules hold for the whole run of one message and end with it.

use loopd_proto::id::ToolCallId;
use loopd_proto::run_scope::RunScope;
use serde_json::Value;

use crate::autopilot::TASK_COMPLETE;
use crate::model::ToolCall;
use crate::state::State;
use crate::texts::research as texts;

/// The tools of such a run. In autopilot mode there is `task_complete`, too.
const TOOLS: [&str; 4] = [
    "builtin:task",
    "builtin:create",
    "builtin:view",
    "builtin:report_intent",
];

/// The agent that may be started.
pub const RESEARCH_AGENT: &str = "research";

/// How many agents may be started by one message of the model.
pub const MOST_AT_ONCE: usize = 5;

/// Where a call wants to read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPath<'a> {
    /// The path that the call names, resolved.
    pub path: &'a str,
    /// Whether the path is in a folder with outputs of agents.
    pub is_output: bool,
}

/// A message that begins a research.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResearchMessage {
    pub prompt: String,
    pub display_prompt: String,
    pub scope: RunScope,
}

impl ResearchMessage {
    /// Returns the message that has a question looked into, with a report in this file.
    pub fn new(topic: &str, report: &str) -> Self {
        Self {
            prompt: texts::lead(topic, report),
            display_prompt: texts::begun(topic),
            scope: RunScope {
                command: "research".to_owned(),
                tools: Some(TOOLS.map(str::to_owned).to_vec()),
                research_report: Some(report.to_owned()),
                ..RunScope::default()
            },
        }
    }
}

impl State {
    /// Returns the file of the report if this run is a research.
    pub fn research_report(&self) -> Option<&str> {
        let mut scopes = self.scopes().iter();
        let report = scopes.find_map(|scope| scope.research_report.as_deref());
        report.or_else(|| {
            // A log of an earlier build names the message in an event.
            let research = self.researches.as_ref()?;
            let is_of_run = self.run()?.messages.contains(&research.message);
            is_of_run.then_some(research.report.as_str())
        })
    }

    /// Returns the file of the report that this run has to write and has not written.
    pub fn missing_report(&self) -> Option<&str> {
        let report = self.research_report()?;
        (self.written_report.as_deref() != Some(report)).then_some(report)
    }

    /// Returns how many agents the calls before this one start in the same turn.
    pub fn agents_before(&self, call: &ToolCallId) -> usize {
        let before = self.calls().take_while(|other| other.call.id != *call);
        before.filter(|other| other.call.name == "task").count()
    }
}

/// Returns whether a call writes the report, if it succeeds: a research can create no other file.
pub(crate) fn writes(call: &ToolCall) -> bool {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let written = text("file_text").or(text("content"));
    call.name == "create" && written.is_some_and(|text| !text.trim().is_empty())
}

/// Returns why a call is not allowed while research goes on.
pub fn refusal(
    report: &str,
    tool: &str,
    arguments: &Value,
    path: Option<CallPath<'_>>,
    agents_before: usize,
) -> Option<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match tool {
        "report_intent" | TASK_COMPLETE => None,
        "task" => {
            let agent = text("agent_type").or(text("subagent_type"));
            let background = arguments.get("run_in_background") == Some(&Value::Bool(true));
            if agent != Some(RESEARCH_AGENT) {
                return Some(format!(
                    "While research goes on, only agents of the type {RESEARCH_AGENT} can be started. Pass agent_type \"{RESEARCH_AGENT}\"."
                ));
            }
            if background || text("mode").is_some_and(|mode| mode != "sync") {
                return Some(
                    "While research goes on, you wait for the agents. Pass mode \"sync\"; several calls in one message run at the same time."
                        .to_owned(),
                );
            }
            (agents_before >= MOST_AT_ONCE).then(|| {
                format!(
                    "At most {MOST_AT_ONCE} agents can be started by one message. Wait for these first."
                )
            })
        }
        "create" if path.is_some_and(|it| it.path == report) => None,
        "create" => Some(format!(
            "While research goes on, only the report can be written: {report}"
        )),
        "view" if path.is_some_and(|it| it.is_output || it.path == report) => None,
        "view" => Some(
            "While research goes on, only the outputs of your agents and the report can be viewed. Let an agent look into other files."
                .to_owned(),
        ),
        _ => Some(format!(
            "While research goes on, {tool} cannot be used. Let an agent do it."
        )),
    }
}

#[cfg(test)]
mod tests;
