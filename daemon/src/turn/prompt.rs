//! The system message, divided into sections so that clients can change each one separately.

use std::fmt::Write as _;

use loopd_proto::session::{Mode, SectionAction, SectionOverride};

use loopd_kernel::policy::planning::Planning;
use loopd_kernel::texts;

/// What the sections depend on. It has no time and nothing else that changes from call to call,
/// because an unchanged beginning lets providers reuse their cache.
pub struct PromptInput<'a> {
    pub cwd: &'a str,
    pub model: &'a str,
    pub tool_names: &'a [String],
    pub mode: Mode,
    pub planning: Planning,
    pub agent_prompt: Option<&'a str>,
    /// The texts of the skills that the agent has.
    pub skills: &'a str,
    /// Whether the session is a sub-agent, so that another agent reads its answer.
    pub works_for_another: bool,
    /// The custom instructions as text.
    pub instructions: String,
}

/// The named sections, in the order in which the model reads them.
#[derive(Debug, Clone)]
pub struct Sections {
    parts: Vec<(&'static str, String)>,
}

/// The sections that clients address together as `identity`.
const IDENTITY_GROUP: [&str; 3] = ["preamble", "tone", "tool_efficiency"];

/// Builds the sections.
pub fn sections(input: &PromptInput<'_>) -> Sections {
    let mut parts = vec![
        ("preamble", preamble(input)),
        ("tone", TONE.to_owned()),
        ("tool_efficiency", TOOL_EFFICIENCY.to_owned()),
        ("environment_context", environment(input)),
        ("code_change_rules", CODE_CHANGES.to_owned()),
        ("guidelines", GUIDELINES.to_owned()),
        ("safety", SAFETY.to_owned()),
        ("tool_instructions", TOOLS.to_owned()),
        ("custom_instructions", input.instructions.clone()),
        ("runtime_instructions", runtime_text(input)),
        ("last_instructions", LAST.to_owned()),
    ];
    if let Some(agent) = input.agent_prompt {
        parts.insert(
            1,
            (
                "agent_instructions",
                format!("<agent_instructions>\n{agent}\n</agent_instructions>"),
            ),
        );
    }
    if !input.skills.is_empty() {
        let after = parts.iter().position(|(name, _)| *name == "tone");
        parts.insert(after.unwrap_or(0), ("skills", input.skills.to_owned()));
    }
    Sections { parts }
}

impl Sections {
    /// Returns the whole text without empty sections.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .map(|(_, text)| text.trim())
            .filter(|text| !text.is_empty())
            .collect();
        texts.join("\n\n")
    }

    fn covers(name: &str, part: &str) -> bool {
        part == name || (name == "identity" && IDENTITY_GROUP.contains(&part))
    }

    /// Returns the text of a section; for a group, that of its first part.
    pub fn get(&self, name: &str) -> String {
        let covered = self.parts.iter().find(|(part, _)| Self::covers(name, part));
        covered.map(|(_, text)| text.clone()).unwrap_or_default()
    }

    /// Replaces the text of a section; for a group, empties its other parts.
    pub fn set(&mut self, name: &str, content: String) {
        let mut content = Some(content);
        for (part, text) in &mut self.parts {
            if Self::covers(name, part) {
                *text = content.take().unwrap_or_default();
            }
        }
        // A section that does not exist here is added, so that the client's text is not lost.
        if let Some(content) = content {
            self.parts.push(("client", content));
        }
    }

    /// Applies a client's override. The caller asks the client for transforms.
    pub fn change(&mut self, name: &str, wish: &SectionOverride) {
        let content = wish.content.clone().unwrap_or_default();
        match wish.action {
            SectionAction::Replace => self.set(name, content),
            SectionAction::Remove => self.set(name, String::new()),
            SectionAction::Append => self.set(name, join(&self.get(name), &content)),
            SectionAction::Prepend => self.set(name, join(&content, &self.get(name))),
            SectionAction::Preserve | SectionAction::Transform => {}
        }
    }
}

fn join(first: &str, second: &str) -> String {
    if first.is_empty() || second.is_empty() {
        format!("{first}{second}")
    } else {
        format!("{first}\n\n{second}")
    }
}

/// Appends the client's text.
pub fn with_appended(text: String, content: &str) -> String {
    join(&text, content)
}

