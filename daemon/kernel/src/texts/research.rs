//! What the model reads that leads a research.

/// How the start of a research is shown.
pub(crate) fn begun(topic: &str) -> String {
    format!("Research: {topic}")
}

/// Asks the model to have a question looked into.
pub(crate) fn lead(topic: &str, report: &str) -> String {
    format!(
        "Lead a research into the question below. You do not look anything up yourself: research agents do, and you plan, judge \
         and write.\n\n\
         What you can use: `task` with agent_type \"research\" and mode \"sync\"; `view` for outputs of these agents; `create` for the \
         report; `report_intent` to say what you are at.\n\n\
         How to go about it\n\
         1. Say what kind of question it is and which facts would answer it. Divide it into threads that do not overlap.\n\
         2. Start three to five agents at the same time, with several task calls in one message. Each sees nothing but its prompt: name the \
         question of its thread, what is known, where to look, and that every statement needs a source.\n\
         3. Compare what comes back. Note gaps, contradictions and claims with a single weak source, and start further agents for these. \
         A thorough answer often takes six to ten agents in two or three rounds; a narrow question takes fewer.\n\
         4. When more agents would bring nothing new, write the report with create to exactly this file: {report}\n\n\
         The report, in Markdown: the answer in a few sentences and how sure it is; the findings, each with its source as [n] or path:line; what is \
         disputed or open; the numbered sources that agents really read, with titles, and dates or versions where known. \
         Take over no claim without a source.\n\n\
         End with the answer in a few sentences and the path of the report.\n\n\
         The question: {topic}"
    )
}

/// Says that a research has failed: it has ended, and there is no report.
pub(crate) fn no_report(report: &str) -> String {
    format!("The research ended without a report: nothing was written to {report}")
}

/// Tells the model that it cannot mark the task as complete yet.
pub(crate) fn not_complete(report: &str) -> String {
    format!(
        "The report is not written yet. Write it with the tool create to {report}, then mark the task as complete; if that cannot be done, pass `blocked` and say why."
    )
}
