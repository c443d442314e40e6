//! What a model is asked for when the conversation is compacted, and what it reads afterwards.

use std::fmt::Write as _;

use loopd_proto::event::todo::Todo;
use loopd_proto::id::Seq;

use crate::command::Summary;
use crate::compaction::middle_left_out;
use crate::questions::Asks;
use crate::state::State;
use crate::tasks::Task;
use crate::tokens;

/// Stands for messages that do not fit into the request for a summary.
pub(crate) const EARLIER_LEFT_OUT: &str =
    "[Earlier messages are left out here, because they would not fit into the context.]";

/// Lets the model go on after the loop has waited for a compaction.
pub(crate) const CONTINUE: &str = "Go on with the work from where it was interrupted. Do not ask whether to go on, and do not repeat \
     what the summary says is done.";

/// Why a compaction failed that was stopped.
pub(crate) const CANCELLED: &str = "It was cancelled.";
pub(crate) const ABORTED: &str = "The turn that waited for it was aborted.";
pub(crate) const INTERRUPTED: &str = "The daemon or the session ended before it did.";
pub(crate) const CLEARED: &str = "The conversation was cleared meanwhile.";
pub(crate) const COPIED: &str = "It goes on in the session that this one is a copy of.";
pub(crate) const EMPTY_SUMMARY: &str = "The model wrote no summary.";

/// Why no summary is asked for: next to nothing of the conversation would be in the request.
pub const NO_ROOM: &str = "The system message, the tools and the request for a summary leave next to no room for the conversation, so \
     that a summary would be of nothing. The conversation stays as it is. Switch to a model with a larger context, offer \
     fewer tools, or start a new session.";

/// Says that the summary does not cover everything.
fn not_covered(messages: u64) -> String {
    format!(
        "The {messages} oldest messages did not fit into the request for this summary and are not in it. What they said is \
         only in the log of the session: do not guess it, and ask if it matters.\n"
    )
}

/// Why a compaction would not have helped.
pub(crate) fn no_help(before: u64, after: u64) -> String {
    format!(
        "It would not help: what the model would read afterwards has {after} tokens, and what it replaces has \
         {before}. The conversation stays as it is."
    )
}

/// How the text begins that stands for what was summarised.
pub(crate) const BEGIN: &str = "The earlier part of this conversation was summarised to free up room; the log of the session has all of \
     it. What follows is what holds now.\n";

/// What is said of a request that is too long although room was made.
pub(crate) const STILL_TOO_LONG: &str = "(The conversation was compacted, or that failed, right before this call, so that it is not \
     compacted again. Switch to a model with a larger context, or start a new session.)";
pub(crate) const NOTHING_TO_SHORTEN: &str = "(There is nothing in the conversation that a summary could replace. Send a shorter message, \
     offer fewer tools, or switch to a model with a larger context.)";

/// How many characters of the plan, of a todo, of a command and of a question are shown.
const PLAN_CHARS: usize = 8_000;
const TODO_CHARS: usize = 400;
const LINE_CHARS: usize = 300;

/// The most todos and tasks that are listed.
const MOST_LINES: usize = 200;

/// Asks for a summary. Clients and recordings know the prompt by its first two sentences.
pub(crate) fn prompt(instructions: &[String]) -> String {
    let mut text = String::from(
        "Please create a detailed summary of the conversation so far. The history is being compacted: the \
         messages above will be replaced by what you write now, and you will go on with nothing else. Write \
         what you need in order to go on without asking again or doing anything twice.\n\n\
         Do not call tools. Answer with these sections and nothing else:\n\n\
         <overview>\nWhat the user wants and how they want it done: the goal, decisions and limits that they \
         stated.\n</overview>\n\n\
         <history>\nWhat was asked and what was done about it, in order, with what failed and why.\n</history>\n\n\
         <work_done>\nFiles that were created, changed or deleted, commands that mattered, and what is checked \
         and what is not.\n</work_done>\n\n\
         <technical_details>\nFacts that took effort to find out: names, versions, error messages, causes, \
         choices and their reasons.\n</technical_details>\n\n\
         <important_files>\nPaths that matter for what is next, each with a word on why.\n</important_files>\n\n\
         <next_steps>\nWhat you were doing at this moment, and what comes next.\n</next_steps>\n\n\
         <checkpoint_title>Two to six words</checkpoint_title>\n\n\
         Copy names, paths, numbers and error messages exactly. Todos, running tasks, the plan, active skills \
         and the last messages of the user are given to you again from elsewhere: do not list them.",
    );
    for more in instructions {
        // Writing to a string cannot fail.
        write!(text, "\n\nFor this summary also: {}", more.trim()).ok();
    }
    text
}

/// What is on disk and belongs to what the model reads after a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surviving {
    /// Instructions that the conversation has beside those of the system message, as models read them.
    pub instructions: Option<String>,
    pub plan: Option<String>,
    /// The texts of active skills, the newest last, as models read them.
    pub skills: Vec<SurvivingSkill>,
}

/// An active skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurvivingSkill {
    pub name: String,
    pub text: String,
}

