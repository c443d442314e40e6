//! What other processes of the user see of `loop`.

use loopd_tests::{Gate, Turn};

use crate::home::{Home, RunOutput};
use crate::model::Model;

const KEY: &str = "sk-0123456789abcdefghij";

#[cfg(target_os = "linux")]
#[test]
fn the_environment_of_a_running_loop_shows_no_key() {
    use std::process::Stdio;

    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        // The daemon has the key all the same.
        let key = format!("Bearer {KEY}");
        assert_eq!(request.header("authorization"), Some(key.as_str()));
        Turn::any().says("done").held_by(&held)
    });
    let running = model
        .command(&home, &["--yolo", "go"])
        .env("OPENAI_API_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    model.asked(1);
    // Nothing, where the kernel refuses to show it.
    let shown = std::fs::read(format!("/proc/{}/environ", running.id())).unwrap_or_default();
    let shown = String::from_utf8_lossy(&shown);
    assert!(!shown.contains(KEY), "{shown}");
    gate.open();
    let said = RunOutput::from(running.wait_with_output().unwrap());
    assert_eq!((said.code, said.out.trim()), (0, "done"), "{said:?}");
    model.finish();
}
