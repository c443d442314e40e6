//! Settings change by commands that say what changes.

mod permissions;

use loopd_proto::event::session::FileOperation;
use loopd_proto::session::Mode;
use serde_json::json;

use crate::command::LogLevel;
use crate::decide::tests::prelude::*;

#[test]
fn a_name_that_a_person_gave_stays() {
    check(
        &idle(),
        || name_by_user("mine"),
        "
        answer yes
        store loopd.named name=mine by=user
        tell session.title_changed title=mine
        now idle
        ",
    );
    check(
        &idle(),
        || name_by_itself("guess"),
        "
        answer yes
        store loopd.named name=guess by=auto
        tell session.title_changed title=guess
        now idle
        ",
    );
    let named = || {
        idle().and(event(
            "loopd.named",
            json!({ "name": "mine", "by": "user" }),
        ))
    };
    declines(&named(), || name_by_itself("guess"));
    check(
        &named(),
        || name_by_user("better"),
        "
        answer yes
        store loopd.named name=better by=user
        tell session.title_changed title=better
        now idle
        ",
    );
}

#[test]
fn a_mode_is_stored_if_it_changes() {
    check(
        &idle(),
        || set_mode(Mode::Plan),
        "
        answer yes
        store session.mode_changed previousMode=interactive newMode=plan
        now idle
        ",
    );
    declines(&idle(), || set_mode(Mode::Interactive));
}

#[test]
fn a_model_is_stored_with_the_one_before() {
    check(
        &idle(),
        || set_model("claude", Some("high")),
        "
        store session.model_change previousModel=gpt newModel=claude reasoningEffort=high
        now idle
        ",
    );
    check(
        &model_called(),
        || set_model("claude", None),
        "
        store session.model_change previousModel=gpt newModel=claude
        now turn i/0 model called
        ",
    );
}

#[test]
fn stated_capabilities_belong_to_one_model() {
    let vision = || json!({ "supports": { "vision": true } });
    check(
        &idle(),
        || set_known_model("claude", vision()),
        r#"
        store loopd.configured options={"model":"gpt","modelCapabilities":{"supports":{"vision":true}}} workingDirectory=/work
        store session.model_change previousModel=gpt newModel=claude
        now idle
        "#,
    );
    let known = event(
        "loopd.configured",
        json!({ "options": { "model": "gpt", "modelCapabilities": vision() },
            "workingDirectory": "/work" }),
    );
    check(
        &idle().and(known),
        || set_model("claude", None),
        r#"
        store loopd.configured options={"model":"gpt"} workingDirectory=/work
        store session.model_change previousModel=gpt newModel=claude
        now idle
        "#,
    );
}

#[test]
fn an_effort_keeps_the_current_model() {
    check(
        &idle(),
        || set_effort("high"),
        "
        store session.model_change previousModel=gpt newModel=gpt reasoningEffort=high
        now idle
        ",
    );
    let switched = event("session.model_change", json!({ "newModel": "claude" }));
    check(
        &idle().and(switched),
        || set_effort("high"),
        "
        store session.model_change previousModel=claude newModel=claude reasoningEffort=high
        now idle
        ",
    );
    check(
        &nothing(),
        || set_effort("high"),
        "
        store session.model_change newModel=default reasoningEffort=high
        now idle
        ",
    );
}

#[test]
fn options_change_what_the_patch_names() {
    check(
        &idle(),
        || update_options(json!({ "streaming": true })),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","streaming":true} workingDirectory=/work
        now idle
        "#,
    );
    declines(&idle(), || update_options(json!({})));
    check(
        &idle().and(limited_to(5.0)),
        lift_limits,
        r#"
        answer yes
        store loopd.configured options={"model":"gpt"} workingDirectory=/work
        store session.session_limits_changed
        now idle
        "#,
    );
}

#[test]
fn options_can_change_the_model_and_the_directory() {
    check(
        &idle(),
        || update_options(json!({ "model": "claude" })),
        r#"
        answer yes
        store loopd.configured options={"model":"claude"} workingDirectory=/work
        store session.model_change previousModel=gpt newModel=claude
        now idle
        "#,
    );
    check(
        &idle(),
        || update_options(json!({ "reasoningEffort": "high" })),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","reasoningEffort":"high"} workingDirectory=/work
        store session.model_change previousModel=gpt newModel=gpt reasoningEffort=high
        now idle
        "#,
    );
    check(
        &idle(),
        || update_options(json!({ "workingDirectory": "/other" })),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","workingDirectory":"/other"} workingDirectory=/other
        store session.context_changed cwd=/other
        now idle
        "#,
    );
    let switched = event("session.model_change", json!({ "newModel": "claude" }));
    check(
        &idle().and(switched),
        || update_options(json!({ "model": "gpt" })),
        "
        answer yes
        store session.model_change previousModel=claude newModel=gpt
        now idle
        ",
    );
}

