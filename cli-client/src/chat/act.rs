//! What keys do, and what is done with a line that was typed.

use tokio::time::Instant;

use super::complete::{Chosen, Wanted, wanted};
use super::editor::Edit;
use super::keys::Key;
use super::question::Answered;
use super::raw::RawMode;
use super::styled::Look;
use super::{Chat, MOST_LINES, raw};
use crate::slash::{self, Said};
use crate::terminal::{Style, sanitize};

/// The keys of a conversation, for `/help`.
const KEYS: &str = "
Enter sends, also while the agent works: it then reads the message before its next step.
Alt-Enter or Ctrl-J  begins a new line; so does a backslash before Enter
Up, Down             go through what was sent before
Tab                  completes commands, agents, skills and, after an @, files
Esc                  stops what runs
Ctrl-B               lets what runs go on in the background
Ctrl-O, /show N      shows all of the last tool call, or of call N
!COMMAND             runs a command of yours in the directory of the session
Ctrl-C               takes away what is typed; Up brings it back
Ctrl-C twice, Ctrl-D leaves; the session goes on
";

impl Chat<'_> {
    pub(super) fn type_bytes(&mut self, bytes: &[u8]) {
        for key in self.keys.feed(bytes) {
            self.key(&key);
        }
    }

    /// Takes an escape as the key.
    pub(super) fn escape(&mut self) {
        if let Some(key) = self.keys.escape() {
            self.key(&key);
        }
    }

    fn key(&mut self, key: &Key) {
        let last_key = self.last_key.replace(Instant::now());
        let leaves = std::mem::take(&mut self.leaves_next);
        self.took_away = false;
        if *key == Key::Ctrl('c') {
            self.ctrl_c(leaves);
            return;
        }
        if let Some(open) = &mut self.question
            && open.takes_keys(last_key)
        {
            let answered = open.question.key(key);
            if self.answered(answered) {
                return;
            }
        } else if let Some(menu) = &mut self.menu {
            match menu.key(key, &mut self.editor) {
                Chosen::Stays => return,
                Chosen::Closed => {
                    self.menu = None;
                    return;
                }
                Chosen::Passed => self.menu = None,
            }
        }
        match key {
            Key::Escape => self.stop(),
            Key::Ctrl('b') => self.promote(),
            Key::Ctrl('o') => self.unfold(None),
            Key::Ctrl('l') => self.painter.resize(super::size(self.app)),
            Key::Ctrl('z') => self.suspend(),
            Key::Ctrl('d') if self.editor.is_empty() => self.leave(),
            Key::Tab => match wanted(self.editor.before(), &self.directory) {
                Wanted::Asked(typed) => self.ask_completions(typed),
                Wanted::Files(found) => {
                    self.menu = super::Menu::open(&mut self.editor, found);
                }
                Wanted::Nothing => {}
            },
            key => {
                if let Edit::Sent(line) = self.editor.key(key) {
                    self.line(line);
                }
            }
        }
    }

    /// Does what a key did to the question; returns `false` if the key was not for it.
    fn answered(&mut self, answered: Answered) -> bool {
        match answered {
            Answered::No => {}
            Answered::Ignored => return false,
            Answered::Line(line) => {
                if let Some(open) = self.question.take() {
                    self.transcript.note(Look::PLAIN, &format!("  {line}"));
                    open.question.answer(line);
                }
            }
            Answered::Decided(decision, told) => {
                if let Some(open) = self.question.take() {
                    self.transcript.note(Look::DIM, &format!("  {told}"));
                    open.question.decide(decision);
                }
            }
            Answered::Here(approval) => {
                if let Some(open) = self.question.take() {
                    self.locate(open.question, approval);
                }
            }
        }
        true
    }

    fn ctrl_c(&mut self, leaves: bool) {
        self.menu = None;
        if !self.editor.is_empty() {
            let draft = self.editor.text().to_owned();
            self.editor.remember(&draft);
            self.editor.clear();
            self.took_away = true;
        } else if leaves {
            self.leave();
        } else {
            self.leaves_next = true;
        }
    }

    fn unfold(&mut self, number: Option<usize>) {
        match self.transcript.calls.unfold(number) {
            Some(lines) => self.transcript.add(lines),
            None => self
                .transcript
                .note(Look::DIM, "there is no such tool call"),
        }
    }

    /// Stops this process until the shell lets it go on.
    fn suspend(&mut self) {
        let cleared = self.print_rest();
        // A failure cannot be reported anywhere.
        raw::write(&cleared).ok();
        self.raw = None;
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::TSTP).ok();
        self.raw = RawMode::enter().ok();
        self.painter.resize(super::size(self.app));
    }

    /// Does what a line says.
    fn line(&mut self, line: String) {
        if line.trim().is_empty() {
            return;
        }
        self.editor.remember(&line);
        if let Some(command) = line.trim_start().strip_prefix('!') {
            if !command.trim().is_empty() {
                self.run_user_command(command.trim());
            }
        } else if let Some(number) = shown_call(&line) {
            match number {
                Ok(number) => self.unfold(number),
                Err(why) => self.transcript.error(why),
            }
        } else if !slash::is_command(&line) {
            self.send(slash::unescaped(&line).into());
        } else if self.command.is_none() {
            self.begin_command(line);
        } else if self.waiting_lines.len() < MOST_LINES {
            self.waiting_lines.push_back(line);
        } else {
            self.transcript.error("too many commands wait");
        }
    }

    fn begin_command(&mut self, line: String) {
        let (app, session) = (self.app, self.session);
        let is_like_path = slash::is_like_path(&line);
        if !is_like_path {
            self.transcript.note(Look::BOLD, &format!("> {line}"));
        }
        let is_help = line.trim().eq_ignore_ascii_case("/help");
        self.command = Some(Box::pin(async move {
            // A message is shown when the session has it.
            if is_like_path && slash::is_listed(session, &line).await? {
                let shown = app
                    .terminal
                    .styled(Style::Bold, &sanitize(&format!("> {line}")));
                app.terminal.notice(&shown);
            }
            let said = slash::read(app, session, &line, None).await;
            if is_help {
                app.terminal.print(KEYS)?;
            }
            said
        }));
    }

    /// Goes on after a command.
    pub(super) fn said(&mut self, said: anyhow::Result<Said>) {
        match said {
            Ok(Said::Send(message)) => self.send(message),
            // What it has begun is shown like everything else.
            Ok(Said::Done(_) | Said::Over(_)) => {}
            Ok(Said::Exit) => self.leave(),
            Err(error) => self.transcript.error(&format!("loop: {error:#}")),
        }
        if let Some(line) = self.waiting_lines.pop_front() {
            self.begin_command(line);
        }
    }
}

/// Returns which call `/show` names; `None` if the line is something else.
fn shown_call(line: &str) -> Option<Result<Option<usize>, &'static str>> {
    let rest = line.trim().strip_prefix("/show")?;
    if rest.is_empty() {
        return Some(Ok(None));
    }
    let number = rest.strip_prefix(char::is_whitespace)?.trim();
    let number = number.trim_start_matches('#').parse();
    Some(match number {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err("write it as /show N, with the number behind the call"),
    })
}
