//! Which system calls a command in a sandbox may make: the filters that seccomp enforces.
//!
//! Landlock does not know every way to change something. What it leaves open is denied here: the
//! attributes of files, sockets, other processes, and the system itself. The filters list what is
//! allowed. A call that did not exist when this list was made fails as on an older kernel.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{NetworkAccess, SandboxError};

/// The numbers of the system calls that were looked at for this list. Each architecture has its own
/// old numbers; from 424 on all have the same.
#[cfg(target_arch = "x86_64")]
const KNOWN: [RangeInclusive<i64>; 2] = [0..=334, 424..=462];
#[cfg(not(target_arch = "x86_64"))]
const KNOWN: [RangeInclusive<i64>; 2] = [0..=294, 424..=462];

/// Numbers that libraries try first and replace by an older call when the kernel does not know
/// them. Filters cannot look at the arguments of `clone3`.
const UNKNOWN: [i64; 1] = [libc::SYS_clone3];

/// Calls that always fail.
const DENIED: &[i64] = &[
    // Modes, owners and attributes of files.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Files by other ways than a path.
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Memory, messages and locks that are shared with other processes by a number or a name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The system itself, for commands of root.
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_vhangup,
    libc::SYS_syslog,
];

/// Older names of calls above, and calls of this architecture only.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// Calls that fail without a network.
const NETWORK: [i64; 5] = [
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// The requests that programs may make of open files: they ask, or change a terminal or the
/// descriptor itself. Others change files that are open for reading only, or type into the terminal.
const REQUESTS: &[u64] = &[
    // Terminals: modes, size, foreground group, pending bytes.
    0x5401,
    0x5402,
    0x5403,
    0x5404,
    0x5405,
    0x5406,
    0x5407,
    0x5408,
    0x5409,
    0x540a,
    0x540b,
    0x540e,
    0x540f,
    0x5410,
    0x5411,
    0x5413,
    0x5414,
    0x541b,
    0x5420,
    0x5421,
    0x5422,
    0x5425,
    0x5429,
    0x802c_542a,
    0x402c_542b,
    0x402c_542c,
    0x402c_542d,
    0x8004_5430,
    0x4004_5431,
    0x8004_5432,
    0x8004_5438,
    0x8004_5439,
    0x5441,
    // Descriptors: close on exec, asynchronous.
    0x5450,
    0x5451,
    0x5452,
    0x5460,
    // Files: block size, attributes, version, label, extents; copies into a file that is open for
    // writing.
    0x0002,
    0x8008_6601,
    0x8008_7601,
    0x801c_581f,
    0x8100_9431,
    0xc020_660b,
    0x4004_9409,
    0x4020_940d,
    // Disks: size and sector size.
    0x1260,
    0x1268,
    0x127b,
    0x8008_1272,
    // Random numbers: how much is there.
    0x8004_5200,
];

/// The flags with which `clone` would make namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u64;

/// What `setpriority` and `ioprio_set` take for a single process.
const PRIORITY_OF_PROCESS: u64 = 0;
const IO_PRIORITY_OF_PROCESS: u64 = 1;

/// The command of `fcntl` that takes a lease.
const SET_LEASE: u64 = 1024;

/// The bits of a socket's type that are no flags.
const SOCKET_TYPE: u64 = 0xf;

/// Whether filters can be made for this architecture.
pub(super) fn check() -> Result<(), SandboxError> {
    SystemCallFilters::of(NetworkAccess::Denied).map(|_| ())
}

/// The filters of a sandbox, in the order in which they are installed.
pub(super) struct SystemCallFilters([BpfProgram; 2]);

impl SystemCallFilters {
    pub(super) fn of(network: NetworkAccess) -> Result<Self, SandboxError> {
        let failed = |error: &dyn std::fmt::Display| SandboxError::Filter(error.to_string());
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
        let allowed = rules(network).map_err(|error| failed(&error))?;
        let known = known().map(|number| (number, Vec::new())).collect();
        let program = |rules, errno: i32| {
            let mismatch = SeccompAction::Errno(errno.cast_unsigned());
            let filter = SeccompFilter::new(rules, mismatch, SeccompAction::Allow, arch)?;
            BpfProgram::try_from(filter)
        };
        // Of two errors, that of the filter which was installed last counts.
        Ok(Self([
            program(allowed, libc::EPERM).map_err(|error| failed(&error))?,
            program(known, libc::ENOSYS).map_err(|error| failed(&error))?,
        ]))
    }

    /// Filters the system calls of this process for good.
    pub(super) fn enter(&self) -> io::Result<()> {
        for program in &self.0 {
            seccompiler::apply_filter(program).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn known() -> impl Iterator<Item = i64> {
    let numbers = KNOWN.into_iter().flatten();
    numbers.filter(|number| !UNKNOWN.contains(number))
}

/// The calls that are allowed, with what their arguments have to be.
fn rules(
    network: NetworkAccess,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = known()
        .filter(|number| !DENIED.contains(number) && !DENIED_HERE.contains(number))
        .map(|number| (number, Vec::new()))
        .collect();
    let mut requests = Vec::new();
    for request in REQUESTS {
        requests.push(rule([(1, SeccompCmpOp::Eq, *request)])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    let no_namespace = (0, SeccompCmpOp::MaskedEq(NAMESPACES), 0);
    rules.insert(libc::SYS_clone, vec![rule([no_namespace])?]);
    // A pair that is connected for good: a pair of datagram sockets could be connected anew.
    let family = |family: i32| (0, SeccompCmpOp::Eq, u64::from(family.cast_unsigned()));
    let mut pairs = Vec::new();
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        let kind = u64::from(kind.cast_unsigned());
        let kind = (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind);
        pairs.push(rule([family(libc::AF_UNIX), kind])?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    match network {
        NetworkAccess::Denied => {
            rules.remove(&libc::SYS_socket);
            rules.retain(|number, _| !NETWORK.contains(number));
        }
        NetworkAccess::Allowed => {
            let families = [libc::AF_INET, libc::AF_INET6].map(family);
            let mut sockets = Vec::new();
            for family in families {
                sockets.push(rule([family])?);
            }
            rules.insert(libc::SYS_socket, sockets);
        }
    }
    // The limits of other processes can be read.
    rules.insert(
        libc::SYS_prlimit64,
        vec![
            rule([(0, SeccompCmpOp::Eq, 0)])?,
            wide_rule(2, SeccompCmpOp::Eq, 0)?,
        ],
    );
    // Priorities and processors: a process may change its own, which it names by 0.
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        rules.insert(call, vec![rule([(0, SeccompCmpOp::Eq, 0)])?]);
    }
    for (call, one_process) in [
        (libc::SYS_setpriority, PRIORITY_OF_PROCESS),
        (libc::SYS_ioprio_set, IO_PRIORITY_OF_PROCESS),
    ] {
        let own = [(0, SeccompCmpOp::Eq, one_process), (1, SeccompCmpOp::Eq, 0)];
        rules.insert(call, vec![rule(own)?]);
    }
    // A lease would keep others from opening the file.
    rules.insert(
        libc::SYS_fcntl,
        vec![rule([(1, SeccompCmpOp::Ne, SET_LEASE)])?],
    );
    // Signals to all processes at once.
    let everybody = u64::from((-1_i32).cast_unsigned());
    rules.insert(
        libc::SYS_kill,
        vec![rule([(0, SeccompCmpOp::Ne, everybody)])?],
    );
    Ok(rules)
}

/// A rule whose conditions all hold; each compares the low half of an argument, as the kernel does
/// with numbers of 32 bits.
fn rule<const COUNT: usize>(
    conditions: [(u8, SeccompCmpOp, u64); COUNT],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let mut all = Vec::new();
    for (argument, compare, value) in conditions {
        let length = SeccompCmpArgLen::Dword;
        all.push(SeccompCondition::new(argument, length, compare, value)?);
    }
    SeccompRule::new(all)
}

/// A rule about a whole argument of 64 bits, such as an address.
fn wide_rule(
    argument: u8,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let length = SeccompCmpArgLen::Qword;
    SeccompRule::new(vec![SeccompCondition::new(
        argument, length, compare, value,
    )?])
}
