//! The Roles of `deploy/rbac` on a real API server: each is enough for its job, and what is missing of one is named before
//! anything is written.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::cluster::{Arena, Bench, Kubectl, check, eventually};

/// What no command asks for before it works: some clusters do, or some manifests; and who may not see a Lease only watches.
const UNASKED: [&str; 5] = ["signers", "finalizers", "httproutes", "leases", "ingresses update"];
/// Everything that a command may leave behind.
const TRACES: &str = "certificates,certificaterequests,orders,challenges,issuers,secrets,events,pods,services,ingresses";

/// A recipe of `deploy/rbac`, for an account of a bench.
struct Recipe {
    file: &'static str,
    objects: Vec<Value>,
    account: &'static str,
}

impl Recipe {
    /// Reads it as whoever applies it would change it: another namespace.
    fn read(file: &'static str, bench: &Bench<'_>, account: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/rbac").join(file);
        let text = fs::read_to_string(path).unwrap();
        let text =
            text.replace("namespace: web", &format!("namespace: {}", bench.namespace.name()));
        let objects = text.split("\n---\n").map(|text| serde_yaml::from_str(text).unwrap());
        Self { file, objects: objects.collect(), account }
    }

    /// Makes the account, applies the recipe, and logs in.
    fn grant(&self, bench: &Bench<'_>) -> Kubectl {
        let kubectl = bench.namespace.kubectl();
        for namespace in ["cert-manager", "kubectl-acme"] {
            kubectl.try_run(&["create", "namespace", namespace]).ok();
        }
        kubectl.try_run(&["create", "serviceaccount", self.account]).ok();
        for object in &self.objects {
            bench.everywhere().apply(&object.to_string());
        }
        bench.namespace.log_in(self.account)
    }

    /// Every rule that is asked for, by its object and its place there.
    fn rules(&self) -> Vec<(usize, usize)> {
        let rules = self.objects.iter().enumerate().flat_map(|(object, value)| {
            let rules = value["rules"].as_array().map_or(0, Vec::len);
            (0..rules).map(move |rule| (object, rule))
        });
        let is_asked = |(object, rule): &(usize, usize)| {
            let rule = &self.objects[*object]["rules"][*rule];
            let words = format!("{} {}", words(rule, "resources"), words(rule, "verbs"));
            !UNASKED.iter().any(|unasked| words.contains(unasked))
        };
        rules.filter(is_asked).collect()
    }
}

fn words(rule: &Value, field: &str) -> String {
    let words = rule[field].as_array().unwrap().iter().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(" ")
}

/// Waits until the API server has heard of a rule, or of its end: a Role changes as a whole.
fn settle(account: &Kubectl, object: &Value, rule: &Value, expected: &str) {
    let group = rule["apiGroups"][0].as_str().unwrap();
    let resource = rule["resources"][0].as_str().unwrap();
    let (plural, status) = resource.split_once('/').unwrap_or((resource, ""));
    let name = rule["resourceNames"][0].as_str().map_or(String::new(), |name| format!("/{name}"));
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let what = format!("{plural}{group}{name}");
    let status = format!("--subresource={status}");
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let verb = rule["verbs"][0].as_str().unwrap();
    let question = ["auth", "can-i", verb, &what, &status, "--namespace", namespace];
    eventually(&format!("{question:?} {expected}"), || {
        let answer = account.try_run(&question).unwrap_or_else(|no| format!("no: {no}"));
        answer.lines().any(|line| line.starts_with(expected)).then_some(())
    });
}

/// Takes each rule of a recipe away in turn: the command names what is missing, and has done nothing.
fn name_what_is_missing(bench: &Bench<'_>, recipe: &Recipe, account: &Kubectl, command: &[&str]) {
    let kubectl = bench.everywhere();
    let before = bench.names(TRACES);
    let mut asked = 0;
    for (object, rule) in recipe.rules() {
        let mut less = recipe.objects[object].clone();
        let taken = less["rules"].as_array_mut().unwrap().remove(rule);
        kubectl.apply(&less.to_string());
        settle(account, &less, &taken, "no");
        let said = check(&bench.run(account, command), 8);
        assert!(
            said.contains("error: permissions are missing, and nothing was done"),
            "{taken}: {said}"
        );
        for word in words(&taken, "resources").split(' ').chain(words(&taken, "verbs").split(' ')) {
            assert!(said.contains(word.split('/').next().unwrap()), "{word} of {taken}: {said}");
        }
        assert!(said.contains("hint: kubectl create "), "{said}");
        let file = format!("hint: deploy/rbac/{} has all that is needed", recipe.file);
        assert!(said.contains(&file), "without {taken}: {said}");
        assert_eq!(bench.names(TRACES), before, "without {taken}");
        kubectl.apply(&recipe.objects[object].to_string());
        settle(account, &less, &taken, "yes");
        asked += 1;
    }
    assert!(asked > 4, "only {asked} rules are asked for");
    assert_eq!((bench.pebble.orders(), bench.pebble.accounts()), (0, 0), "the CA was asked");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_role_of_one_namespace_is_enough_to_work_alone() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "alone");
    let recipe = Recipe::read("one-shot.yaml", &bench, "one-shot");
    let account = recipe.grant(&bench);
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    name_what_is_missing(&bench, &recipe, &account, &["order", "-f", "web.yaml"]);
    let said = bench.order(&account, &[], 0);
    assert!(said.contains("driver: kubectl-acme\n"), "{said}");
    assert_eq!(bench.pebble.orders(), 1);
    assert!(bench.order(&account, &[], 0).contains("nothing is due"));
    check(&bench.run(&account, &["certificate", "renew", "web"]), 0);
    assert_eq!(bench.pebble.orders(), 2);
    let orders = bench.namespace.kubectl().items("orders");
    let order = orders[0]["metadata"]["name"].as_str().unwrap();
    check(&bench.run(&account, &["order", "delete", order]), 0);
    look(&arena, &bench);
}

