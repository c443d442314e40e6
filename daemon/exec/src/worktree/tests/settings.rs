//! Which programs are disabled for a configuration as git lists it.

use super::super::settings::{DisabledPrograms, UnusableConfiguration};
use super::*;

fn listed(more: &[&str]) -> Vec<u8> {
    let mut entries = vec!["core.hookspath\n/evil"];
    entries.extend(more);
    entries.push("core.hookspath\n/dev/null");
    entries.join("\0").into_bytes()
}

#[test]
fn every_filter_is_disabled_by_its_exact_name() {
    let list = listed(&[
        "filter.lfs.smudge\ngit-lfs smudge",
        "filter.a.b=c.clean\nx",
        "filter.a.b=c.required",
        "filter.nameless\nx",
        "user.name\nfilter.not.one",
    ]);
    let disabled = DisabledPrograms::of_list(&list).unwrap();
    let names: Vec<&str> = disabled.filters.iter().map(String::as_str).collect();
    assert_eq!(names, ["a.b=c", "lfs"]);
    let env = disabled.environment(&BTreeMap::new());
    let count: usize = env["GIT_CONFIG_COUNT"].parse().unwrap();
    let settings: BTreeMap<&str, &str> = (0..count)
        .map(|index| {
            let key = env[&format!("GIT_CONFIG_KEY_{index}")].as_str();
            (key, env[&format!("GIT_CONFIG_VALUE_{index}")].as_str())
        })
        .collect();
    assert_eq!(settings["core.hooksPath"], "/dev/null");
    for name in ["lfs", "a.b=c"] {
        for key in ["smudge", "clean", "process"] {
            assert_eq!(settings[format!("filter.{name}.{key}").as_str()], "");
        }
        assert_eq!(
            settings[format!("filter.{name}.required").as_str()],
            "false"
        );
    }
}

#[test]
fn hooks_in_the_configuration_are_disabled() {
    let list = listed(&["hook.mine.command\nx", "hook.mine.event\npost-checkout"]);
    let env = DisabledPrograms::of_list(&list)
        .unwrap()
        .environment(&BTreeMap::new());
    assert!(env.values().any(|value| value == "hook.mine.enabled"));
}

#[test]
fn a_configuration_that_overrides_our_settings_is_not_used() {
    let mut list = listed(&[]);
    list.extend(b"\0core.hookspath\n/evil");
    assert_eq!(
        DisabledPrograms::of_list(&list),
        Err(UnusableConfiguration::GitTooOld)
    );
    assert_eq!(
        DisabledPrograms::of_list(b""),
        Err(UnusableConfiguration::GitTooOld)
    );
}

#[test]
fn settings_of_the_caller_come_before_ours_or_are_dropped() {
    let mut given = BTreeMap::new();
    for (name, value) in [
        ("COUNT", "1"),
        ("KEY_0", "core.hooksPath"),
        ("VALUE_0", "/x"),
    ] {
        given.insert(format!("GIT_CONFIG_{name}"), value.to_owned());
    }
    let env = DisabledPrograms::default().environment(&given);
    assert_eq!(env["GIT_CONFIG_VALUE_0"], "/x");
    assert_eq!(env["GIT_CONFIG_VALUE_1"], "/dev/null");
    given.remove("GIT_CONFIG_VALUE_0");
    let env = DisabledPrograms::default().environment(&given);
    assert_eq!(env["GIT_CONFIG_VALUE_0"], "/dev/null");
}