#[test]
fn an_agent_is_selected_and_deselected() {
    check(
        &idle(),
        || select_agent("review"),
        "
        store subagent.selected agentName=review agentDisplayName=review
        now idle
        ",
    );
    ignores(&idle(), deselect_agent);
    let selected = event(
        "subagent.selected",
        json!({ "agentName": "review", "agentDisplayName": "review", "tools": null }),
    );
    check(
        &idle().and(selected),
        deselect_agent,
        "
        store subagent.deselected
        now idle
        ",
    );
}

#[test]
fn an_agent_chosen_from_an_outdated_list_is_refused() {
    let refused = "
        refused the agents of this session changed while one was chosen; try again
        now idle
        ";
    let configured = |options| {
        let data = json!({ "options": options, "workingDirectory": "/work" });
        event("loopd.configured", data)
    };
    for options in [
        json!({ "excludedBuiltinAgents": ["review"] }),
        json!({ "customAgents": [{ "name": "review", "prompt": "p" }] }),
        json!({ "enableConfigDiscovery": true }),
        json!({ "pluginDirectories": ["/plugin"] }),
    ] {
        let changed = || idle().and(configured(options.clone()));
        check(&changed(), || select_agent("review"), refused);
        check(&changed(), || resume().by_agent("review"), refused);
    }
    let streaming = idle().and(configured(json!({ "streaming": true })));
    check(
        &streaming,
        || select_agent("review"),
        "
        store subagent.selected agentName=review agentDisplayName=review
        now idle
        ",
    );
}

#[test]
fn changes_of_the_plan_and_of_files_are_stored() {
    check(
        &idle(),
        || plan_changed(FileOperation::Create),
        "
        store session.plan_changed operation=create
        now idle
        ",
    );
    check(
        &idle(),
        || file_changed("notes.md"),
        "
        store session.workspace_file_changed path=notes.md operation=update
        now idle
        ",
    );
}

#[test]
fn another_directory_becomes_the_primary_one() {
    check(
        &idle(),
        || set_directory("/other"),
        r#"
        answer yes
        store loopd.configured options={"model":"gpt","workingDirectory":"/other"} workingDirectory=/other
        store session.context_changed cwd=/other
        now idle
        "#,
    );
    declines(&idle(), || set_directory("/work"));
    let primary = permissions(json!({ "primaryDirectory": "/elsewhere" }));
    check(
        &idle().and(primary),
        || set_directory("/work"),
        "
        answer yes
        store loopd.permissions permissions={}
        now idle
        ",
    );
}

#[test]
fn facts_about_another_directory_are_rejected() {
    check(
        &idle(),
        || context_seen("/work"),
        "
        answer yes
        store session.context_changed cwd=/work branch=main
        now idle
        ",
    );
    declines(&idle(), || context_seen("/other"));
}

#[test]
fn how_sub_agents_run_is_stored_when_it_changes() {
    check(
        &idle(),
        || set_subagents(json!({ "maxDepth": 2 })),
        r#"
        store loopd.configured options={"model":"gpt","subagents":{"maxDepth":2}} workingDirectory=/work
        now idle
        "#,
    );
    ignores(&idle(), || set_subagents(json!(null)));
}

#[test]
fn a_log_line_is_stored_or_only_sent() {
    check(
        &idle(),
        || log_stored(LogLevel::Info),
        "
        store session.info infoType=note message=look
        now idle
        ",
    );
    check(
        &idle(),
        || log_told(LogLevel::Info),
        "
        tell session.info infoType=note message=look
        now idle
        ",
    );
    check(
        &idle(),
        || log_stored(LogLevel::Warning),
        "
        store session.warning warningType=note message=look
        now idle
        ",
    );
    check(
        &idle(),
        || log_told(LogLevel::Warning),
        "
        tell session.warning warningType=note message=look
        now idle
        ",
    );
    check(
        &idle(),
        || log_stored(LogLevel::Error),
        "
        store session.error note look
        now idle
        ",
    );
    check(
        &idle(),
        || log_told(LogLevel::Error),
        "
        tell session.error note look
        now idle
        ",
    );
}

#[test]
fn a_sub_agent_keeps_the_options_that_it_was_started_with() {
    check(
        &idle().and(is_subagent(None)),
        || update_options(json!({ "excludedTools": [] })),
        "
        refused this is the session of a sub-agent, which has the options of its parent; change that in the session top
        now idle
        ",
    );
}
