#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step fails the test"
)]

use serde_json::{Value, json};

use super::*;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn resolved(entry: Value, variables: &Variables<'_>) -> Result<ServerConfig, String> {
    let Value::Object(entry) = entry else {
        panic!("an entry is an object");
    };
    let entry = McpEntry::read(&entry).expect("a valid entry");
    resolve("s", &entry, variables)
}

fn program_of(config: ServerConfig) -> Program {
    match config.transport {
        Transport::Stdio(program) => program,
        Transport::Http(_) => panic!("a program"),
    }
}

#[test]
fn a_server_sees_what_is_allowed_and_what_its_entry_names() {
    let seen = env(&[
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("MY_THING", "x"),
        ("HOME", "/u"),
    ]);
    let named = env(&[("PATH", "/bin"), ("GITHUB_TOKEN", "t"), ("MY_THING", "x")]);
    let here = Path::new("/");
    let variables = Variables {
        seen: &seen,
        named: Some(&named),
        env_by_name: false,
        base: here,
        cwd: here,
        plugin: None,
    };
    let entry = json!({"command": "npx", "args": ["$MY_THING", "${NONE:-d}"],
        "env": {"T": "${GITHUB_TOKEN}"}, "env_vars": ["MY_THING"]});
    let program = program_of(resolved(entry, &variables).expect("a server"));
    assert_eq!(program.args, ["x", "d"]);
    let expected = env(&[
        ("HOME", "/u"),
        ("LC_ALL", "C"),
        ("MY_THING", "x"),
        ("PATH", "/bin"),
        ("T", "t"),
    ]);
    assert_eq!(program.env, expected);
    let missing = resolved(json!({"command": "a", "args": ["$NONE"]}), &variables);
    assert!(missing.err().is_some_and(|why| why.contains("NONE")));
    let input = resolved(
        json!({"url": "https://a", "headers": {"A": "${input:key}"}}),
        &variables,
    );
    assert!(
        input
            .err()
            .is_some_and(|why| why.contains("the input `key`"))
    );
}

#[test]
fn the_values_of_a_client_mean_themselves_or_name_variables() {
    let seen = env(&[("PATH", "/bin")]);
    let named = env(&[("KEY", "k")]);
    let mut variables = Variables {
        seen: &seen,
        named: None,
        env_by_name: false,
        base: Path::new("/tmp"),
        cwd: Path::new("/"),
        plugin: None,
    };
    let entry = json!({"command": "./run", "env": {"A": "$KEY", "B": "${KEY}"}});
    let program = program_of(resolved(entry.clone(), &variables).expect("a server"));
    assert_eq!(program.command, "/tmp/./run");
    assert_eq!(program.env.get("A").map(String::as_str), Some("$KEY"));
    variables.named = Some(&named);
    variables.env_by_name = true;
    let entry = json!({"command": "run", "env": {"A": "KEY", "B": "${KEY}"}});
    let program = program_of(resolved(entry, &variables).expect("a server"));
    assert_eq!(program.env.get("A").map(String::as_str), Some("k"));
    assert_eq!(program.env.get("B").map(String::as_str), Some("k"));
    let missing = resolved(json!({"command": "run", "env": {"A": "NONE"}}), &variables);
    assert!(missing.err().is_some_and(|why| why.contains("NONE")));
}

#[test]
fn addresses_are_checked() {
    let none = BTreeMap::new();
    let variables = Variables {
        seen: &none,
        named: None,
        env_by_name: false,
        base: Path::new("/"),
        cwd: Path::new("/"),
        plugin: None,
    };
    for (url, word) in [
        ("nonsense", "not valid"),
        ("file:///etc/passwd", "file://"),
        ("https://user:pw@a.example", "password"),
    ] {
        let wrong = resolved(json!({"url": url}), &variables);
        assert!(wrong.err().is_some_and(|why| why.contains(word)), "{url}");
    }
    assert!(resolved(json!({"url": "https://a.example/mcp"}), &variables).is_ok());
}
