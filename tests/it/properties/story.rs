//! What a failing life prints: numbered actions, and under each what followed from it.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use loopd_kernel::command::{Effect, Refusal, Step};
use serde_json::Value;

/// How many characters of a line are shown.
const WIDTH: usize = 130;

/// How the ids of these tests begin.
const ZEROS: &str = "00000000-0000-0000-0000-0000000";

/// Written down only when somebody will read it. Clones write into the same story.
#[derive(Clone, Default)]
pub(super) struct Story(Option<Rc<RefCell<Pages>>>);

#[derive(Default)]
struct Pages {
    actions: usize,
    text: String,
    /// Where the last part begins that another may replace.
    variant: Option<usize>,
}

impl Story {
    /// A story that nobody reads.
    pub(super) fn untold() -> Self {
        Self(None)
    }

    pub(super) fn told() -> Self {
        Self(Some(Rc::default()))
    }

    fn write(&self, line: impl FnOnce(&mut Pages)) {
        if let Some(pages) = &self.0 {
            line(&mut pages.borrow_mut());
        }
    }

    /// What was before the first action.
    pub(super) fn begin(&self, title: &str) {
        self.write(|pages| writeln!(pages.text, "  0. {title}").unwrap());
    }

    pub(super) fn action(&self, action: &dyn std::fmt::Debug) {
        self.write(|pages| {
            pages.actions += 1;
            writeln!(pages.text, "{:>3}. {action:?}", pages.actions).unwrap();
        });
    }

    /// Begins a part that is not of the life itself; it replaces the one before it.
    pub(super) fn instead(&self, title: &str) {
        self.write(|pages| {
            let begin = *pages.variant.get_or_insert(pages.text.len());
            pages.text.truncate(begin);
            writeln!(pages.text, "  -- {title}").unwrap();
        });
    }

    pub(super) fn step(&self, step: &Step) {
        self.write(|pages| {
            let line = match step {
                Step::Store(event) => {
                    format!("stores {}", shown(&serde_json::to_value(event).unwrap()))
                }
                Step::Tell(event) => {
                    format!("tells  {}", shown(&serde_json::to_value(event).unwrap()))
                }
                Step::Do(effect) => format!("starts {}", short(&effect_name(effect))),
            };
            writeln!(pages.text, "       {line}").unwrap();
        });
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        self.write(|pages| writeln!(pages.text, "       is refused: {refusal}").unwrap());
    }

    pub(super) fn text(&self) -> String {
        let pages = self.0.as_ref().map(|pages| pages.borrow().text.clone());
        pages.unwrap_or_default()
    }
}

fn effect_name(effect: &Effect) -> String {
    let call = |name: &str, call: &loopd_kernel::model::ToolCall, turn: &dyn std::fmt::Display| {
        format!("{name} {} of turn {turn}", call.id)
    };
    match effect {
        Effect::Prepare { messages } => {
            let prompts: Vec<_> = messages.iter().map(|it| it.prompt.as_str()).collect();
            format!("Prepare {prompts:?}")
        }
        Effect::CallModel(turn) => format!("CallModel for turn {}", turn.number),
        Effect::Assess { turn, call: of, .. } => call("Assess", of, &turn.number),
        Effect::Run { turn, call: of, .. } => call("Run", of, &turn.number),
        Effect::StartGrace(turn) => format!("StartGrace for turn {}", turn.number),
        Effect::AskClients(asked) => format!("AskClients {}", asked.request_id()),
        Effect::Guard { .. }
        | Effect::AskHooks(_)
        | Effect::AskStop(_)
        | Effect::OpenShellAhead
        | Effect::CancelTurn
        | Effect::AwaitProvider { .. }
        | Effect::KeepOutputs { .. }
        | Effect::Summarise(_)
        | Effect::CancelSummary
        | Effect::MakeTitle { .. }
        | Effect::Withdraw(_)
        | Effect::Resolve { .. }
        | Effect::PartDecided { .. }
        | Effect::GrantAbove(_)
        | Effect::RejoinAgent { .. }
        | Effect::StartWorker(_)
        | Effect::ContinueWorker { .. }
        | Effect::CancelWorkers(_)
        | Effect::RunCommand(_)
        | Effect::CancelAgents
        | Effect::RestoreFiles(_)
        | Effect::Remember(..) => format!("{effect:?}"),
    }
}

/// An event: its kind, then its members that say something.
fn shown(event: &Value) -> String {
    let mut line = event["type"].as_str().unwrap_or_default().to_owned();
    members(&mut line, "", &event["data"]);
    short(&line)
}

fn members(line: &mut String, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (name, value) in object {
                members(line, name, value);
            }
        }
        Value::Array(values) => {
            for value in values {
                members(line, name, value);
            }
        }
        Value::String(text) if text.is_empty() => {}
        Value::Number(number) if number.as_u64() == Some(0) => {}
        Value::String(text) => write!(line, " {name}={text}").unwrap(),
        Value::Bool(_) | Value::Number(_) => write!(line, " {name}={value}").unwrap(),
    }
}

/// Makes one short line: without line breaks, and without the zeros of ids.
fn short(line: &str) -> String {
    let line = line.replace(ZEROS, "#").replace('\n', " ");
    let cut: String = line.chars().take(WIDTH).collect();
    if cut.len() < line.len() {
        cut + "…"
    } else {
        cut
    }
}
