//! Who carries model requests, and what children may see.

use loopd_proto::wire::{self, CloseReason, Limits, NoMethods};

use super::*;

fn launch(env: &[(&str, &str)]) -> Launch {
    let env = env
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Launch::new(PathBuf::from("/w"), env, LaunchOptions::default())
}

/// An open connection; dropping the second part closes it.
fn peer() -> (Peer, impl Sized) {
    let (stream, other) = tokio::io::duplex(64);
    let (peer, driving) = wire::connect(stream, Arc::new(NoMethods), Limits::default());
    (peer, (driving, other))
}

#[tokio::test]
async fn one_client_of_a_launch_carries_model_requests() {
    let launch = launch(&[]);
    let (first, _first_open) = peer();
    let (second, _second_open) = peer();
    assert!(launch.inference().is_none());
    launch.carry_inference(&first).unwrap();
    launch.carry_inference(&first).unwrap();
    assert!(launch.carry_inference(&second).is_err());
    first.close(CloseReason::Done);
    launch.carry_inference(&second).unwrap();
    assert_eq!(launch.inference().unwrap().peer(), second.id());
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
