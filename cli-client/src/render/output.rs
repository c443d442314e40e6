//! Writes to the terminal: the text of the answer, and lines about everything else around it.

use loopd_sdk::proto::visible::for_person;

use super::text::Text;
use crate::terminal::{Style, sanitize};

/// How many lines about sub-agents may wait for the end of a line of the answer.
const PENDING_NOTICES: usize = 64;

impl Text {
    pub(super) fn print_text(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.terminal.print(&sanitize(text))?;
        self.line_open = !text.ends_with('\n');
        self.flush_notices();
        Ok(())
    }

    pub(super) fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.line_open) {
            self.terminal.print("\n")?;
        }
        self.flush_notices();
        Ok(())
    }

    /// Shows a line about a sub-agent after the current line of the answer. Breaks that line if too
    /// many are waiting.
    pub(super) fn agent_notice(&mut self, style: Style, line: String) -> anyhow::Result<()> {
        self.pending_notices.push((style, line));
        if self.pending_notices.len() > PENDING_NOTICES {
            self.end_line()?;
        }
        self.flush_notices();
        Ok(())
    }

    fn flush_notices(&mut self) {
        if self.line_open {
            return;
        }
        for (style, line) in self.pending_notices.drain(..) {
            let line = self.terminal.styled(style, &for_person(&line));
            self.terminal.notice(&line);
        }
    }

    pub(super) fn note(&mut self, style: Style, line: &str) -> anyhow::Result<()> {
        if self.only_problems && style != Style::Bad {
            return Ok(());
        }
        self.end_line()?;
        self.terminal
            .notice(&self.terminal.styled(style, &for_person(line)));
        Ok(())
    }
}
