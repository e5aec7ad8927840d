//! Input that nobody wrote for us: no panic, no second and no 200 MB for a megabyte, whatever comes. For each kind of input
//! ([`kinds`]) there is a corpus in `tests/fixtures/hostile/`, of which every file is read as it is, and a function that gives bytes to what
//! ships. Then the corpora are changed by lot from a seed ([`change`]): bits turned, pieces cut out, repeated and exchanged, words
//! put in that have meant trouble, and all of it grown to a megabyte. What does harm is made shorter and kept where the message
//! says; once it is mended it belongs into the corpus.
//!
//! `just fuzz MINUTES SEED` goes on for longer. KUBECTL_ACME_FUZZ_SECONDS, _SEED and _LIMIT (milliseconds for one input) say the same to the
//! test; KUBECTL_ACME_FUZZ_KIND tries one kind alone.
//!
//! What is not tried: the API server's client and its watches, and what a log-in plugin says (a kubeconfig names programs, so that
//! none is connected by); sockets, TLS and HTTP themselves, which are libraries'; what our own CA is sent (`ca`); memory that C code
//! takes (SQLite, cryptography).
#![allow(clippy::unwrap_used, reason = "a fault ends the run that sees it")]
#![allow(clippy::print_stdout, reason = "whoever searches wants to read what was tried")]

mod change;
mod kinds;
mod network;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use peak_alloc::PeakAlloc;

use self::change::{Rng, changed};
use self::kinds::KINDS;
use self::watch::Watch;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Seconds that changes take, where nobody says how long: what the gate has.
const SECONDS: u64 = 10;

/// Milliseconds for one input in a build that nobody made quick, on a machine that does other things: a megabyte of names takes ten
/// seconds at times.
const LIMIT: u64 = 60_000;

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A kind of input and its corpus.
struct Corpus {
    kind: usize,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn corpora() -> Vec<Corpus> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile");
    let wanted = env::var("KUBECTL_ACME_FUZZ_KIND").ok();
    let kinds = KINDS.iter().enumerate();
    let kinds = kinds.filter(|(_, (name, _))| wanted.as_ref().is_none_or(|wanted| wanted == name));
    let corpus = kinds.map(|(kind, (name, _))| {
        let folder = fs::read_dir(root.join(name)).unwrap();
        let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: PathBuf| {
            let bytes = input(&path);
            (path, bytes)
        };
        Corpus { kind, files: paths.into_iter().map(read).collect() }
    });
    corpus.collect()
}

/// A file of a corpus. One of `pieces` says how often each text comes, one after the other, as JSON.
fn input(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "pieces") {
        return bytes;
    }
    let pieces: Vec<(usize, String)> = serde_json::from_slice(&bytes).unwrap();
    let pieces: String = pieces.iter().map(|(times, text)| text.repeat(*times)).collect();
    pieces.into_bytes()
}

/// Both in one test: how much memory an input takes is counted for the whole process.
#[test]
fn nothing_that_is_read_does_harm() {
    let mut watch = Watch::new(Duration::from_millis(number("KUBECTL_ACME_FUZZ_LIMIT", LIMIT)));
    let corpora = corpora();
    for corpus in &corpora {
        for (path, bytes) in &corpus.files {
            if let Err(why) = watch.try_input(corpus.kind, bytes) {
                panic!("{}: {why}", path.display());
            }
        }
    }
    let kept: usize = corpora.iter().map(|corpus| corpus.files.len()).sum();
    let seed = number("KUBECTL_ACME_FUZZ_SEED", 1);
    let until = Instant::now() + Duration::from_secs(number("KUBECTL_ACME_FUZZ_SECONDS", SECONDS));
    let mut rng = Rng::new(seed);
    let mut tried = vec![0_u64; corpora.len()];
    let mut slowest = vec![Duration::ZERO; corpora.len()];
    // Each kind has its share of the time: some are a thousand times as quick as others.
    let mut spent = vec![Duration::ZERO; corpora.len()];
    while Instant::now() < until {
        let next = (0..corpora.len()).min_by_key(|index| spent[*index]).unwrap();
        let corpus = &corpora[next];
        let files: Vec<&[u8]> = corpus.files.iter().map(|(_, bytes)| &**bytes).collect();
        let bytes = changed(&mut rng, &files);
        let began = Instant::now();
        if let Err(why) = watch.try_input(corpus.kind, &bytes) {
            let name = KINDS[corpus.kind].0;
            let kept = watch.shorten_and_keep(corpus.kind, name, bytes);
            panic!("seed {seed}: {name}: {why}\nkept as {}", kept.display());
        }
        let took = began.elapsed();
        spent[next] += took.max(Duration::from_micros(50));
        slowest[next] = slowest[next].max(took);
        tried[next] += 1;
    }
    println!("{kept} files of corpora; by seed {seed}:");
    for (index, corpus) in corpora.iter().enumerate() {
        let seconds = spent[index].as_secs_f64().max(0.001);
        let name = KINDS[corpus.kind].0;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let each = tried[index] as f64 / seconds;
        println!(
            "{name:>12}: {} inputs, {each:.0}/s, the slowest {:.1?}",
            tried[index], slowest[index]
        );
    }
}
