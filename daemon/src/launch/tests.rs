//! What children may see.

use super::*;

fn launch(env: &[(&str, &str)]) -> Launch {
    let env = env
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Launch::new(PathBuf::from("/w"), env, LaunchOptions::default())
}

#[test]
fn children_do_not_inherit_keys() {
    let launch = launch(&[
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
        ("GH_TOKEN", "k"),
        ("SOME_PASSWORD", "k"),
    ]);
    let seen: Vec<String> = launch.child_environment().into_keys().collect();
    assert_eq!(seen, ["PATH"]);
}
