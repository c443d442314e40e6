//! Asks a server for its tools and prompts, page by page and within bounds.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CallError, Connection};
use crate::config::ServerConfig;
use crate::prompts::{MOST_PROMPTS, ServerPrompt, read_list};
use crate::tools::{LARGEST_TOOLS, MOST_TOOLS, ServerTool, read_page, resource_tools};

/// The most pages of a list.
const MOST_PAGES: usize = 100;
/// The longest text about a tool that is left out.
const LONGEST_PROBLEM: usize = 500;
/// The most texts about tools that are left out.
const MOST_PROBLEMS: usize = 50;

impl Connection {
    /// Asks for all tools. Returns those that can be used, and what is wrong with others.
    pub(crate) async fn list_tools(
        &self,
        config: &ServerConfig,
    ) -> Result<(Vec<ServerTool>, Vec<String>), CallError> {
        let mut tools = Tools::default();
        if self.can("tools") {
            let mut pages = Pages::new("tools/list", config.startup_timeout);
            while let Some(page) = pages.next(self).await? {
                let page = read_page(&page, &config.tools).map_err(CallError::Unreadable)?;
                tools.problems.extend(page.problems);
                if !page.tools.into_iter().all(|tool| tools.take(tool)) {
                    break;
                }
            }
        }
        if self.can("resources") {
            let known = |tool: &ServerTool| config.tools.lets_through(&tool.name);
            let more = resource_tools().into_iter().filter(known);
            for tool in more {
                tools.take(tool);
            }
        }
        Ok(tools.listed())
    }

    /// Asks for the prompts. A server whose prompts cannot be listed has none.
    pub(crate) async fn list_prompts(&self, config: &ServerConfig) -> Vec<ServerPrompt> {
        let mut prompts = Vec::new();
        if !self.can("prompts") {
            return prompts;
        }
        let mut pages = Pages::new("prompts/list", config.startup_timeout);
        loop {
            match pages.next(self).await {
                Ok(Some(page)) => prompts.extend(read_list(&page)),
                Ok(None) => break,
                Err(error) => {
                    let why = format!("its prompts could not be listed: {error}");
                    self.handler.log.add(&why);
                    break;
                }
            }
            if prompts.len() >= MOST_PROMPTS {
                prompts.truncate(MOST_PROMPTS);
                break;
            }
        }
        prompts
    }
}

/// The tools that were listed so far.
#[derive(Default)]
struct Tools {
    kept: Vec<ServerTool>,
    problems: Vec<String>,
    /// The size of their definitions.
    bytes: usize,
}

impl Tools {
    /// Takes a tool; returns whether there may be room for more.
    fn take(&mut self, tool: ServerTool) -> bool {
        if self.kept.iter().any(|it| it.name == tool.name) {
            let problem = format!("`{}` is listed twice; the first one counts", tool.name);
            self.problems.push(problem);
            return true;
        }
        if self.kept.len() >= MOST_TOOLS {
            let problem = format!("only the first {MOST_TOOLS} tools are used");
            self.problems.push(problem);
            return false;
        }
        let size = tool.size();
        if self.bytes + size > LARGEST_TOOLS {
            self.problems.push(format!(
                "`{}` and the tools after it are left out: the definitions have more than {LARGEST_TOOLS} \
                 bytes; name the tools that are needed in `tools` of the server's entry",
                tool.name
            ));
            return false;
        }
        self.bytes += size;
        self.kept.push(tool);
        true
    }

    fn listed(mut self) -> (Vec<ServerTool>, Vec<String>) {
        let left = self.problems.len().saturating_sub(MOST_PROBLEMS);
        self.problems.truncate(MOST_PROBLEMS);
        for problem in &mut self.problems {
            *problem = problem.chars().take(LONGEST_PROBLEM).collect();
        }
        if left > 0 {
            let problem = format!("{left} further problems with tools are not listed");
            self.problems.push(problem);
        }
        (self.kept, self.problems)
    }
}

/// The pages of a list.
pub(super) struct Pages {
    method: &'static str,
    timeout: Duration,
    left: usize,
    cursor: Option<Value>,
}

impl Pages {
    pub(super) fn new(method: &'static str, timeout: Duration) -> Self {
        Self {
            method,
            timeout,
            left: MOST_PAGES,
            cursor: None,
        }
    }

    /// Asks for the next page; `None` after the last.
    pub(super) async fn next(
        &mut self,
        connection: &Connection,
    ) -> Result<Option<Value>, CallError> {
        let is_first = self.left == MOST_PAGES;
        if self.left == 0 || !(is_first || self.cursor.is_some()) {
            return Ok(None);
        }
        self.left -= 1;
        let params = match self.cursor.take() {
            Some(cursor) => json!({"cursor": cursor}),
            None => json!({}),
        };
        let asked = connection.request_by_name(self.method, params, self.timeout);
        let page = asked.await?;
        self.cursor = page.get("nextCursor").filter(|it| it.is_string()).cloned();
        Ok(Some(page))
    }
}
