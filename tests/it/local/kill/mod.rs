//! The real program, killed with SIGKILL at random moments and ended by other signals: what it leaves is whole, and the next
//! one goes on.

mod bench;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kubectl_acme::ca::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use self::bench::{Bench, finished, signal, talk};
use crate::support::ca::certificate;

/// Kills in a row on one state folder.
const KILLS: usize = 12;
/// State folders.
const ROUNDS: u64 = 2;
/// The seed of the dice, in place of one drawn from the clock.
const SEED: &str = "KUBECTL_ACME_TEST_SEED";

/// Dice that fall the same way for the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    /// A moment between none and `most`.
    fn moment(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let millis = u64::try_from(most.as_millis()).unwrap() + 1;
        Duration::from_millis(mixed % millis)
    }
}

/// A CA that keeps orders apart and takes its time to issue, so that a kill has something to meet.
fn slow() -> Config {
    Config {
        reuse_orders: false,
        finalize_delay: Some(Duration::from_millis(200)),
        ..Config::default()
    }
}

fn certificates() -> [Value; 2] {
    [
        certificate("web", &["a.example.com", "b.example.com"], "ECDSA"),
        certificate("mail", &["mail.example.com"], "ECDSA"),
    ]
}

/// How long the program takes on this machine when nobody kills it.
async fn undisturbed() -> Duration {
    let bench = Bench::start(slow(), &certificates()).await;
    let start = Instant::now();
    let output = finished(bench.order().spawn().unwrap()).await;
    let taken = start.elapsed();
    bench.check_end(&output).await;
    assert_eq!(bench.ca.server.orders().len(), 2);
    taken
}

/// Kills the program again and again within so much time, then lets it come to its end.
async fn check(seed: u64, most: Duration) {
    let bench = Bench::start(slow(), &certificates()).await;
    let mut dice = Dice(seed);
    let mut abandoned = BTreeSet::new();
    let mut kills = 0;
    for _ in 0..KILLS {
        let mut child = bench.order().spawn().unwrap();
        sleep(dice.moment(most)).await;
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().await.unwrap();
        kills += 1;
        bench.check_remains();
        abandoned.append(&mut bench.abandoned().await);
    }
    let output = finished(bench.order().spawn().unwrap()).await;
    bench.check_end(&output).await;

    let mut orders = bench.ca.server.orders();
    orders.retain(|url, _| !abandoned.contains(url));
    // An order is invalid when the CA looked at a listener that had died.
    orders.retain(|_, state| *state != "invalid");
    let states: Vec<&str> = orders.into_values().collect();
    assert_eq!(states, ["valid"; 2], "{}", talk(&output));
    assert!(abandoned.len() <= 2 * kills, "{abandoned:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_moment_is_continued_by_the_next() {
    let fixed = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
    let clock = jiff::Timestamp::now().as_nanosecond().unsigned_abs();
    let seed = fixed.unwrap_or_else(|| u64::try_from(clock % 1_000_000).unwrap());
    let most = undisturbed().await / 3;
    for seed in seed..seed + if fixed.is_some() { 1 } else { ROUNDS } {
        let ended = tokio::spawn(check(seed, most)).await;
        assert!(ended.is_ok(), "{SEED}={seed} repeats the moments of the kills");
    }
}

/// Starts an order whose validation the CA has begun and cannot end.
async fn being_validated() -> (Bench, Child) {
    let bench = Bench::start(slow(), &[certificate("web", &["www.example.com"], "ECDSA")]).await;
    bench.gate.close();
    let child = bench.order().spawn().unwrap();
    bench.gate.wait().await;
    (bench, child)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_the_ca_refused_because_its_listener_died_is_made_anew_at_once() {
    let (bench, mut child) = being_validated().await;
    child.kill().await.unwrap();
    bench.gate.open();
    while !bench.ca.server.orders().values().any(|state| *state == "invalid") {
        sleep(Duration::from_millis(5)).await;
    }
    let output = finished(bench.order().spawn().unwrap()).await;
    bench.check_end(&output).await;
    assert!(talk(&output).contains("trying again after"), "{}", talk(&output));
    let orders = bench.ca.server.orders();
    assert_eq!(orders.values().copied().collect::<BTreeSet<_>>(), ["invalid", "valid"].into());
    assert_eq!(orders.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_resumed_by_its_name_after_a_kill() {
    let (bench, mut child) = being_validated().await;
    let name = bench.order_name().await;
    child.kill().await.unwrap();
    bench.check_remains();
    check_continued(&bench, bench.resume(&name)).await;
}

/// Lets the CA look when the next process has put the answer up again: that is all it takes.
async fn check_continued(bench: &Bench, mut command: Command) {
    let child = command.spawn().unwrap();
    bench.answer_stands().await;
    bench.gate.open();
    bench.check_end(&finished(child).await).await;
    assert_eq!(bench.ca.server.orders().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_left_that_was_killed_after_its_work_is_tidied_up() {
    let bench = Bench::start(slow(), &[certificate("web", &["www.example.com"], "ECDSA")]).await;
    bench.check_end(&finished(bench.order().spawn().unwrap()).await).await;
    bench.leave_next_key().await;
    let before = bench.ca.server.statistics();
    bench.check_end(&finished(bench.order().spawn().unwrap()).await).await;
    assert_eq!(bench.ca.server.statistics(), before);
}

/// Interrupts an order and goes on with the command that is printed.
async fn check_interrupted(name: &str, code: i32) {
    let (bench, child) = being_validated().await;
    signal(&child, name).await;
    let output = finished(child).await;
    assert_eq!(output.status.code(), Some(code), "{}", talk(&output));
    assert!(talk(&output).contains("interrupted; everything so far is kept"), "{}", talk(&output));
    bench.check_remains();
    let talk = talk(&output);
    let line = talk.lines().find_map(|line| line.split_once("go on with: ")).unwrap().1;
    check_continued(&bench, bench.pasted(line)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_order_says_which_command_goes_on() {
    check_interrupted("INT", 130).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_order_says_which_command_goes_on() {
    check_interrupted("TERM", 143).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_program_at_once() {
    // What it is asked to do does not end, and may not be broken off.
    let (server, asked) = silent_at_posts();
    let bench = Bench::start(slow(), &[certificate("web", &["www.example.com"], "ECDSA")]).await;
    let mut issuer = bench.ca.issuer();
    issuer["spec"]["acme"]["server"] = server.into();
    bench.write(&issuer);
    let mut child = bench.order().spawn().unwrap();
    let connection = asked.recv().unwrap();
    signal(&child, "INT").await;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("Ctrl-C again") {}
    signal(&child, "INT").await;
    assert_eq!(finished(child).await.status.code(), Some(130));
    bench.check_remains();
    drop(connection);
}

/// A CA that says where everything is, gives nonces, and takes what it is sent without a word: its URL, and who sent something.
fn silent_at_posts() -> (String, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let endpoints = ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange"];
    let endpoints = endpoints.map(|name| (name, format!("{url}/{name}")));
    let directory = json!(BTreeMap::from(endpoints)).to_string();
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let length = connection.read(&mut head).unwrap_or(0);
            if head[..length].starts_with(b"POST") {
                if sender.send(connection).is_err() {
                    return;
                }
                continue;
            }
            let body = if head.starts_with(b"GET") { directory.as_str() } else { "" };
            let size = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nReplay-Nonce: abc\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}"
            );
            connection.write_all(answer.as_bytes()).ok();
        }
    });
    (url, asked)
}
