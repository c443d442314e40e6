//! Hooks that run in the client.

use std::sync::{Arc, Mutex};

use loopd_sdk::hooks::{
    AddedContext, PermissionVerdict, PromptChange, ResultChange, StopVerdict, ToolVerdict,
};
use loopd_sdk::{Hooks, PermissionDecision, SessionConfig};

use serde_json::json;

use crate::home::{Home, within};

fn allowing(hooks: Hooks) -> SessionConfig {
    SessionConfig::new()
        .on_permission(|_| async { PermissionDecision::ApproveOnce {} })
        .hooks(hooks)
}

async fn answer(home: &Home, hooks: Hooks, prompt: &str) -> String {
    let client = home.client().await;
    let session = client.create(allowing(hooks)).await.unwrap();
    let reply = within("the answer", session.send_and_wait(prompt)).await;
    let text = reply.unwrap().text;
    within("the end", session.destroy()).await.unwrap();
    text
}

#[tokio::test]
async fn a_hook_denies_a_call_and_the_model_reads_why() {
    let home = Home::new();
    let hooks = Hooks::new().on_pre_tool_use(|input| async move {
        assert_eq!(input.event.tool_name, "bash");
        ToolVerdict::deny("not on Fridays")
    });
    let text = answer(&home, hooks, "run touch made").await;
    assert!(text.contains("not on Fridays"), "{text}");
    assert!(!home.folder.path().join("made").exists());
}

#[tokio::test]
async fn a_hook_that_panics_denies() {
    let home = Home::new();
    let hooks = Hooks::new().on_pre_tool_use(|_| async { panic!("a hook of a test panics") });
    let text = answer(&home, hooks, "run touch made").await;
    assert!(text.contains("the hook panicked"), "{text}");
    assert!(!home.folder.path().join("made").exists());
}

#[tokio::test]
async fn hooks_change_prompts_arguments_and_results() {
    let home = Home::new();
    let hooks = Hooks::new()
        .on_user_prompt_submitted(|input| async move {
            assert_eq!(input.event.prompt, "run the usual");
            PromptChange::replace("run echo one")
        })
        .on_pre_tool_use(|input| async move {
            // It is asked about the changed arguments, too.
            match input.event.tool_args.get("command").unwrap().as_str() {
                Some("echo one") => {
                    ToolVerdict::allow().with_arguments(json!({"command": "echo two"}))
                }
                _ => ToolVerdict::allow(),
            }
        })
        .on_post_tool_use(|input| async move {
            assert!(input.event.tool_result.text_result_for_llm.contains("two"));
            ResultChange {
                additional_context: Some("and three".to_owned()),
                ..ResultChange::default()
            }
        });
    let text = answer(&home, hooks, "run the usual").await;
    assert!(text.contains("two") && text.contains("and three"), "{text}");
}

#[tokio::test]
async fn a_hook_answers_in_the_place_of_a_person() {
    let home = Home::new();
    let client = home.client().await;
    let hooks = Hooks::new().on_permission_request(|input| async move {
        assert_eq!(input.event.tool_name, "bash");
        PermissionVerdict::allow()
    });
    // Nobody answers permission requests here.
    let config = SessionConfig::new().hooks(hooks);
    let session = client.create(config).await.unwrap();
    let reply = within("the answer", session.send_and_wait("run touch made")).await;
    assert!(reply.unwrap().text.contains("exit code 0"));
    assert!(home.folder.path().join("made").exists());
}

#[tokio::test]
async fn hooks_hear_of_the_beginning_and_the_end() {
    let home = Home::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let heard = heard.clone();
        move || heard.lock().unwrap().push(text)
    };
    let (started, stopped, ended) = (note("start"), note("stop"), note("end"));
    let hooks = Hooks::new()
        .on_session_start(move |input| {
            assert_eq!(input.event.source, "new");
            started();
            async { AddedContext::nothing() }
        })
        .on_agent_stop(move |input| {
            stopped();
            let first = input.event.stop_blocks == 0;
            async move {
                if first {
                    StopVerdict::block("run echo once more")
                } else {
                    StopVerdict::stop()
                }
            }
        })
        .on_session_end(move |_| {
            ended();
            async {}
        });
    let text = answer(&home, hooks, "hello").await;
    assert!(text.contains("once more"), "{text}");
    assert_eq!(
        *heard.lock().unwrap(),
        ["start", "stop", "stop", "end"],
        "{text}"
    );
}