/// Tells the model which tools are gone because their client has left.
pub fn tools_gone_notice(names: &[String]) -> String {
    format!(
        "<tools_changed_notice>\nTools no longer available: {}\n\nImportant: Do not attempt to call tools that are \
         no longer available unless you've been notified that they're available again.\n</tools_changed_notice>",
        names.join(", ")
    )
}

fn preamble(input: &PromptInput<'_>) -> String {
    format!(
        "You are a software engineering agent running inside loopd, a background daemon that keeps your session \
         alive across clients and restarts. You help with code, shells, git and GitHub work in the user's own \
         project. The model behind you is {}.",
        input.model
    )
}

fn environment(input: &PromptInput<'_>) -> String {
    let mut text = String::from("<environment_context>\n");
    // Writing to a string cannot fail.
    writeln!(text, "Working directory: {}", input.cwd).ok();
    writeln!(text, "Operating system: {}", std::env::consts::OS).ok();
    if !input.tool_names.is_empty() {
        writeln!(text, "Tools: {}", input.tool_names.join(", ")).ok();
    }
    text.push_str("</environment_context>");
    text
}

fn runtime_text(input: &PromptInput<'_>) -> String {
    let own = match input.mode {
        _ if input.works_for_another => FOR_ANOTHER,
        Mode::Interactive | Mode::Plan => "",
        Mode::Autopilot => AUTOPILOT_MODE,
    };
    let plan = match texts::plan_mode(input.planning) {
        "" => String::new(),
        text => format!("<plan_mode>\n{text}\n</plan_mode>"),
    };
    join(own, &plan)
}

const FOR_ANOTHER: &str = "<delegated_work>\n\
- Another agent gave you this task and waits for the outcome. It sees nothing of what you do but your last message: put \
everything into it that the task asks for, with the paths and facts it needs to go on.\n\
- Nobody answers questions. Where the task leaves something open, choose what fits best and say what you chose.\n\
- Do only what the task asks. When you cannot do it, stop and say why and how far you got.\n\
</delegated_work>";

const TONE: &str = "<tone>\n\
- Answer in as few words as the question deserves; lead with the result.\n\
- Before a longer piece of work, say in a sentence what you are about to do.\n\
- Say plainly when something failed, was skipped or could not be checked.\n\
</tone>";

const TOOL_EFFICIENCY: &str = "<tool_efficiency>\n\
- Ask for independent tool calls together, in one message.\n\
- Search before you read; read the part you need, not the whole file.\n\
- Join shell commands that belong together into one call.\n\
</tool_efficiency>";

const CODE_CHANGES: &str = "<code_change_instructions>\n\
- Change only what the task needs, in the style of the code around it.\n\
- Leave failures alone that were there before, unless you were asked to fix them; mention them.\n\
- Run the project's own build, linters and tests on what you changed, where there are any.\n\
- Do not add dependencies or new tools without need.\n\
</code_change_instructions>";

const GUIDELINES: &str = "<guidelines>\n\
- Look at the files before you make claims about them.\n\
- Ask the user when a decision is theirs and the answer changes what you do.\n\
- Clean up temporary files that you made.\n\
</guidelines>";

const SAFETY: &str = "<safety>\n\
- Stay within the user's project unless asked to go elsewhere.\n\
- Never show, send or store secrets that you come across.\n\
- Do not take actions that destroy work or reach outside systems unless the user asked for exactly that.\n\
- A permission that was refused is an answer: do not work around it.\n\
</safety>";

const TOOLS: &str = "<tool_instructions>\n\
- Prefer the file tools over shell commands for viewing, searching and editing.\n\
- Use absolute paths.\n\
- Commands run without a terminal to type into: pass flags that keep programs from asking.\n\
</tool_instructions>";

const LAST: &str = "<last_instructions>\n\
Keep going until the user's request is answered or you need something that only the user can give.\n\
</last_instructions>";

const AUTOPILOT_MODE: &str = "<autopilot_mode>\n\
- Nobody is watching closely: make reasonable decisions yourself and go on until the task is complete.\n\
- When everything that was asked for is done and checked, call task_complete. A reply without it does not end the task.\n\
- If you cannot go on without something that only the user can give, call task_complete and say in `blocked` what you need.\n\
</autopilot_mode>";
