use loopd_proto::event::Durable;
use loopd_proto::event::skill::SkillTrigger::{AgentInvoked, ContextLoad, UserInvoked};
use serde_json::json;

use crate::context;
use crate::decide::tests::prelude::*;
use crate::model::{ModelMessage, Part};

/// The model loaded a skill that allows these tools, and called `b` afterwards.
fn loaded(tools: &[&str]) -> Given {
    let skill = Durable::SkillInvoked(tidy(AgentInvoked, Some(tools)));
    two_calls().and(completed("a")).and(skill)
}

fn users(given: &Given) -> Vec<String> {
    let messages = context::messages(&given.state());
    let users = messages.into_iter().filter_map(|message| match message {
        ModelMessage::User(parts) => Some(parts),
        ModelMessage::System(_) | ModelMessage::Assistant(_) | ModelMessage::ToolResult { .. } => {
            None
        }
    });
    users
        .flatten()
        .map(|part| match part {
            Part::Text(text) => text,
            Part::Image { .. } | Part::Document { .. } => String::new(),
        })
        .collect()
}

#[test]
fn a_skill_that_the_model_loads_follows_the_results_of_the_turn() {
    check(
        &two_calls(),
        || finished(0, "a", loads(tidy(AgentInvoked, None))),
        "
        store tool.execution_complete a ok turn=0
        store skill.invoked tidy /skills/tidy/SKILL.md agent-invoked gpt
        now turn i/0 [a:done b:started]
        ",
    );
    let skill = Durable::SkillInvoked(tidy(AgentInvoked, None));
    let later = two_calls().and(completed("a")).and(skill.clone());
    let later = later.and(completed("b")).and(turn_started(1));
    let context = "<skill-context name=\"tidy\">\nBase directory for this skill: /skills/tidy\n\nTidy up.\n\n</skill-context>";
    assert_eq!(users(&later), ["hello", context]);
    // The model has read the same text already.
    let again = later.and(skill).and(turn_started(2));
    assert_eq!(users(&again), ["hello", context]);
    assert_eq!(again.state().active_skills().count(), 1);
}

#[test]
fn a_failed_call_loads_nothing() {
    let failed = || crate::command::CallOutcome {
        skill: loads(tidy(AgentInvoked, None)).skill,
        ..failed("broken")
    };
    check(
        &two_calls(),
        || finished(0, "a", failed()),
        r#"
        store tool.execution_complete a broken "it failed" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn a_message_loads_a_skill_and_the_system_message_has_others() {
    check(
        &preparing(),
        || {
            prepared_with(
                &[tidy(UserInvoked, Some(&["view"]))],
                &[tidy(ContextLoad, None)],
            )
        },
        r#"
        store user.message m1 text=hello! turn=0 queued
        store loopd.skills_preloaded skills=[{"name":"tidy","path":"/skills/tidy/SKILL.md"}]
        store skill.invoked tidy /skills/tidy/SKILL.md context-load
        store skill.invoked tidy /skills/tidy/SKILL.md tools=[view] user-invoked
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        "#,
    );
    // What is known is not stored again.
    let known = idle()
        .and(event(
            "loopd.skills_preloaded",
            json!({ "skills": [{ "name": "tidy", "path": "/skills/tidy/SKILL.md" }] }),
        ))
        .and(Durable::SkillInvoked(tidy(ContextLoad, None)));
    check(
        &known.and(queued("m1")).and(taken(&["m1"])),
        || prepared_with(&[], &[tidy(ContextLoad, None)]),
        "
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn an_active_skill_allows_its_tools_and_no_others() {
    let all = || permissions(json!({ "approveAll": true }));
    check(
        &loaded(&["Read", "Edit"]).and(all()),
        || needs("b", write("/work/file")),
        "
        do run i/0 b granted write
        now turn i/0 [a:done b:started]
        ",
    );
    check(
        &loaded(&["Read", "Bash"]).and(all()),
        || needs("b", write("/work/file")),
        r#"
        store tool.execution_complete b denied "The skill \"tidy\" is active and allows only these tools: Read, Bash. edit…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_skill_restricts_the_run_in_which_it_is_loaded_and_what_goes_on_with_it() {
    let state = |given: &Given| -> Vec<String> {
        let state = given.state();
        let skills = state.restricting_skills();
        skills.map(|(name, _)| name.to_owned()).collect()
    };
    let first = || loaded(&[]).and(completed("b"));
    assert_eq!(state(&first()), ["tidy"]);
    let ended = || first().and(loop_ended("done"));
    assert_eq!(state(&ended()), [""; 0]);
    let next = ended().and(queued("m2")).and(taken(&["m2"]));
    assert_eq!(state(&next), [""; 0]);
    let nudged = ended().and(event(
        "loopd.nudged",
        json!({ "requestId": "m1", "requiredTool": "task_complete" }),
    ));
    assert_eq!(state(&nudged), ["tidy"]);
    // A background agent of that run ends later, and the model is told.
    let agent = first().and(task("t", agent("t"))).and(loop_ended("done"));
    let woken = agent
        .and(task_ended("t"))
        .and(event("loopd.woken", json!({})));
    let told = woken.and(event(
        "system.notification",
        json!({ "content": "t is done", "kind": { "type": "agent_completed", "agentId": "t",
            "agentType": "explore", "status": "completed" } }),
    ));
    assert_eq!(state(&told), ["tidy"]);
}

#[test]
fn the_files_of_an_active_skill_may_be_read() {
    let of_skill = || needs("b", read("/skills/tidy/reference.md"));
    check(
        &two_calls(),
        of_skill,
        "
        store permission.requested #1 read b prompt=read
        now turn i/0 [a:started b:asking]
        ",
    );
    // Also if the skill allows no tool at all, but not against a rule.
    check(
        &loaded(&[]),
        of_skill,
        "
        do run i/0 b granted read
        now turn i/0 [a:done b:started]
        ",
    );
    let denied = permissions(json!({ "denied": [{ "kind": "read", "argument": "/skills" }] }));
    check(
        &loaded(&["Read"]).and(denied),
        of_skill,
        r#"
        store tool.execution_complete b denied "Permission denied by the rule read(/skills)." turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_client_puts_skills_into_and_out_of_use() {
    check(
        &idle(),
        || switch_skill("tidy", false),
        "
        store loopd.skill_switched name=tidy enabled=false
        now idle
        ",
    );
    let off = || {
        loaded(&[]).and(event(
            "loopd.skill_switched",
            json!({ "name": "tidy", "enabled": false }),
        ))
    };
    ignores(&off(), || switch_skill("tidy", false));
    let state = off().state();
    assert_eq!(
        (state.skills.switch("tidy"), state.active_skills().count()),
        (Some(false), 0)
    );
    // New settings take the place of what was said about single skills.
    let configured = json!({ "options": { "model": "gpt", "disabledSkills": ["other"] }, "workingDirectory": "/work" });
    let state = off().and(event("loopd.configured", configured)).state();
    assert_eq!(state.skills.switch("tidy"), None);
}
