//! What tools did, and what the model says about its task.

use loopd_sdk::proto::event::autopilot::{CompletionOutcome, TaskComplete};
use loopd_sdk::proto::event::tool::{ToolComplete, ToolStart};
use loopd_sdk::proto::visible::for_person;

use super::line::{shorten, summary};
use super::text::Text;
use crate::terminal::Style;

/// How many lines of a tool's output are shown.
const OUTPUT_LINES: usize = 10;

/// The tools whose calls are not shown as calls, because events tell what came of them.
const TASK_COMPLETE: &str = "task_complete";
const TODO_WRITE: &str = "todowrite";

impl Text {
    pub(super) fn show_call(&mut self, start: &ToolStart) -> anyhow::Result<()> {
        let told = [TASK_COMPLETE, TODO_WRITE].into_iter();
        if let Some(tool) = told.into_iter().find(|tool| *tool == start.tool_name) {
            self.told_by_events.insert(start.tool_call_id.clone(), tool);
            return Ok(());
        }
        self.note(Style::Dim, &format!("• {}", summary(start)))
    }

    /// Shows what the model says about its task.
    pub(super) fn show_task(&mut self, said: &TaskComplete) -> anyhow::Result<()> {
        let summary = said.summary.as_deref().unwrap_or_default();
        let reason = said.reason.as_deref().unwrap_or_default();
        match said.outcome {
            Some(CompletionOutcome::Blocked) => {
                self.note(Style::Bad, &format!("blocked: {reason}\n{summary}"))
            }
            _ if said.success == Some(false) => {
                self.note(Style::Dim, &format!("not complete yet: {reason}"))
            }
            Some(_) | None => self.note(Style::Good, &format!("task complete: {summary}")),
        }
    }

    pub(super) fn show_result(&mut self, done: &ToolComplete) -> anyhow::Result<()> {
        match self.told_by_events.remove(&done.tool_call_id) {
            Some(TASK_COMPLETE) => return Ok(()),
            Some(_) if done.error.is_none() => return Ok(()),
            Some(tool) => self.note(Style::Dim, &format!("• {tool}"))?,
            None => {}
        }
        let (style, text) = match (&done.error, &done.result) {
            (Some(error), _) => (Style::Bad, error.message.as_str()),
            (None, Some(result)) => (Style::Dim, result.content.as_str()),
            (None, None) => (Style::Dim, ""),
        };
        let text = for_person(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        for line in lines.iter().take(OUTPUT_LINES) {
            // Why a call did not run, and how to go on, is told in full.
            let line = match &done.error {
                Some(error) if error.code.as_deref() == Some("denied") => (*line).to_owned(),
                _ => shorten(line),
            };
            self.note(style, &format!("  {line}"))?;
        }
        if let Some(more) = lines
            .len()
            .checked_sub(OUTPUT_LINES)
            .filter(|more| *more > 0)
        {
            self.note(Style::Dim, &format!("  … {more} more lines"))?;
        }
        Ok(())
    }
}
