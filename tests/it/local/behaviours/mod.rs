//! The program against everything that a CA or the network may do: the 56 rows, on real sockets.
//!
//! Each row runs `order -f` against `ca --behave NAME` and judges what came of it: exit code, requests, time, what is stored, and what
//! the user reads. All rows that fail are told at once.

mod bench;
mod judge;
mod row;
mod rows;
mod stubs;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use self::row::{Row, Time};

/// How many rows run side by side: most of them wait most of the time.
const SIDE_BY_SIDE: usize = 6;
/// What a run is given that ends by itself.
const LONG: Duration = Duration::from_mins(2);
/// What a run is given whose time is to run out: more at each try, for a busy machine may not get as far before.
const SHORT: [Duration; 3] =
    [Duration::from_secs(6), Duration::from_secs(25), Duration::from_secs(100)];
/// Runs rows side by side; what is wrong with each.
fn check(rows: &[Row]) -> Vec<String> {
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fault = check_row(row);
                    faults.lock().unwrap().extend(fault);
                }
            });
        }
    });
    faults.into_inner().unwrap()
}

fn check_row(row: &Row) -> Option<String> {
    let name = row.name();
    let timeouts: &[Duration] = match row.time {
        Time::Enough => &[LONG],
        Time::Short => &SHORT,
    };
    let (mut faults, mut told) = (Vec::new(), String::new());
    for timeout in timeouts {
        let seen = bench::run(row, *timeout);
        (faults, told) = (judge::faults(row, &seen, *timeout), seen.told());
        if faults.is_empty() {
            break;
        }
    }
    let faults = (!faults.is_empty()).then(|| faults.join("\n  "));
    faults.map(|faults| format!("== row {name}:\n  {faults}\n{told}"))
}

/// Only rows whose names contain what this says, for whoever works on one.
fn wanted(rows: Vec<Row>) -> Vec<Row> {
    match std::env::var("ROW") {
        Ok(part) => rows.into_iter().filter(|row| row.name().contains(&part)).collect(),
        Err(_) => rows,
    }
}

#[test]
fn the_program_survives_everything_that_a_ca_may_do() {
    let rows = wanted(rows::all());
    let faults = check(&rows);
    let counts = format!("{} of {} rows", faults.len(), rows.len());
    assert!(faults.is_empty(), "{counts}:\n{}", faults.join("\n"));
}

#[test]
fn every_row_and_every_behaviour_is_tried() {
    let rows = rows::all();
    let numbers: BTreeSet<u8> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=56).collect());
    let names = |row: &Row| -> Vec<_> {
        row.behave.iter().map(|text| text.split('=').next().unwrap()).collect()
    };
    let tried: BTreeSet<_> = rows.iter().flat_map(names).collect();
    let kit: BTreeSet<_> = kubectl_acme::ca::behaviour::kit().map(|b| b.name).collect();
    assert_eq!(tried, kit);
    // So do other clients.
    let lines = include_str!("../../../../benches/conformance/rows.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let names = lines.flat_map(|line| line.split(' ').next().unwrap_or_default().split(','));
    let names = names.map(|name| name.split('=').next().unwrap_or_default());
    let compared: BTreeSet<_> = names.filter(|name| !name.contains(':')).collect();
    assert_eq!(compared, kit);
}
