use loopd_proto::event::Durable;
use loopd_proto::event::skill::SkillTrigger::AgentInvoked;
use serde_json::Value;

use super::*;
use crate::decide::tests::prelude::*;
use crate::tool_call::ToolOrigin::{BuiltIn, Client};

#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
fn verdict(tools: &[&str], tool: &str, origin: ToolOrigin, request: Option<Value>) -> String {
    let skill = Durable::SkillInvoked(tidy(AgentInvoked, Some(tools)));
    let state = model_called().and(skill).state();
    let request: Option<PermissionRequest> = request.map(|it| serde_json::from_value(it).unwrap());
    let at = Whereabouts::from("/work");
    match judge_by_skills(&state, at, tool, origin, request.as_ref()) {
        SkillVerdict::Allow => "allow",
        SkillVerdict::Confirm { .. } => "confirm",
        SkillVerdict::Refuse { .. } => "refuse",
    }
    .to_owned()
}

#[test]
fn what_the_list_of_a_skill_allows() {
    let line = |text: &str| Some(command_line(text));
    let cases = [
        (&["Read"][..], "view", BuiltIn, None, "allow"),
        (&["Read"], "edit", BuiltIn, None, "refuse"),
        (&["read", "grep"], "grep", BuiltIn, None, "allow"),
        (&["Bash"], "bash", BuiltIn, line("rm -r x"), "allow"),
        (&["Bash"], "stop_bash", BuiltIn, None, "allow"),
        (
            &["Bash(git:*)"],
            "bash",
            BuiltIn,
            line("git status"),
            "allow",
        ),
        (
            &["Bash(git status)"],
            "bash",
            BuiltIn,
            line("git status"),
            "allow",
        ),
        (
            &["Bash(git:*)"],
            "bash",
            BuiltIn,
            line("git status; rm x"),
            "confirm",
        ),
        (&["Bash(git:*)"], "bash", BuiltIn, line("rm x"), "confirm"),
        // Not understood, so that it covers nothing.
        (
            &["Bash(git"],
            "bash",
            BuiltIn,
            line("git status"),
            "confirm",
        ),
        (
            &["Bash(git:*)", "Bash"],
            "bash",
            BuiltIn,
            line("rm x"),
            "allow",
        ),
        (
            &["Read(docs/**)"],
            "view",
            BuiltIn,
            Some(read("/work/docs/a.md")),
            "allow",
        ),
        (
            &["Read(docs/**)"],
            "view",
            BuiltIn,
            Some(read("/work/src/a.rs")),
            "confirm",
        ),
        (&[], "view", BuiltIn, Some(read("/work/a")), "refuse"),
        (
            &[],
            "view",
            BuiltIn,
            Some(read("/skills/tidy/a.md")),
            "allow",
        ),
        (&[], "skill", BuiltIn, None, "allow"),
        (&[], "ask_user", BuiltIn, None, "allow"),
        (&[], "task_complete", BuiltIn, None, "allow"),
        // A client's tool of that name is another tool.
        (&[], "skill", Client, None, "refuse"),
        (&["lookup"], "lookup", Client, None, "allow"),
        (&["custom:*"], "lookup", Client, None, "allow"),
        (&["builtin:*"], "lookup", Client, None, "refuse"),
    ];
    for (tools, tool, origin, request, expected) in cases {
        let shown = format!("{tools:?} {tool} {request:?}");
        assert_eq!(verdict(tools, tool, origin, request), expected, "{shown}");
    }
}

#[test]
fn of_several_skills_the_strictest_counts() {
    let mut other = tidy(AgentInvoked, Some(&["Read", "Edit"]));
    other.name = "other".to_owned();
    let state = model_called()
        .and(Durable::SkillInvoked(tidy(AgentInvoked, Some(&["Read"]))))
        .and(Durable::SkillInvoked(other))
        .state();
    let judged = |tool| judge_by_skills(&state, Whereabouts::from("/work"), tool, BuiltIn, None);
    assert_eq!(judged("view"), SkillVerdict::Allow);
    let refused = SkillVerdict::Refuse {
        skill: "tidy".to_owned(),
        tools: vec!["Read".to_owned()],
    };
    assert_eq!(judged("edit"), refused);
}