/// Looks at what was issued, with a Role that permits just that.
fn look(arena: &Arena, bench: &Bench<'_>) {
    let recipe = Recipe::read("look.yaml", bench, "looker");
    let looker = recipe.grant(bench);
    settle(&looker, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    for words in [
        &["get", "certificates,orders,issuers", "-o", "wide"][..],
        &["get", "certificate", "web", "-o", "yaml"],
        &["describe", "certificate", "web"],
        &["timeline", "web"],
        &["challenge", "get"],
    ] {
        let output = bench.run(&looker, words);
        check(&output, 0);
        let nothing = words[0] == "challenge";
        assert_eq!(output.stdout.is_empty(), nothing, "{words:?}");
    }
    let said = check(&bench.run(&looker, &["schedule"]), 0);
    assert!(said.contains("no permission to read other namespaces"), "{said}");
    for words in
        [&["get", "certificate", "none"], &["describe", "order", "none"], &["timeline", "none", ""]]
    {
        let words: Vec<_> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        let said = check(&bench.run(&looker, &words), 1);
        assert!(said.contains("\"none\" not found"), "{said}");
    }
    let mut watching = bench.start(&looker, &["watch"]);
    watching.says("clusterissuers are not watched: no permission to");
    let others = arena.kubectl();
    others.run(&["annotate", "certificate", "web", "--namespace", bench.namespace.name(), "a=b"]);
    let delete = ["delete", "certificate", "web", "--namespace", bench.namespace.name()];
    others.run(&delete);
    watching.says("certificate/web");
    assert!(
        check(&bench.run(&looker, &["get", "all"]), 8)
            .contains("no permission to list clusterissuers")
    );
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_role_to_order_is_enough_where_cert_manager_works() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "order");
    let recipe = Recipe::read("order.yaml", &bench, "orderer");
    let account = recipe.grant(&bench);
    let peer = arena.peer(&["--leave-out=clusterissuers"]);
    peer.wait_until_at_work();
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    name_what_is_missing(&bench, &recipe, &account, &["order", "-f", "web.yaml"]);
    let said = bench.order(&account, &["--out=out"], 0);
    assert!(said.contains("driver: cert-manager ("), "{said}");
    bench.only_others_order(1);
    peer.stop();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn whoever_may_not_drive_says_so_when_its_turn_comes() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "turn");
    let recipe = Recipe::read("order.yaml", &bench, "orderer");
    let account = recipe.grant(&bench);
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    let peer = arena.peer(&[
        "--leave-out=challenges",
        "--leader-election-lease-duration=10s",
        "--leader-election-renew-deadline=6s",
        "--leader-election-retry-period=2s",
    ]);
    peer.wait_until_at_work();
    let words = ["order", "-f", "web.yaml", "--timeout=5m", "--probe-image=registry.example/ours"];
    let mut order = bench.start(&account, &words);
    order.says("--probe-image is not used: the self-checks are those of cert-manager (");
    eventually("the challenge", || {
        (bench.namespace.kubectl().items("challenges").len() == 1).then_some(())
    });
    peer.kill();
    order.says("cannot take over: permissions are missing");
    order.says("pods");
    bench.only_others_order(0);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn deleting_an_order_asks_for_what_its_challenges_have_put_up() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "deleted");
    let recipe = Recipe::read("one-shot.yaml", &bench, "one-shot");
    let account = recipe.grant(&bench);
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    let kubectl = bench.namespace.kubectl();
    let order = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": {"name": "one"},
        "spec": {"request": "eA==", "issuerRef": {"name": "pebble"}, "dnsNames": ["www.example.com"]},
    });
    kubectl.apply(&order.to_string());
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
        "metadata": {"name": "one", "finalizers": ["acme.cert-manager.io/finalizer"], "ownerReferences": [{
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "name": "one", "controller": true,
            "blockOwnerDeletion": true, "uid": kubectl.object("order/one")["metadata"]["uid"],
        }]},
        "spec": {
            "url": "https://ca.example/chall/1", "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com", "type": "HTTP-01", "token": "token", "key": "token.thumbprint",
            "wildcard": false, "issuerRef": {"name": "pebble"},
            "solver": {"http01": {"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}}},
        },
    });
    kubectl.apply(&challenge.to_string());
    let said = check(&bench.run(&account, &["order", "delete", "one"]), 8);
    assert!(said.contains("httproutes.gateway.networking.k8s.io"), "{said}");
    assert!(!said.contains("ingresses"), "{said}");
    assert!(!said.contains("has all that is needed"), "no file has routes: {said}");
    kubectl.object("order/one");
    let routes = json!({
        "apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"],
        "verbs": ["list", "create", "update", "delete"],
    });
    let mut more = recipe.objects[0].clone();
    more["rules"].as_array_mut().unwrap().push(routes.clone());
    kubectl.apply(&more.to_string());
    settle(&account, &more, &routes, "yes");
    check(&bench.run(&account, &["order", "delete", "one"]), 0);
    eventually("the end of the challenge", || kubectl.items("challenges").is_empty().then_some(()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_cluster_issuer_is_worked_with_by_its_name() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "named");
    let issuer = bench.issuer("ClusterIssuer", "letsencrypt", &json!({"ingress": {}}));
    bench.namespace.kubectl().apply(&issuer.to_string());
    bench.write("web.yaml", &[bench.certificate("web", "ClusterIssuer", "letsencrypt")]);
    let alone = Recipe::read("one-shot.yaml", &bench, "one-shot");
    let account = alone.grant(&bench);
    settle(&account, &alone.objects[0], &alone.objects[0]["rules"][0], "yes");
    let said = bench.order(&account, &[], 8);
    assert!(
        said.contains("get, list, watch clusterissuers.cert-manager.io \"letsencrypt\""),
        "{said}"
    );
    let file = "hint: deploy/rbac/one-shot-clusterissuer.yaml has all that is needed";
    assert!(said.contains(file), "{said}");
    let more = "hint: the needs of the account of ClusterIssuer letsencrypt are unknown until that issuer may be read: deploy/rbac/one-shot-clusterissuer.yaml";
    assert!(said.contains(more), "{said}");
    // What its solvers need is named at once, as far as can be told.
    let mut less = alone.objects[0].clone();
    let rules = less["rules"].as_array_mut().unwrap();
    let pods = rules.iter().position(|rule| words(rule, "resources").contains("pods"));
    let taken = rules.remove(pods.unwrap());
    bench.everywhere().apply(&less.to_string());
    settle(&account, &less, &taken, "no");
    let said = bench.order(&account, &[], 8);
    assert!(said.contains("pods") && said.contains("clusterissuers"), "{said}");
    bench.everywhere().apply(&alone.objects[0].to_string());
    settle(&account, &less, &taken, "yes");
    let named = Recipe::read("one-shot-clusterissuer.yaml", &bench, "one-shot");
    for object in &named.objects[..2] {
        bench.everywhere().apply(&object.to_string());
    }
    settle(&account, &named.objects[0], &named.objects[0]["rules"][0], "yes");
    let said = bench.order(&account, &[], 8);
    for more in [
        "get secrets \"letsencrypt-account\"",
        "create secrets",
        "in namespace default: create, patch events",
    ] {
        assert!(said.contains(more), "{more}: {said}");
    }
    named.grant(&bench);
    settle(&account, &named.objects[0], &named.objects[0]["rules"][0], "yes");
    settle(&account, &named.objects[4], &named.objects[4]["rules"][0], "yes");

    // Whoever may not even ask what is permitted works all the same.
    let kubectl = arena.kubectl();
    let asking = kubectl.run(&["get", "clusterrolebinding", "system:basic-user", "--output=json"]);
    kubectl.run(&["delete", "clusterrolebinding", "system:basic-user"]);
    eventually("the end of questions", || {
        account.try_run(&["auth", "can-i", "get", "pods"]).err()?.contains("orbidden").then_some(())
    });
    let said = bench.order(&account, &[], 0);
    let mut asking: Value = serde_json::from_str(&asking).unwrap();
    asking["metadata"].as_object_mut().unwrap().retain(|field, _| field == "name");
    kubectl.apply(&asking.to_string());
    assert!(said.contains("driver: kubectl-acme\n"), "{said}");
    assert_eq!(bench.pebble.orders(), 1);
    let secret = ["get", "secret", "letsencrypt-account", "--namespace=cert-manager"];
    kubectl.run(&secret);
    kubectl.run(&["delete", "clusterissuer", "letsencrypt"]);
    kubectl.run(&["delete", "secret", "letsencrypt-account", "--namespace=cert-manager"]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn two_namespaces_need_no_more_than_a_role_in_each() {
    let arena = Arena::enter();
    let (bench, other) = (Bench::new(&arena, "first"), arena.namespace("second"));
    let mut manifests = Vec::new();
    for namespace in [bench.namespace.name(), other.name()] {
        let issuer = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
        for mut manifest in [issuer, bench.certificate("web", "Issuer", "pebble")] {
            manifest["metadata"]["namespace"] = namespace.into();
            if let Some(names) = manifest.pointer_mut("/spec/dnsNames") {
                *names = json!([format!("web.{namespace}.example.com")]);
            }
            manifests.push(manifest);
        }
    }
    bench.write("both.yaml", &manifests);
    let recipe = Recipe::read("one-shot.yaml", &bench, "one-shot");
    let account = recipe.grant(&bench);
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    let order = |expected| {
        check(
            &bench.run_anywhere(&account, &["order", "-f", "both.yaml", "--timeout=3m"]),
            expected,
        )
    };
    let said = order(8);
    assert!(said.contains(&format!("in namespace {}: ", other.name())), "{said}");
    assert!(!said.contains(&format!("in namespace {}: ", bench.namespace.name())), "{said}");
    for object in &recipe.objects[..2] {
        let mut object = object.clone();
        object["metadata"]["namespace"] = other.name().into();
        other.kubectl().apply(&object.to_string());
    }
    let mut role = recipe.objects[0].clone();
    role["metadata"]["namespace"] = other.name().into();
    settle(&account, &role, &role["rules"][0], "yes");
    order(0);
    assert_eq!(bench.pebble.orders(), 2);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn run_works_with_its_role_and_heals_when_a_permission_comes() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "run");
    let mut recipe = Recipe::read("run.yaml", &bench, "kubectl-acme");
    let name = bench.namespace.name().to_owned();
    for object in &mut recipe.objects {
        if let Some(subjects) = object.get_mut("subjects") {
            subjects[0]["namespace"] = name.as_str().into();
        }
    }
    let whole = recipe.objects[0].clone();
    let rules = recipe.objects[0]["rules"].as_array_mut().unwrap();
    rules.retain(|rule| !words(rule, "resources").contains("httproutes"));
    let account = recipe.grant(&bench);
    settle(&account, &recipe.objects[0], &recipe.objects[0]["rules"][0], "yes");
    let kubectl = bench.namespace.kubectl();
    let mut running = bench.start(&account, &["run"]);
    running.says("driver: kubectl-acme");

    let foreign = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "own"},
        "spec": {"selfSigned": {}},
    });
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {"gatewayClassName": "bed", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    });
    let through = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
    let pebble = bench.issuer("Issuer", "pebble", &through);
    let ours = bench.certificate("web", "Issuer", "pebble");
    let theirs = bench.certificate("other", "Issuer", "own");
    for object in [gateway, foreign, pebble, theirs, ours] {
        kubectl.apply(&object.to_string());
    }
    eventually("the challenge", || {
        let routes = kubectl.items("services").len();
        (routes == 1).then_some(())
    });
    bench.everywhere().apply(&whole.to_string());
    kubectl.wait_for("certificate/web", "Ready");
    assert_eq!(bench.pebble.orders(), 1);
    let request = &kubectl.object("certificaterequest/other-1");
    assert_eq!(request["status"]["certificate"], Value::Null, "it is left to cert-manager");
    assert!(!running.log().contains("error"), "{}", running.log());
    drop(running);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_is_not_acme_is_left_to_cert_manager_at_once() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "left");
    let own = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "own"},
        "spec": {"ca": {"secretName": "ca"}},
    });
    let acme = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
    let both =
        [bench.certificate("web", "Issuer", "pebble"), bench.certificate("other", "Issuer", "own")];
    bench.write("web.yaml", &[&[own, acme], &both[..]].concat());
    let kubectl = bench.namespace.kubectl();
    let said = bench.order(&kubectl, &[], 12);
    let expected = format!(
        "Certificate {0}/other is left to cert-manager: Issuer {0}/own is of type ca",
        bench.namespace.name()
    );
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("hint: the object is in the cluster as it was given"), "{said}");
    kubectl.wait_for("certificate/web", "Ready");
    assert!(kubectl.object("certificate/other").get("status").is_none(), "it is not touched");
    assert_eq!(kubectl.items("certificaterequests").len(), 1);
}
