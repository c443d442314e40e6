//! Questions to the person: what is shown of one, and what a key answers.
//!
//! What was typed before a question was shown does not answer it: a question takes keys only after
//! a moment in which nothing was typed, and shows its keys from then on.

use std::time::Duration;

use loopd_sdk::PermissionDecision;
use loopd_sdk::proto::permission::Approval;
use loopd_sdk::proto::visible::for_person;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::diff;
use super::editor::{Edit, Editor};
use super::keys::Key;
use super::painter::Cursor;
use super::styled::{Colour, Line, Look, wrapped};

/// How long nothing must be typed before a question takes keys.
const QUIET: Duration = Duration::from_millis(400);
/// How many rows the answer to a question may take.
const ANSWER_ROWS: usize = 5;

/// A permission request, in the words that are shown.
pub(crate) struct PermissionText {
    pub(crate) title: String,
    /// The exact command, or the arguments of a call.
    pub(crate) exact: Option<String>,
    pub(crate) diff: Option<String>,
    pub(crate) warning: Option<String>,
    pub(crate) reason: Option<String>,
    /// What an approval for the session is called; `None` if there can be none.
    pub(crate) for_session: Option<&'static str>,
    /// What an approval for longer than this once covers.
    pub(crate) covers: Option<String>,
    /// What would be allowed in this folder for good.
    pub(crate) here: Option<Approval>,
}

pub(super) struct PermissionQuestion {
    text: PermissionText,
    reply: oneshot::Sender<PermissionDecision>,
    /// The reason for a no, while it is typed.
    reason: Option<Editor>,
}

impl PermissionQuestion {
    pub(super) fn new(text: PermissionText, reply: oneshot::Sender<PermissionDecision>) -> Self {
        Self {
            text,
            reply,
            reason: None,
        }
    }
}

/// A question whose answer is a line.
pub(super) struct LineQuestion {
    text: String,
    prompt: String,
    reply: oneshot::Sender<String>,
    editor: Editor,
}

impl LineQuestion {
    pub(super) fn new(text: &str, prompt: &str, reply: oneshot::Sender<String>) -> Self {
        Self {
            text: text.to_owned(),
            prompt: prompt.to_owned(),
            reply,
            editor: Editor::default(),
        }
    }
}

pub(super) enum Question {
    Permission(PermissionQuestion),
    Line(LineQuestion),
}

/// What a key did to a question.
#[derive(Debug)]
pub(super) enum Answered {
    /// It is still open.
    No,
    /// The key is not for questions.
    Ignored,
    Line(String),
    Decided(PermissionDecision, String),
    /// It is to be allowed in this folder for good.
    Here(Approval),
}

impl Question {
    /// Waits until nobody wants the answer any more.
    pub(super) async fn closed(&mut self) {
        match self {
            Self::Permission(question) => question.reply.closed().await,
            Self::Line(question) => question.reply.closed().await,
        }
    }

    /// Returns what is printed when the question is shown. It stays in the scrollback, in full.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mark = Look::of(Colour::Yellow).bold();
        match self {
            Self::Line(question) => {
                let lines = question.text.trim_end().lines();
                // The text has the codes of its style already.
                lines.map(|line| Line::plain(line).verbatim()).collect()
            }
            Self::Permission(question) => {
                let text = &question.text;
                let mut lines = vec![Line::of(mark, "? ").with(Look::BOLD, &text.title)];
                if let Some(exact) = &text.exact {
                    let exact = for_person(exact);
                    let shown = exact.lines();
                    lines.extend(shown.map(|line| {
                        let line = Line::of(Look::of(Colour::Cyan), line);
                        line.verbatim().indented("    ", "    ")
                    }));
                }
                if let Some(diff) = &text.diff {
                    lines.extend(diff::lines(diff));
                }
                let bad = Look::of(Colour::Red);
                for (look, note) in [(bad, &text.warning), (Look::DIM, &text.reason)] {
                    let Some(note) = note else { continue };
                    let note = Line::of(look, for_person(note).replace('\n', " "));
                    lines.push(note.indented("  ", "  "));
                }
                if let Some(covers) = &text.covers {
                    let covers = for_person(covers).replace('\n', " ");
                    let note = Line::of(Look::DIM, format!("beyond this once it covers {covers}"));
                    lines.push(note.indented("  ", "  "));
                }
                lines
            }
        }
    }

    /// Returns the rows that are drawn while the question is open, and where the cursor is.
    pub(super) fn rows(&self, columns: usize) -> (Vec<Line>, Cursor) {
        match self {
            Self::Line(question) => {
                let prompt = Line::plain(question.prompt.trim_start());
                question.editor.rows(&prompt, columns, ANSWER_ROWS)
            }
            Self::Permission(question) => {
                if let Some(reason) = &question.reason {
                    let prompt = Line::of(Look::BOLD, "no, because: ");
                    return reason.rows(&prompt, columns, ANSWER_ROWS);
                }
                let key = Look::of(Colour::Yellow).bold();
                let mut line = Line::of(key, "[y]").with(Look::PLAIN, " yes ");
                if let Some(session) = question.text.for_session {
                    line = line
                        .with(key, "[a]")
                        .with(Look::PLAIN, format!(" {session} "));
                }
                if question.text.here.is_some() {
                    line = line.with(key, "[A]").with(Look::PLAIN, " always here ");
                }
                let line = line.with(key, "[n]").with(Look::PLAIN, " no, and why ");
                let rows = wrapped(&[line], columns);
                let cursor = Cursor {
                    row: rows.len().saturating_sub(1),
                    column: rows.last().map_or(0, Line::width),
                };
                (rows, cursor)
            }
        }
    }

    pub(super) fn key(&mut self, key: &Key) -> Answered {
        match self {
            Self::Line(question) => match question.editor.key(key) {
                Edit::Sent(line) => Answered::Line(line),
                Edit::Changed => Answered::No,
                Edit::Ignored => Answered::Ignored,
            },
            Self::Permission(question) => question.key(key),
        }
    }

    /// Returns what was typed as the answer so far.
    pub(super) fn typed(&self) -> Option<&str> {
        match self {
            Self::Line(question) => Some(question.editor.text()),
            Self::Permission(question) => question.reason.as_ref().map(Editor::text),
        }
    }

    /// Gives the answer to whoever asked.
    pub(super) fn answer(self, line: String) {
        if let Self::Line(question) = self {
            // It fails if the question was closed in the meantime.
            question.reply.send(line).ok();
        }
    }

    /// Gives the decision to whoever asked.
    pub(super) fn decide(self, decision: PermissionDecision) {
        if let Self::Permission(question) = self {
            // It fails if the question was closed in the meantime.
            question.reply.send(decision).ok();
        }
    }
}

