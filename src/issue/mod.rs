//! Ordering certificates: the plan, the checks before it, the work until each Certificate has ended, and its results.
//!
//! An order from manifest to file, top to bottom. `commands::order::create::run` has read the manifests:
//!
//! 1. `asking::with_certificates` adds the Certificates for which Ingresses, Gateways and ListenerSets ask.
//! 2. `Issuance::run` works in rounds (more than one only with `--allow-subset-of-names`): `Issuance::run_once`.
//! 3. `issuance::begin` prepares a round. `open_store` gets the store, the permissions and the `Claim`.
//! 4. `preflight::check` finds the issuer, the Secrets and a solver of each name. `files::expect_writable` tries the
//!    folder. `announce::work` prints the first line.
//! 5. `applying::apply` is the first write. `asking::bring_up_to_date` makes the Certificates of step 1.
//! 6. `opening::opening` finds the objects to follow; `Inspection::begin_if_due` decides for each Certificate.
//!    `provider_check::check` asks the DNS providers of the due Certificates.
//! 7. `follow::work::work` calls `follow`, which calls `begin`: `required_types` decides if `DriveArgs::http01_for` has
//!    to open a port, `public_dns::check` reads CAA records, and `Engine::start_looking` starts the controllers.
//! 8. `Supervision::run` watches the store while the controllers work: `gather` takes in changes, `judge` and
//!    `judge_one` judge each object, and `end` keeps `End::Done` once the Secret holds the certificate.
//! 9. `lead::stopping::stop` ends the controllers; before that, `await_removal_of_answers` waits if an object failed.
//! 10. `finish::settle` prints the table and the timelines. `write_out::write_out` calls `files::write` for `tls.key`
//!     and `tls.crt`, prints a line (`closing::line`) and calls `OnIssued::run`. `print_failures` and `write_report`
//!     come last, then the exit code.
//!
//! `again::run` (`order retry`, `order resume`, `certificate renew`) takes Certificates of the store in place of
//! manifests: `again::begin` has the checks of step 4 and marks Certificates, and steps 7 to 10 follow. A rehearsal
//! replaces `open_store` by `start_rehearsal`: a store in memory and a CA of our own. `dry_run::client` and
//! `dry_run::server` print and write nothing. `unbegun::settle_unbegun` ends a command that failed before step 7.

pub mod again;
pub mod asking;
pub mod dry_run;
pub mod flags;
pub mod follow;
pub mod issuance;
pub mod manual;
pub mod plan;
pub mod preflight;
pub mod rehearsal;
pub mod results;
pub mod tracked;