/// Writes what the model reads in the place of the conversation through a position. All but the
/// summary itself comes from the state and from disk. `limit` is the most tokens of a request, by our
/// own count.
pub(crate) fn replacement(state: &State, through: Seq, summary: &Summary, limit: u64) -> String {
    let disk = &summary.disk;
    let mut text = String::from(BEGIN);
    // First, so that nothing that people or models wrote can be taken for it.
    let instructions = disk.instructions.as_deref().unwrap_or_default();
    if !instructions.is_empty() {
        writeln!(text, "\n{instructions}").ok();
    }
    let mut section = |tag: &str, body: &str| {
        if !body.trim().is_empty() {
            write!(text, "\n<{tag}>\n{}\n</{tag}>\n", body.trim_end()).ok();
        }
    };
    section("last_user_messages", &prompts(state, through, limit / 10));
    section("todos", &todos(state));
    section("background_work", &tasks(state));
    section("open_questions", &questions(state));
    let plan = disk.plan.as_deref().unwrap_or_default().trim();
    section("plan", &middle_left_out(plan, PLAN_CHARS));
    section("active_skills", &skills(&disk.skills, limit / 4));
    let covered = within(summary.text.trim(), limit / 5);
    let left_out = Some(summary.left_out).filter(|left_out| *left_out > 0);
    let note = left_out.map(not_covered).unwrap_or_default();
    section("summary", &format!("{note}{covered}"));
    text
}

/// Cuts a text that has more than so many tokens.
fn within(text: &str, most: u64) -> String {
    let tokens = tokens::count(text);
    if tokens <= most {
        return text.to_owned();
    }
    let chars = text.chars().count() as u64;
    let chars = chars.saturating_mul(most) / tokens.max(1);
    middle_left_out(text, usize::try_from(chars).unwrap_or(usize::MAX))
}

/// Writes the last messages of people, as many as fit.
fn prompts(state: &State, through: Seq, most: u64) -> String {
    let mut chosen = Vec::new();
    let mut left = most;
    for prompt in state.compaction.prompts_through(through).rev() {
        let text = if chosen.is_empty() {
            within(&prompt.text, most)
        } else {
            prompt.text.clone()
        };
        let tokens = tokens::count(&text);
        if tokens > left {
            break;
        }
        left -= tokens;
        chosen.push(format!("<user_message>\n{text}\n</user_message>"));
    }
    chosen.reverse();
    chosen.join("\n")
}

/// Lists the todos, one a line.
pub fn todos(state: &State) -> String {
    let line = |todo: &Todo| {
        let content = one_line(&todo.content, TODO_CHARS);
        format!("- [{}] {}: {content}", todo.status.as_str(), todo.id)
    };
    listed(state.todos.list.todos.iter().map(line))
}

fn tasks(state: &State) -> String {
    let alive = state.tasks.iter().filter(|task| task.ending().is_none());
    listed(alive.map(task_line))
}

fn task_line(task: &Task) -> String {
    let status = if task.is_idle() {
        "waits for a message"
    } else {
        "is running"
    };
    let what = if let Some(shell) = task.shell() {
        format!(
            "shell {}: {}",
            shell.shell_id,
            one_line(&shell.command, LINE_CHARS)
        )
    } else if let Some(agent) = task.agent() {
        format!(
            "agent of type {}: {}",
            agent.agent_type,
            one_line(&task.description, LINE_CHARS)
        )
    } else {
        one_line(&task.description, LINE_CHARS)
    };
    format!("- {} {status}, {what}", task.id)
}

/// Lists the questions that a person may still have before them when the model reads this. Whether a
/// call may run, and what a client answers to one, is settled before the model is called again.
fn questions(state: &State) -> String {
    let asked = state.questions.iter();
    listed(asked.filter_map(|question| match &question.asks {
        Asks::Permission(_) | Asks::ClientTool(_) | Asks::Guard => None,
        Asks::UserInput(asked) => Some(format!(
            "- The user was asked: {}",
            one_line(&asked.question, LINE_CHARS)
        )),
        Asks::Elicitation(asked) => Some(format!(
            "- The user was given a form: {}",
            one_line(&asked.message, LINE_CHARS)
        )),
        Asks::ExitPlanMode(_) => Some("- The user was asked to approve the plan.".to_owned()),
        Asks::AutoModeSwitch(_) => {
            Some("- The user was asked whether another model may go on.".to_owned())
        }
    }))
}

/// Writes the texts of skills, the newest first, as many as fit; the others are named.
fn skills(skills: &[SurvivingSkill], most: u64) -> String {
    let (mut texts, mut named, mut left) = (Vec::new(), Vec::new(), most);
    for skill in skills.iter().rev() {
        let tokens = tokens::count(&skill.text);
        if tokens > left {
            named.push(skill.name.as_str());
        } else {
            left -= tokens;
            texts.push(skill.text.as_str());
        }
    }
    texts.reverse();
    named.reverse();
    let mut text = texts.join("\n\n");
    if !named.is_empty() {
        let list = named.join(", ");
        write!(text, "\nAlso active, but too long to repeat here: {list}. Load one again with the tool skill when you need it.").ok();
    }
    text
}

fn listed(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    let mut text = lines.get(more..).unwrap_or_default().join("\n");
    if more > 0 {
        text.insert_str(0, &format!("({more} older ones are not listed)\n"));
    }
    text
}

fn one_line(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(&line)),
        None => line,
    }
}
