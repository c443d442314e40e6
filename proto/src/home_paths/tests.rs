use super::*;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

#[test]
fn the_most_specific_variable_names_the_home() {
    let check = |pairs: &[(&str, &str)], expected: &str| {
        assert_eq!(home(&environment(pairs)).unwrap(), Path::new(expected));
    };
    check(&[("HOME", "/u")], "/u/.loopd");
    check(&[("HOME", "/u"), ("COPILOT_HOME", "/c")], "/c/loopd");
    check(
        &[("HOME", "/u"), ("COPILOT_HOME", "/c"), ("LOOPD_HOME", "/l")],
        "/l",
    );
    check(&[("HOME", "/u"), ("LOOPD_HOME", "")], "/u/.loopd");
    assert!(matches!(
        home(&environment(&[])),
        Err(HomePathError::NoHome)
    ));
}

#[test]
fn the_socket_is_in_the_runtime_directory_only_for_the_default_home() {
    let folder = |home: &str, pairs: &[(&str, &str)]| {
        let socket = socket(Path::new(home), &environment(pairs), 7);
        socket.parent().unwrap().to_owned()
    };
    let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
    assert_eq!(
        folder("/u/.loopd", &[runtime]),
        Path::new("/run/user/7/loopd")
    );
    assert_eq!(
        folder("/l", &[runtime, ("LOOPD_HOME", "/l")]),
        Path::new("/l/run")
    );
    let long = format!("/{}", "x".repeat(90));
    assert_eq!(folder(&long, &[]), std::env::temp_dir().join("loopd-7"));
}

#[test]
fn two_homes_never_share_a_socket() {
    let env = environment(&[("XDG_RUNTIME_DIR", "/run/user/7")]);
    assert_ne!(
        socket(Path::new("/a"), &env, 7),
        socket(Path::new("/b"), &env, 7)
    );
}

#[cfg(unix)]
#[test]
fn all_spellings_of_a_home_are_one_home_with_one_socket() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let user = place.join("user");
    std::fs::create_dir_all(user.join(".loopd")).unwrap();
    std::os::unix::fs::symlink(&user, place.join("link")).unwrap();
    let here = user.to_string_lossy().into_owned();
    let usual = environment(&[("HOME", &here), ("XDG_RUNTIME_DIR", "/run/user/7")]);
    let expected = (
        home(&usual).unwrap(),
        socket(&user.join(".loopd"), &usual, 7),
    );
    for spelling in [
        "user/.loopd",
        "user/.loopd/",
        "user//.loopd/.",
        "link/.loopd",
        "link/../user/.loopd",
    ] {
        let named = format!("{}/{spelling}", place.display());
        let mut env = usual.clone();
        env.insert("LOOPD_HOME".to_owned(), named.clone());
        let found = home(&env).unwrap();
        assert_eq!(
            (found.clone(), socket(&found, &env, 7)),
            expected,
            "{named}"
        );
    }
    // A home that does not exist yet has one spelling, too.
    let mut env = usual;
    env.insert(
        "LOOPD_HOME".to_owned(),
        format!("{}/link/new/../later/", place.display()),
    );
    assert_eq!(home(&env).unwrap(), user.join("later"));
}
