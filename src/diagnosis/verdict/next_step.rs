//! Steps that help, as data: what has to be changed, inspected or run, and on which object. `hints` words the steps.

use crate::diagnosis::words::facts::StaleAnswer;
use crate::model::cause::{CheckFinding, Guard, Symptom};
use crate::model::keystore::NoKeystore;
use crate::model::{Challenge, Key, ObjectName};
use crate::solvers::remedy::Remedy;
use crate::store::error::StoreError;

/// Step that helps.
#[derive(Clone, Debug)]
pub enum NextStep {
    /// The given step, and then the same command once more.
    ThenAgain(Box<Self>),

    /// Name the root of this issuer's CA.
    TrustCa(Key),
    /// Correct the URL of this issuer's CA.
    CheckServer(Key),
    /// Correct the URL of this issuer's CA, or this machine's resolver.
    CheckServerAndResolver(Key),
    /// Put this machine's resolver right.
    CheckResolver,
    /// Let this machine connect to this issuer's CA, or correct its URL.
    CheckConnection(Key),
    /// Name a directory as this issuer's CA: the server that answers is no directory.
    CheckDirectory(Key),
    /// Name a directory as this issuer's CA: there is nothing at the issuer's URL.
    DirectoryUrl(Key),
    /// Let cert-manager connect to this issuer's CA, or correct its URL.
    ConnectFromCertManager(Key),
    /// Do what the CA asks for on these pages; in the CA's answer, if there are no pages.
    OpenPages(Vec<String>),
    /// Read what the CA says on these pages.
    ReadPages(Vec<String>),
    /// Ask the CA by other means: the CA does not offer the request over ACME.
    BesideAcme,
    /// Wait for the CA: it says that the fault is the CA's own.
    AuthorityAtFault,
    /// Lift the pause of the account, which does not end by itself.
    LiftPause,
    /// Wait until a limit of the CA is over.
    AfterLimit,

    /// Name an external account binding in this issuer.
    GetBinding(Key),
    /// Compare the external account binding of this issuer with what its CA gave.
    CompareBinding(Key),
    /// Write the HMAC key of the external account into its Secret as the CA gave it.
    BindingKey,
    /// Change the address to which the CA of this issuer may write.
    ChangeContact(Key),
    /// Put an account key of another kind into a Secret of this issuer.
    OtherKindOfKey {
        /// Issuer.
        issuer: Key,
        /// Name of the Secret.
        secret: String,
    },
    /// Ask another CA: this one takes only these algorithms of signatures.
    OtherAuthority(Vec<String>),
    /// Name another Secret in this issuer: its CA does not take the account key in this one.
    OtherKey {
        /// Issuer.
        issuer: Key,
        /// Name of the Secret.
        secret: String,
    },
    /// Put a key that can be used into the Secret of this issuer's account, or have another account.
    MendKey {
        /// Issuer.
        issuer: Key,
        /// Name of the Secret.
        secret: String,
    },
    /// Ask for a certificate of another kind of key.
    OtherKindOfCertificateKey,
    /// Have another account at the CA of this issuer, by taking the account key away: the CA takes no orders from this account
    /// any more.
    OtherAccount {
        /// Issuer.
        issuer: Key,
        /// Name of the Secret with the account key.
        secret: String,
    },
    /// Add the Secret that this issuer names.
    AddSecret(Key),
    /// Change this issuer.
    ChangeIssuer(Key),
    /// Make the Secret that a dns01 solver of this issuer names, or name another one.
    SolverSecret(Key),

    /// Choose another profile of this issuer's CA.
    Profile(Key),
    /// Leave the name out, or ask another CA for it.
    LeaveNameOut,
    /// Ask for another challenge type, or for none, in this issuer.
    ChallengeType(Key),
    /// Change the solvers of this issuer.
    Solvers(Key),
    /// Name an issuer of a kind that is ours.
    IssuerKind,
    /// Bring the issuer back.
    BringIssuerBack,
    /// Change what this Certificate asks for, or its Secret.
    ChangeCertificate(Key),
    /// Change the windows in which a certificate may be renewed.
    RenewalWindows,
    /// See why an order brought nothing, then ask once more.
    AskOnceMore,
    /// Approve this CertificateRequest.
    Approve(ObjectName),
    /// Ask the person or program that approves CertificateRequests.
    AskApprover,
    /// Renew this Certificate once its request may pass.
    RenewOncePassed(ObjectName),
    /// See the CA's answers in this Order.
    DescribeOrder(ObjectName),
    /// See every step of this Certificate.
    Timeline(ObjectName),
    /// Free the name that another object has.
    FreeName {
        /// Object that has the name.
        taken: Key,
        /// Object that should have the name.
        ours: Key,
        /// Whether the other object goes by itself.
        passes: bool,
    },
    /// Report the fault to the makers of this program.
    Report,

    /// Step for a keystore that cannot be written.
    Keystore(Box<NoKeystore>),
    /// Step against a fault of the store.
    Store(Box<StoreError>),
    /// Step for a solver.
    Solver(Remedy),
    /// Get the solver's objects past a guard of the cluster.
    PastGuard {
        /// The guard.
        guard: Guard,
        /// Namespace of the objects.
        namespace: String,
    },
    /// Step against a fault on the way to a record's zone.
    Zone(Symptom),
    /// Put the answer of a challenge where the CA looks.
    Answer(Box<AnswerStep>),
    /// Wait until the CA's resolver has dropped its outdated answer for this record (absolute).
    KeptByResolver(StaleAnswer, String),
    /// Change what CAA records say.
    Caa(CaaStep),
}

/// Answer that is not where the CA looks.
#[derive(Clone, Debug)]
pub struct AnswerStep {
    /// The challenge.
    pub challenge: Challenge,
    /// Sighting in place of the answer, if known.
    pub sighting: Option<CheckFinding>,
    /// Whether the answer is behind objects of a cluster; else this machine answers.
    pub in_cluster: bool,
}

/// Step for CAA records that keep a CA from issuing (RFC 8659, RFC 8657). Names are safe in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaaStep {
    /// The name servers of this name have to answer questions for CAA records.
    Servers(String),
    /// Register the account of this issuer alone, then name it in the record of this name.
    AccountFirst {
        /// Issuer.
        issuer: Key,
        /// Name that owns the record.
        owner: String,
    },
    /// A record has to name the CA.
    NameAuthority {
        /// Name as it was ordered.
        name: String,
        /// Owner of the records that decide; empty if the CA does not name it.
        owner: String,
        /// Name by which records have to call the CA, if the CA gives it.
        identity: Option<String>,
    },
    /// The CA's documentation names the value by which records have to call the CA.
    IdentityInDocumentation,
    /// A record that names the CA may have conditions that are not met.
    Conditions {
        /// Issuer.
        issuer: Key,
        /// Challenge types by which control of the names was to be shown.
        methods: Vec<&'static str>,
    },
}
