use std::os::unix::fs::symlink;

use super::*;
use crate::tool::fixture::Fixture;

fn denying(path: &Path) -> ClosedPlaces {
    ClosedPlaces::of(&GuardedPaths {
        denied_reads: vec![texts::path(path)],
        ..GuardedPaths::default()
    })
}

#[test]
fn a_file_has_the_name_of_the_rule_under_every_name() {
    let fixture = Fixture::new();
    let real = fixture.write("real/key.txt", "secret");
    symlink(fixture.path("real"), fixture.path("link")).unwrap();
    std::fs::hard_link(&real, fixture.path("copy.txt")).unwrap();
    let other = fixture.write("other.txt", "harmless");
    for rule in ["link", "link/key.txt"] {
        let closed = denying(&fixture.path(rule));
        let name = fixture.text("link/key.txt");
        assert_eq!(closed.names(&real), [name.clone(), name.clone()], "{rule}");
        assert_eq!(closed.names(&fixture.path("copy.txt")), [name], "{rule}");
        assert_eq!(closed.names(&other), [""; 0], "{rule}");
        assert_eq!(closed.at(&fixture.path("copy.txt")), Some(Closure::Denied));
        assert_eq!(closed.at(&other), None);
    }
    assert_eq!(denying(&real).at(&real), Some(Closure::Denied));
}

#[test]
fn without_rules_nothing_is_looked_at() {
    let closed = ClosedPlaces::of(&GuardedPaths::default());
    assert_eq!(closed.at(Path::new("/etc/passwd")), None);
    assert!(closed.names(Path::new("/etc/passwd")).is_empty());
    assert!(closed.linked.get().is_none());
}
