//! Who may control a daemon: not the commands that its sessions run, however they cut themselves
//! loose. A command may run a daemon of its own.

use std::path::{Path, PathBuf};

use loopd_tests::Session;
use loopd_tests::binary::{self, Loopd};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Connects to the socket of the home `sys.argv[1]`, sends a request and prints all that comes back.
const CONNECT: &str = r#"
import glob, socket, sys
body = b'{"jsonrpc":"2.0","id":1,"method":"connect","params":{}}'
s = socket.socket(socket.AF_UNIX)
s.connect(glob.glob(sys.argv[1] + '/run/*.sock')[0])
s.settimeout(20)
s.sendall(b'Content-Length: %d\r\n\r\n' % len(body) + body)
said = b''
while not said.endswith(b'}'):
    piece = s.recv(4096)
    if not piece:
        break
    said += piece
print(said.decode())
"#;

struct Running {
    loopd: Loopd,
    session: Session,
    home: PathBuf,
    _folder: TempDir,
}

async fn running() -> Running {
    let folder = TempDir::new().unwrap();
    let home = folder.path().canonicalize().unwrap();
    std::fs::write(home.join("connect.py"), CONNECT).unwrap();
    let (loopd, client) = Loopd::relay(&home, json!({}));
    client.call("connect", json!({})).await;
    let session = client.create(json!({})).await;
    Running {
        loopd,
        session,
        home,
        _folder: folder,
    }
}

impl Running {
    /// Runs a command in the session; returns its output and exit code.
    async fn run(&self, id: &str, command: &str) -> (String, Value) {
        let params = json!({"requestId": id, "command": command});
        let ended = self
            .session
            .call("session.shell.executeUserRequested", params)
            .await;
        let output = ended["output"].as_str().unwrap().to_owned();
        (output, ended["exitCode"].clone())
    }

    async fn end(self) {
        self.loopd.terminate();
        self.loopd.exited().await;
    }
}

fn program(name: &str) -> String {
    binary::path().with_file_name(name).display().to_string()
}

#[tokio::test]
async fn a_command_is_refused_before_its_first_request_is_read() {
    let running = running().await;
    let connect = "python3 connect.py \"$PWD\"";
    for (id, command) in [
        ("plain", connect.to_owned()),
        ("session", format!("setsid -w {connect}")),
        (
            "twice",
            format!(
                "(setsid bash -c '({connect} >said 2>&1; touch done) & exit' &); until test -e done; do sleep 0.05; done; cat said"
            ),
        ),
        (
            "clean",
            format!("env -i PATH=\"$PATH\" setsid -w {connect} >said2 2>&1 & wait; cat said2"),
        ),
    ] {
        let (said, code) = running.run(id, &command).await;
        assert_eq!(code, 0, "{command}: {said}");
        let body = said.find('{').and_then(|start| said.get(start..));
        let body = body.unwrap_or_else(|| panic!("{command}: {said}"));
        let error: Value = serde_json::from_str(body.trim()).unwrap();
        assert_eq!(error["id"], Value::Null, "{command}: {error}");
        assert_eq!(error["error"]["code"], -32005);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("LOOPD_HOME"), "{message}");
    }
    running.end().await;
}

#[tokio::test]
async fn a_relay_and_a_terminal_client_in_a_command_say_why_they_are_refused() {
    let running = running().await;
    for (id, command) in [
        (
            "relay",
            format!("{} --headless --stdio </dev/null", program("loopd")),
        ),
        ("ps", format!("{} ps", program("loop"))),
        ("prompt", format!("{} hello", program("loop"))),
    ] {
        let (said, code) = running.run(id, &command).await;
        assert_ne!(code, 0, "{command}: {said}");
        assert!(
            said.contains("takes no connections from the commands") && said.contains("LOOPD_HOME"),
            "{command}: {said}"
        );
    }
    running.end().await;
}

#[tokio::test]
async fn a_daemon_that_a_command_starts_serves_the_commands_beside_it() {
    let running = running().await;
    let own = running.home.join("own");
    let serving = format!(
        "LOOPD_HOME={} exec {} serve",
        own.display(),
        program("loopd")
    );
    let params = json!({"command": serving});
    running.session.call("session.shell.exec", params).await;
    wait_for_socket(&own).await;
    let connect = format!("python3 connect.py {}", own.display());
    let (said, code) = running.run("beside", &connect).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("protocolVersion"), "{said}");
    // Through a relay, which starts a daemon by itself.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"connect","params":{}}"#;
    let relay = format!(
        "printf 'Content-Length: {}\\r\\n\\r\\n%s' '{body}' | LOOPD_HOME=\"$PWD/other\" {} --headless --stdio",
        body.len(),
        program("loopd")
    );
    let (said, code) = running.run("relay", &relay).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("protocolVersion"), "{said}");
    running.end().await;
}

async fn wait_for_socket(home: &Path) {
    let run = home.join("run");
    let bound = async {
        while std::fs::read_dir(&run).map_or(0, Iterator::count) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    loopd_tests::within("a daemon to serve", bound).await;
}
