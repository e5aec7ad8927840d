//! Looks from inside a real cluster, beside those from this machine.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use jiff::Timestamp;
use kubectl_acme::model::{Answer, Challenge};
use kubectl_acme::solvers::Solver as _;
use kubectl_acme::solvers::http01::cluster::ClusterSolver;
use kubectl_acme::solvers::http01::cluster::options::Options;
use kubectl_acme::store::cluster::{ClusterStore, Connection};
use serde_json::{Value, json};

use crate::support::bed;
use crate::support::cluster::{Cluster, Kubectl, Namespace, OUR_IMAGE};
use crate::support::program;
use crate::support::terminal::Said;

/// A Challenge in a namespace of its own.
struct Bed {
    namespace: Namespace<'static>,
    challenge: Challenge,
    answer: Answer,
}

impl Bed {
    fn new() -> Self {
        let namespace = Cluster::shared().namespace("probe");
        let challenge = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge", "metadata": {"name": "one"},
            "spec": {
                "url": "https://ca.example/chall/1", "authorizationURL": "https://ca.example/authz/1",
                "dnsName": format!("{}.example.com", namespace.name()), "type": "HTTP-01",
                "token": "token", "key": "token.thumbprint", "wildcard": false,
                "solver": {"http01": {"ingress": {}}}, "issuerRef": {"name": "acme"},
            },
        });
        namespace.kubectl().apply(&challenge.to_string());
        let challenge = namespace.kubectl().object("challenge/one");
        let challenge: Challenge = serde_json::from_value(challenge).unwrap();
        let answer = Answer::of(&challenge).unwrap();
        Self { namespace, challenge, answer }
    }

    fn kubectl(&self) -> Kubectl {
        self.namespace.kubectl()
    }

    /// Runs a command that looks at that port, and from a Pod of that image.
    fn run(&self, as_whom: &Kubectl, words: &[&str], port: u16, image: &str) -> Output {
        self.command(as_whom, words, port, image).output().unwrap()
    }

    fn command(&self, as_whom: &Kubectl, words: &[&str], port: u16, image: &str) -> Command {
        let mut command = program::command();
        command
            .args(words)
            .args(["--namespace", self.namespace.name(), "--probe-image", image])
            .arg(format!("--http01-resolve=*=127.0.0.1:{port}"))
            .env("KUBECONFIG", as_whom.kubeconfig());
        command
    }

    /// Checks the challenge; returns what was said on both streams. No Pod of ours may stay.
    #[track_caller]
    fn check(&self, as_whom: &Kubectl, port: u16, image: &str, expected: i32) -> String {
        let output = self.run(as_whom, &["challenge", "check", "one"], port, image);
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        let said = said.concat();
        assert_eq!(output.status.code(), Some(expected), "{said}");
        assert_eq!(self.probe_pods(), [] as [Value; 0]);
        said
    }

    /// Looks with the line that is shown for the Pod; returns its report. Nobody can be attached to Pods of the bed.
    fn look_by_hand(&self, said: &Said) -> Value {
        let line = said.commands().find(|line| line.starts_with("kubectl ")).unwrap();
        let line = line.replacen(" --rm --attach ", " ", 1);
        let ended = Command::new("sh")
            .args(["-c", &line])
            .env("KUBECONFIG", self.kubectl().kubeconfig())
            .output()
            .unwrap();
        let ended = Said::from(ended);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "pod/kubectl-acme-probe created\n")
        );
        let until = "--for=jsonpath={.status.phase}=Succeeded";
        self.kubectl().run(&["wait", "pod/kubectl-acme-probe", until, "--timeout=180s"]);
        let pod = self.kubectl().object("pod/kubectl-acme-probe");
        let words = &pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"];
        serde_json::from_str(words.as_str().unwrap()).unwrap()
    }

    /// Probe Pods that are not on their way out.
    fn probe_pods(&self) -> Vec<Value> {
        let is_ours = |pod: &Value| {
            let metadata = &pod["metadata"];
            metadata["labels"]["kubectl-acme/probe"].is_string()
                && metadata["deletionTimestamp"].is_null()
        };
        self.kubectl().items("pods").into_iter().filter(is_ours).collect()
    }

    async fn solver(&self) -> ClusterSolver {
        let kubeconfig = Some(Cluster::shared().kubeconfig());
        let connection = Connection { kubeconfig, ..Connection::default() };
        let cluster = ClusterStore::connect(&connection).await.unwrap();
        ClusterSolver::new(cluster, Options::default())
    }
}

