//! What needs nothing but loopback; a few want a tool of the machine, too.

mod adversary;
mod approval;
mod behaviours;
mod causes;
mod certificate_check;
mod certificate_show;
mod challenge_answer;
mod cli;
mod crash;
mod definitions;
mod deploy;
mod diagnose;
mod examples;
mod faults;
mod generated;
mod kill;
mod lab;
mod man;
mod order_report;
mod pairs;
mod pipelines;
mod recordings;
mod shells;
mod solve;
mod store;
mod tidy;