impl PermissionQuestion {
    fn key(&mut self, key: &Key) -> Answered {
        if let Some(reason) = &mut self.reason {
            return match (key, reason.key(key)) {
                (Key::Escape, _) => {
                    self.reason = None;
                    Answered::No
                }
                (_, Edit::Sent(text)) => {
                    let text = text.trim();
                    let feedback = (!text.is_empty()).then(|| text.to_owned());
                    let told = match &feedback {
                        Some(why) => format!("denied: {why}"),
                        None => "denied".to_owned(),
                    };
                    Answered::Decided(PermissionDecision::Reject { feedback }, told)
                }
                (_, Edit::Changed) => Answered::No,
                (_, Edit::Ignored) => Answered::Ignored,
            };
        }
        match key {
            Key::Char('y' | 'Y') => {
                Answered::Decided(PermissionDecision::ApproveOnce {}, "allowed".to_owned())
            }
            Key::Char('a') if self.text.for_session.is_some() => Answered::Decided(
                PermissionDecision::ApproveForSession {
                    approval: None,
                    domain: None,
                },
                "allowed in this session".to_owned(),
            ),
            Key::Char('A') => match &self.text.here {
                Some(approval) => Answered::Here(approval.clone()),
                None => Answered::No,
            },
            Key::Char('n' | 'N') => {
                self.reason = Some(Editor::default());
                Answered::No
            }
            Key::Char(_) | Key::Enter | Key::NewLine | Key::Paste(_) | Key::Tab => Answered::No,
            _ => Answered::Ignored,
        }
    }
}

/// A question on the screen.
pub(super) struct OpenQuestion {
    pub(super) question: Question,
    shown: Instant,
    takes_keys: bool,
}

impl OpenQuestion {
    pub(super) fn new(question: Question) -> Self {
        Self {
            question,
            shown: Instant::now(),
            takes_keys: false,
        }
    }

    /// Returns whether keys answer it, after what was typed last at this time.
    pub(super) fn takes_keys(&mut self, last_key: Option<Instant>) -> bool {
        let quiet = |since: Instant| since.elapsed() >= QUIET;
        self.takes_keys |= quiet(self.shown) && last_key.is_none_or(quiet);
        self.takes_keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(for_session: Option<&'static str>, here: Option<Approval>) -> Question {
        let (reply, _answer) = oneshot::channel();
        let text = PermissionText {
            title: "run this".to_owned(),
            exact: Some("rm -r x".to_owned()),
            diff: None,
            warning: None,
            reason: None,
            for_session,
            covers: None,
            here,
        };
        Question::Permission(PermissionQuestion::new(text, reply))
    }

    #[test]
    fn only_the_keys_that_are_offered_answer() {
        let mut once = asked(None, None);
        assert!(matches!(once.key(&Key::Char('a')), Answered::No));
        assert!(matches!(once.key(&Key::Char('A')), Answered::No));
        assert!(matches!(once.key(&Key::Enter), Answered::No));
        assert!(matches!(once.key(&Key::Char('y')), Answered::Decided(..)));
        let mut all = asked(Some("in this session"), Some(Approval::Write {}));
        assert!(matches!(all.key(&Key::Char('A')), Answered::Here(_)));
        let (rows, _) = all.rows(200);
        let text: String = rows.iter().map(Line::text).collect();
        assert_eq!(
            text.trim_end(),
            "[y] yes [a] in this session [A] always here [n] no, and why"
        );
        for columns in [8, 19] {
            let (rows, _) = all.rows(columns);
            assert!(rows.iter().all(|row| row.width() <= columns), "{rows:?}");
        }
    }

    #[test]
    fn a_no_may_have_a_reason() {
        let mut question = asked(None, None);
        question.key(&Key::Char('n'));
        for letter in "yes, too old".chars() {
            assert!(matches!(question.key(&Key::Char(letter)), Answered::No));
        }
        let Answered::Decided(PermissionDecision::Reject { feedback }, _) =
            question.key(&Key::Enter)
        else {
            unreachable!("it is denied");
        };
        assert_eq!(feedback.as_deref(), Some("yes, too old"));
    }
}
