//! `loop daemon install`, `uninstall` and `logs`, with a systemctl that only writes down what it is told.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::home::{Home, RunOutput};

/// `loop` for a user whose home directory is the folder of the test, with a PATH of these folders.
fn command(home: &Home, path: &str, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command
        .env("HOME", home.folder.path())
        .env("PATH", path)
        .env_remove("XDG_CONFIG_HOME");
    command
}

fn run(home: &Home, path: &str, args: &[&str]) -> RunOutput {
    command(home, path, args).output().unwrap().into()
}

/// Makes a systemctl that answers with this exit code.
fn systemctl(home: &Home, code: u8) -> String {
    let folder = home.path("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let told = home.path("told");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\n[ {code} = 0 ] || echo no bus >&2\nexit {code}\n",
        told.display()
    );
    let file = folder.join("systemctl");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
#[cfg(target_os = "linux")]
fn the_daemon_is_installed_as_a_unit_and_removed_again() {
    let home = Home::new();
    let path = systemctl(&home, 0);
    let unit = home.path(".config/systemd/user/loopd.service");
    // One that runs makes room for that of the unit.
    home.prints(&["daemon", "start"]);
    let said = run(&home, &path, &["daemon", "install"]);
    assert_eq!(said.code, 0, "{said:?}");
    for part in [
        "stopped the daemon that ran",
        &format!("wrote {}", unit.display()),
        "ran systemctl --user daemon-reload",
        "ran systemctl --user enable --now loopd.service",
        "to undo it: loop daemon uninstall",
    ] {
        assert!(said.err.contains(part), "{part} in {said:?}");
    }
    let text = std::fs::read_to_string(&unit).unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_loop")).with_file_name("loopd");
    assert!(
        text.contains(&format!(
            "ExecStart=\"{}\" serve --socket ",
            program.display()
        )),
        "{text}"
    );
    assert!(
        text.contains(&format!("LOOPD_HOME={}", home.path("home").display())),
        "{text}"
    );
    let shown = run(&home, &path, &["daemon", "install", "--print"]);
    assert_eq!(shown.out, text);
    // Installing it twice is no error.
    assert_eq!(run(&home, &path, &["daemon", "install"]).code, 0);
    let said = run(&home, &path, &["daemon", "uninstall"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("removed "), "{said:?}");
    assert!(!unit.exists());
    let told = std::fs::read_to_string(home.path("told")).unwrap();
    assert!(
        told.ends_with("--user disable --now loopd.service\n--user daemon-reload\n"),
        "{told}"
    );
    let said = run(&home, &path, &["daemon", "uninstall"]);
    assert!(said.err.contains("nothing was installed"), "{said:?}");
}

/// The command line of the unit starts a daemon that this client finds.
#[test]
#[cfg(target_os = "linux")]
fn the_line_of_the_unit_serves_the_home() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let home = Home::new();
    let unit = home.prints(&["daemon", "install", "--print"]);
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let mut serving = Command::new("sh")
        .args(["-c", &format!("exec {}", line.unwrap())])
        .env("LOOPD_HOME", home.path("home"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(serving.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    let status = home.prints(&["daemon", "status"]);
    assert!(
        status.contains(&format!("runs as process {}", serving.id())),
        "{status} {said}"
    );
    home.prints(&["daemon", "stop"]);
    assert!(serving.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn without_systemctl_the_file_is_there_and_what_is_left_to_do_is_named() {
    let home = Home::new();
    let nothing = home.path("empty");
    std::fs::create_dir(&nothing).unwrap();
    let said = run(&home, nothing.to_str().unwrap(), &["daemon", "install"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err
            .contains("systemctl was not found, so nothing was started"),
        "{said:?}"
    );
    assert!(
        said.err
            .contains("  systemctl --user enable --now loopd.service"),
        "{said:?}"
    );
    assert!(home.path(".config/systemd/user/loopd.service").exists());
    let path = systemctl(&home, 1);
    let said = run(&home, &path, &["daemon", "install"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no bus"), "{said:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_unit_of_somebody_else_is_left_alone() {
    let home = Home::new();
    let folder = home.path(".config/systemd/user");
    std::fs::create_dir_all(&folder).unwrap();
    let unit = folder.join("loopd.service");
    std::fs::write(&unit, "[Unit]\n").unwrap();
    let path = systemctl(&home, 0);
    for verb in ["install", "uninstall"] {
        let said = run(&home, &path, &["daemon", verb]);
        assert_eq!(said.code, 1);
        assert!(said.err.contains("was not written by loop"), "{said:?}");
    }
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), "[Unit]\n");
}

#[test]
fn the_end_of_the_log_is_printed() {
    let home = Home::new();
    let none = home.run(&["daemon", "logs"]);
    assert_eq!(none.code, 0);
    assert!(
        none.err.contains("no daemon has written one yet"),
        "{none:?}"
    );
    let path = home.prints(&["daemon", "logs", "--path"]);
    let path = std::path::PathBuf::from(path.trim());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "one\ntwo\nthree \u{1b}[31m\n").unwrap();
    assert_eq!(
        home.prints(&["daemon", "logs", "-n", "2"]),
        "two\nthree \\x1b[31m\n"
    );
    let json = home.prints(&["--json", "daemon", "logs", "-n", "1"]);
    let line: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(line["line"], "three \u{1b}[31m");
}
