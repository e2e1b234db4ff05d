//! What is true of a whole process: nothing is left of one that is killed, and one without privileges has hosts too.
//!
//! This program starts itself, so that it is its own `main`: a user namespace is entered before there are threads.

#[cfg(target_os = "linux")]
#[path = "all/common/wire.rs"]
mod wire;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    farpath_testing::skip(farpath_testing::Need::Root, "hosts are made of the Linux kernel");
}

#[cfg(target_os = "linux")]
mod linux {
    use super::wire::{GIVE_UP_AFTER, backends, far_addresses, join, missing};
    use farpath_emu::doctor::{self, Maker, State};
    use farpath_emu::{Backend, Host, HostError, HostSettings, Namespace, enter_user_namespace};
    use farpath_testing::{Need, skip};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::collections::BTreeSet;
    use std::fs::{self, File, Permissions};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};
    use std::{env, thread};

    /// Nobody, on every Linux.
    const NOBODY: u32 = 65_534;

    pub fn main() {
        match env::args().nth(1).as_deref() {
            Some("hold-tun") => return hold(Backend::Tun),
            Some("hold-packet") => return hold(Backend::Packet),
            Some("unprivileged") => return unprivileged(),
            Some("doctor") => return doctor(),
            Some("bequeath") => return bequeath(),
            Some("heir") => loop {
                thread::park();
            },
            _ => {}
        }
        // What test runners ask for: `--list --format terse`, and then each test by its name with `--exact`.
        let (options, names): (Vec<String>, Vec<String>) =
            env::args().skip(1).partition(|argument| argument.starts_with("--"));
        let given = |option: &str| options.iter().any(|known| known == option);
        if given("--list") {
            // None is ignored.
            for (name, _) in TESTS.iter().filter(|_| !given("--ignored")) {
                println!("{name}: test");
            }
            return;
        }
        let asked =
            |test: &str, name: &str| if given("--exact") { test == name } else { test.contains(name) };
        for (test, run) in TESTS {
            if names.is_empty() || names.iter().any(|name| asked(test, name)) {
                run();
                println!("test {test} ... ok");
            }
        }
    }

    const TESTS: [(&str, fn()); 4] = [
        ("nothing_is_left_of_a_killed_process", nothing_is_left_of_a_killed_process),
        ("what_a_dead_process_left_with_another_is_found_and_removed", leftovers_are_removed),
        ("a_user_without_privileges_has_hosts", a_user_without_privileges_has_hosts),
        ("the_doctor_says_what_a_user_without_privileges_can_do", the_doctor_sees_a_user),
    ];

    /// Child: two hosts with a connection in full swing, until it is killed.
    fn hold(backend: Backend) {
        let host = |settings: HostSettings| Host::new(&HostSettings { backend, ..settings }).unwrap();
        let (near, far) = (host(HostSettings::near()), host(HostSettings::far()));
        let _wire = join(&near, &far);
        let listener = far.namespace().run(|| TcpListener::bind(SocketAddr::new(far_addresses()[0], 0)));
        let listener = listener.unwrap().unwrap();
        let place = listener.local_addr().unwrap();
        let mut active = near.namespace().run(|| TcpStream::connect(place)).unwrap().unwrap();
        let (mut passive, _) = listener.accept().unwrap();
        thread::spawn(move || std::io::copy(&mut passive, &mut std::io::sink()));
        active.write_all(&[0; 1 << 20]).unwrap();
        for host in [&near, &far] {
            let id = host.namespace().run(|| fs::read_link("/proc/thread-self/ns/net")).unwrap().unwrap();
            println!("{} {}", host.namespace().as_fd().as_raw_fd(), id.display());
        }
        println!("ready");
        loop {
            active.write_all(&[0; 1 << 16]).unwrap();
        }
    }

    fn nothing_is_left_of_a_killed_process() {
        if missing().is_some() {
            return;
        }
        for backend in backends() {
            let mut child = start(&format!("hold-{backend}"));
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            let told: Vec<String> = lines.take_while(|line| line != "ready").collect();
            assert_eq!(told.len(), 2, "{told:?}");
            let ids: Vec<&str> = told.iter().map(|line| line.split_once(' ').unwrap().1).collect();
            let before = held_namespaces();
            assert!(ids.iter().all(|&id| before.contains(id)), "{ids:?} are not seen while they are there");

            // One of the namespaces is kept here; a TUN device goes all the same, with the file that it depends on.
            let kept = (backend == Backend::Tun).then(|| {
                let fd = told[0].split_once(' ').unwrap().0;
                File::open(format!("/proc/{}/fd/{fd}", child.id())).unwrap()
            });
            child.kill().unwrap();
            child.wait().unwrap();

            if let Some(kept) = kept {
                soon("the device is gone", || !devices_in(&kept).contains("farpath"));
            }
            soon("no process holds its namespaces", || {
                let held = held_namespaces();
                ids.iter().all(|&id| !held.contains(id))
            });
        }
    }

    /// `/proc/net/dev` in another namespace.
    fn devices_in(namespace: &File) -> String {
        thread::scope(|scope| {
            let look = scope.spawn(|| {
                nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                fs::read_to_string("/proc/thread-self/net/dev").unwrap()
            });
            look.join().unwrap()
        })
    }

    /// The network namespaces that any thread is in or has open.
    fn held_namespaces() -> BTreeSet<String> {
        let inside =
            |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let links =
            inside(PathBuf::from("/proc")).filter(|path| path.join("task").exists()).flat_map(|process| {
                let tasks = inside(process.join("task")).map(|task| task.join("ns/net"));
                tasks.chain(inside(process.join("fd"))).collect::<Vec<_>>()
            });
        links
            .filter_map(|link| fs::read_link(link).ok())
            .map(|target| target.display().to_string())
            .filter(|target| target.starts_with("net:["))
            .collect()
    }

    /// The kernel takes namespaces apart in its own time.
    #[expect(clippy::disallowed_methods, reason = "what a kernel does after a process is dead, in real time")]
    fn soon(what: &str, holds: impl Fn() -> bool) {
        let until = Instant::now() + GIVE_UP_AFTER;
        while !holds() {
            assert!(Instant::now() < until, "not within {GIVE_UP_AFTER:?}: {what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn start(what: &str) -> Child {
        Command::new(env::current_exe().unwrap()).arg(what).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Child: hands its host's descriptors to a program that outlives it.
    fn bequeath() {
        let host = Host::new(&HostSettings { backend: Backend::Tun, ..HostSettings::near() }).unwrap();
        let port = host.port();
        let mut heir = Command::new(env::current_exe().unwrap())
            .arg("heir")
            .stdin(port.fd().unwrap().try_clone_to_owned().unwrap())
            .stdout(host.namespace().as_fd().try_clone_to_owned().unwrap())
            .spawn()
            .unwrap();
        println!("{}", heir.id());
        let _ = heir.wait();
    }

    fn leftovers_are_removed() {
        if missing().is_some() || !backends().contains(&Backend::Tun) {
            return;
        }
        let mut child = start("bequeath");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let heir = Heir(line.trim().parse().unwrap());
        let of_the_heir = || {
            let seen = doctor::devices().devices.into_iter();
            let held = seen.filter(|it| it.holders.iter().any(|(holder, _)| *holder == heir.0 as u32));
            held.map(|it| (it.device, it.maker)).collect::<Vec<_>>()
        };
        let device = "farpath0".to_string();

        // Its maker lives: nobody's business.
        assert_eq!(of_the_heir(), [(device.clone(), Maker::Lives(child.id()))]);
        assert!(!doctor::clean().unwrap().iter().any(|it| it.maker == Maker::Lives(child.id())));
        assert_eq!(of_the_heir().len(), 1);

        child.kill().unwrap();
        let dead = Maker::Dead(child.id());
        child.wait().unwrap();
        assert_eq!(of_the_heir(), [(device, dead)]);
        assert!(doctor::clean().unwrap().iter().any(|it| it.maker == dead));
        assert_eq!(of_the_heir(), []);
    }

    /// Ended with the test.
    struct Heir(i32);

    impl Drop for Heir {
        fn drop(&mut self) {
            let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
        }
    }

    fn a_user_without_privileges_has_hosts() {
        print!("{}", as_nobody("unprivileged"));
    }

    fn the_doctor_sees_a_user() {
        print!("{}", as_nobody("doctor"));
    }

    /// What this program says as somebody without privileges.
    fn as_nobody(what: &str) -> String {
        // Only root can become nobody; whoever else runs this has no privileges to give up.
        let root = nix::unistd::geteuid().is_root();
        let folder = tempfile::tempdir().unwrap();
        let program = if root { copy_for_everybody(folder.path()) } else { env::current_exe().unwrap() };
        let mut command = Command::new(program);
        command.arg(what).current_dir("/");
        if root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.stderr(Stdio::inherit()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// Child: the doctor without root.
    fn doctor() {
        let node = File::options().read(true).write(true).open("/dev/net/tun").is_ok();
        let findings = doctor::probe();
        let state = |name| findings.iter().find(|finding| finding.name == name).unwrap().state;
        assert_eq!(state("privileges"), State::Limited);
        let namespaces = state("user namespaces");
        if namespaces != State::Ok {
            skip(Need::Root, format!("no user namespace for a user without privileges: {findings:?}"));
        }
        assert_eq!(doctor::emulates(&findings), namespaces == State::Ok);
        assert_eq!(state("network namespaces"), namespaces);
        assert_eq!(state("TUN") == State::Ok, node && namespaces == State::Ok);
        for finding in findings.iter().filter(|finding| finding.state == State::Missing) {
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
    }

    fn copy_for_everybody(folder: &Path) -> PathBuf {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        let copy = folder.join("processes");
        fs::copy(env::current_exe().unwrap(), &copy).unwrap();
        fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
        copy
    }

    /// Child: hosts without root.
    fn unprivileged() {
        let error = Namespace::new().expect_err("not without a user namespace").to_string();
        assert!(error.contains("farpath doctor"), "{error}");

        // With another thread about it is refused, not half done.
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || wait.recv());
        assert!(matches!(enter_user_namespace(), Err(HostError::Threads { threads: 2 })));
        drop(stop);
        let _ = other.join();
        alone_again();

        if let Err(error) = enter_user_namespace() {
            return skip(Need::Root, format!("no user namespace for a user without privileges: {error}"));
        }
        enter_user_namespace().expect("there is nothing left to do");
        assert_ne!(nix::unistd::geteuid().as_raw(), 0, "who we are has changed");
        let (near, far) =
            (Host::new(&HostSettings::near()).unwrap(), Host::new(&HostSettings::far()).unwrap());
        // The node decides, not we.
        let node = File::options().read(true).write(true).open("/dev/net/tun").is_ok();
        assert_eq!(near.backend(), if node { Backend::Tun } else { Backend::Packet });
        assert_eq!(near.instead_of_tun().is_some(), !node);
        near.namespace().set_sysctl("net.ipv4.tcp_sack", "0").unwrap();
        let wire = join(&near, &far);
        for to in far_addresses() {
            let listener =
                far.namespace().run(|| TcpListener::bind(SocketAddr::new(to, 0))).unwrap().unwrap();
            let place = listener.local_addr().unwrap();
            let mut active =
                near.namespace().run(|| TcpStream::connect_timeout(&place, GIVE_UP_AFTER)).unwrap().unwrap();
            let (mut passive, _) = listener.accept().unwrap();
            passive.set_read_timeout(Some(GIVE_UP_AFTER)).unwrap();
            let sender = thread::spawn(move || active.write_all(&[7; 1 << 20]));
            let mut got = Vec::new();
            passive.read_to_end(&mut got).unwrap();
            sender.join().unwrap().unwrap();
            assert_eq!(got, vec![7; 1 << 20]);
        }
        println!("hosts without root, by {}: {} packets", near.backend(), wire.packets());
    }

    /// A joined thread is gone for us a moment before it is gone for the kernel.
    fn alone_again() {
        soon("one thread", || {
            fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line == "Threads:\t1")
        });
    }
}
