//! Files of hooks as people write them, and what is read from each.

mod claude;
mod hashes;
mod mistakes;
mod native;
#[cfg(unix)]
mod sources;

use std::fmt::Write as _;
use std::path::Path;

use super::*;

/// Reads a file of hooks.
fn own(text: &str) -> String {
    show(text, HookFile::Own)
}

/// Reads settings with a block of hooks.
fn settings(text: &str) -> String {
    show(text, HookFile::Settings)
}

fn show(text: &str, file: HookFile) -> String {
    let content = parse(&HookText {
        path: Path::new("f"),
        text,
        file,
        source: &HookSource::own(HookOrigin::User),
        local_http: LocalHttp::Allowed,
    });
    show_content(&content)
}

/// Shows what was found: a line per hook, then a line per problem.
fn show_content(content: &HookFileContent) -> String {
    let mut shown = String::new();
    if content.disables_all {
        shown.push_str("all hooks disabled\n");
    }
    for hook in &content.hooks {
        let name = hook.kind_name();
        let _ = write!(shown, "{}: {name} ", hook.line);
        match &hook.matcher {
            HookMatcher::Every => {}
            HookMatcher::Names(names) => {
                let _ = write!(shown, "for {} ", names.join(" or "));
            }
            HookMatcher::Pattern { pattern, .. } => {
                let _ = write!(shown, "like {pattern} ");
            }
        }
        if let Some(condition) = &hook.condition {
            let pattern = condition.pattern.as_deref().unwrap_or("*");
            let _ = write!(shown, "if {} {pattern} ", condition.tool);
        }
        match &hook.action {
            HookAction::Script { script, place } => {
                let _ = write!(shown, "bash `{script}`{}", show_place(place));
            }
            HookAction::Program {
                program,
                args,
                place,
            } => {
                let _ = write!(shown, "program {program} {args:?}{}", show_place(place));
            }
            HookAction::Http {
                url,
                headers,
                allowed_env,
            } => {
                let _ = write!(shown, "POST {url} {headers:?} {allowed_env:?}");
            }
            HookAction::Prompt { prompt } => {
                let _ = write!(shown, "prompt `{prompt}`");
            }
        }
        if hook.timeout.as_secs() != 30 {
            let _ = write!(shown, " {:?}", hook.timeout);
        }
        if let Some(on_failure) = hook.on_failure {
            let _ = write!(shown, " on failure {on_failure:?}");
        }
        let flags = [
            (hook.in_background, " in background"),
            (hook.once, " once"),
            (hook.off.is_some(), " off"),
        ];
        for (_, flag) in flags.iter().filter(|(set, _)| *set) {
            shown.push_str(flag);
        }
        shown.push('\n');
    }
    for problem in &content.problems {
        let _ = writeln!(shown, "! {problem}");
    }
    shown.trim_end().to_owned()
}

fn show_place(place: &HookPlace) -> String {
    let cwd = place
        .cwd
        .as_ref()
        .map(|cwd| format!(" in {}", cwd.display()));
    let env = (!place.env.is_empty()).then(|| format!(" with {:?}", place.env));
    cwd.unwrap_or_default() + &env.unwrap_or_default()
}

#[test]
fn every_kind_has_its_two_names() {
    for kind in HookKind::ALL {
        assert_eq!(
            HookKind::named(kind.native_name()),
            Ok((kind, PayloadForm::Native))
        );
        let (found, _) = HookKind::named(kind.claude_name()).expect("a kind");
        assert_eq!(found, kind);
    }
}

#[test]
fn what_a_hook_runs_is_shown_with_its_place_and_its_variables() {
    let text = r#"{"hooks":{"postToolUse":[
{"bash":"./a.sh","cwd":"tools","env":{"BASH_ENV":"x y"}},{"exec":"sh","args":["-c","a b"]},
{"type":"http","url":"https://x.example","headers":{"A":"$T"},"allowedEnvVars":["T"]}]}}"#;
    let content = parse(&HookText {
        path: Path::new("f"),
        text,
        file: HookFile::Own,
        source: &HookSource::own(HookOrigin::User),
        local_http: LocalHttp::Refused,
    });
    let shown: Vec<String> = content
        .hooks
        .iter()
        .map(|it| it.action.to_string())
        .collect();
    assert_eq!(
        shown,
        [
            "BASH_ENV=\"x y\" ./a.sh (in tools)",
            "sh \"-c\" \"a b\"",
            "POST https://x.example (with the variables T)",
        ]
    );
}

#[test]
fn a_file_that_was_cut_short_is_never_used_in_part() {
    let text = "{ // größer\n\"version\": 1, \"hooks\": { /* ä\n */ \"PreToolUse\": [ { \"matcher\": \"Bash\",\n\
                \"hooks\": [ { \"command\": \"a\", }, ], }, ], },\n}";
    assert_eq!(own(text), "4: PreToolUse for Bash bash `a`");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let shown = own(text.get(..end).unwrap_or_default());
        assert!(shown.starts_with("! f"), "{end}: {shown}");
    }
}