/// Our image, as a stand-in for one that is published.
fn image() -> String {
    format!("{OUR_IMAGE}:test")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_a_pod_sees_is_shown_beside_what_is_seen_from_here() {
    let (bed, cluster) = (Bed::new(), Cluster::shared());
    let missing = bed.check(&bed.kubectl(), cluster.http_port(), &image(), 9);
    assert!(missing.contains("wrong status code '404', expected '200'"), "{missing}");
    assert!(missing.contains("; the same from inside the cluster"), "{missing}");

    let solver = bed.solver().await;
    solver.present(&bed.challenge, &bed.answer).await.unwrap();
    let ready = || bed.check(&bed.kubectl(), cluster.http_port(), &image(), 0);
    let seen = tokio::task::block_in_place(|| {
        bed.kubectl().run(&["wait", "pods", "--all", "--for=condition=Ready", "--timeout=180s"]);
        ready()
    });
    let pod = "Seen from:   inside the cluster (Pod kubectl-acme-probe-";
    assert!(seen.contains("Seen from:   this machine at ") && seen.contains(pod), "{seen}");
    assert_eq!(seen.matches("status 200, 16 bytes: \"token.thumbprint\"").count(), 2, "{seen}");

    // From here nobody answers; that decides, since the CA looks from outside, too.
    let closed = bed::free_port();
    let hidden = bed.check(&bed.kubectl(), closed, &image(), 9);
    let why = format!(
        "connection refused by 127.0.0.1:{closed}; from inside the cluster the answer is seen"
    );
    assert!(hidden.contains(&why), "{hidden}");
    let words = ["challenge", "check", "one", "-o", "json"];
    let report = bed.run(&bed.kubectl(), &words, closed, &image()).stdout;
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["visible"], false);
    assert_eq!(report["observations"][0]["vantage"], "thisMachine");
    assert!(report["observations"][1]["vantage"]["pod"]["name"].is_string(), "{report}");
    assert_eq!(report["observations"][1]["seen"]["reply"]["body"], "token.thumbprint");
    let words = ["challenge", "check", "one", "--show-commands"];
    let said = bed.run(&bed.kubectl(), &words, cluster.http_port(), &image()).into();
    let by_hand = tokio::task::block_in_place(|| bed.look_by_hand(&said));
    assert_eq!(by_hand["seen"], report["observations"][1]["seen"]);
    solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_pod_that_cannot_look_is_told_and_decides_nothing() {
    let bed = Bed::new();
    let port = Cluster::shared().http_port();
    let said = bed.check(&bed.kubectl(), port, "registry.example/none:1", 9);
    assert!(
        said.contains("no probe was possible: it does not start: ImagePullBackOff: "),
        "{said}"
    );
    assert!(said.contains("; no look from inside the cluster: it does not start"), "{said}");

    let rules = "[{apiGroups: [acme.cert-manager.io], resources: [challenges], verbs: [get]}]";
    let reader = bed.namespace.service_account("reader", rules);
    let said = bed.check(&reader, port, &image(), 9);
    assert!(
        said.contains("no Pod can be made: no permission to create pods in namespace"),
        "{said}"
    );
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_order_whose_answer_is_not_seen_from_here_asks_a_pod() {
    let bed = Bed::new();
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests.json");
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme"},
        "spec": {"acme": {
            "server": "https://127.0.0.1:1/", "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    });
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "web"},
        "spec": {
            "secretName": "web-tls", "dnsNames": [bed.challenge.spec.dns_name],
            "issuerRef": {"name": "acme"}, "privateKey": {"algorithm": "ECDSA"},
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [issuer, certificate]});
    fs::write(&manifests, list.to_string()).unwrap();

    // Two Pods that look like leftovers; only one of them was made under our name.
    let now = Timestamp::UNIX_EPOCH;
    for (name, manager) in [("ours", "kubectl-acme"), ("theirs", "kubectl-create")] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "labels": {"kubectl-acme/probe": "uid"},
                "annotations": {"kubectl-acme/until": now.to_string()},
            },
            "spec": {"containers": [{"name": "main", "image": "registry.example/none:1"}]},
        });
        let file = folder.path().join("pod.json");
        fs::write(&file, pod.to_string()).unwrap();
        let (file, manager) = (file.to_str().unwrap(), format!("--field-manager={manager}"));
        bed.kubectl().run(&["create", "-f", file, &manager]);
    }
    let manifests = manifests.to_str().unwrap();
    let words = ["order", "--rehearse", "--timeout=5m", "-f", manifests];
    let mut order = bed.command(&bed.kubectl(), &words, bed::free_port(), &image());
    let mut order = order.stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = String::new();
    for line in BufReader::new(order.stderr.take().unwrap()).lines() {
        talk = talk + &line.unwrap() + "\n";
        if talk.contains("; from inside the cluster the answer is seen") {
            break;
        }
    }
    let id = order.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success(), "{talk}");
    assert_eq!(order.wait().unwrap().code(), Some(130), "{talk}");
    let swept = format!("was killed: Pod {}/ours\n", bed.namespace.name());
    assert!(talk.contains(&swept), "{talk}");
    let left: Vec<_> = bed.probe_pods().iter().map(|o| o["metadata"]["name"].clone()).collect();
    assert_eq!(left, ["theirs"]);
}
