//! The kubectl commands to compare, in order: later ones depend on the objects of earlier ones.

/// Extent of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Exit code, standard output and standard error, masked.
    Whole,
    /// The exit code only, with the reason for which the output differs.
    ExitCode(&'static str),
}

/// A shell command, run in the folder of the manifests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) command: &'static str,
    pub(super) compared: Compared,
}

const fn same(command: &'static str) -> Step {
    Step { command, compared: Compared::Whole }
}

const fn exits_alike(command: &'static str, why: &'static str) -> Step {
    Step { command, compared: Compared::ExitCode(why) }
}

const OTHER_KINDS: &str = "a real server has more kinds, and the simulator's operator has its own";

/// All commands.
pub(super) const STEPS: &[Step] = &[
    // The server itself.
    same("kubectl version --output=yaml | grep -A12 serverVersion | grep -E 'major|minor|gitVersion'"),
    exits_alike("kubectl cluster-info", "a real one has no DNS service here, and says so in more words"),
    same("kubectl get --raw /readyz"),
    same("kubectl get --raw /livez"),
    exits_alike("kubectl get --raw '/readyz?verbose'", "each has checks of its own"),
    exits_alike("kubectl api-versions", OTHER_KINDS),
    exits_alike("kubectl api-resources", OTHER_KINDS),
    exits_alike("kubectl api-resources --api-group=apps", OTHER_KINDS),
    same("kubectl api-resources --api-group=rbac.authorization.k8s.io"),
    same("kubectl config view --minify -o jsonpath='{.clusters[*].cluster.server}' | grep -c https"),
    // Bodies in protobuf.
    same("kubectl create namespace t"),
    same("kubectl create namespace t"),
    same("kubectl config set-context --current --namespace=t >/dev/null"),
    same("kubectl create configmap c --from-literal=a=b"),
    same("kubectl create configmap c --from-literal=a=b"),
    same("kubectl create secret generic s --from-literal=a=b"),
    same("kubectl create secret docker-registry d --docker-server=r.example --docker-username=u --docker-password=p"),
    same("kubectl create serviceaccount x"),
    exits_alike("kubectl create token x", "tokens are drawn"),
    same("kubectl create role r --verb=get,list --resource=configmaps"),
    same("kubectl create rolebinding rb --role=r --serviceaccount=t:x"),
    same("kubectl create clusterrole compare-cr --verb=get --resource=secrets"),
    same("kubectl create clusterrolebinding compare-crb --clusterrole=compare-cr --serviceaccount=t:x"),
    same("kubectl get configmap c -o yaml"),
    same("kubectl get secret s -o jsonpath='{.data.a}'"),
    same("kubectl get role r -o yaml"),
    same("kubectl describe rolebinding rb"),
    // CustomResourceDefinitions, and what is derived from them.
    same("kubectl apply -f crd.yaml"),
    same("kubectl wait --for=condition=Established crd/widgets.compare.example --timeout=10s"),
    same("kubectl get crd widgets.compare.example"),
    same("kubectl api-resources --api-group=compare.example -o wide"),
    // A real server publishes the schema a moment later.
    same("for i in 1 2 3 4 5 6 7 8 9; do kubectl explain widget >/dev/null 2>&1 && break; sleep 1; done"),
    same("kubectl explain widget"),
    same("kubectl explain widget.spec --recursive"),
    same("kubectl explain wd.spec.parts"),
    same("kubectl explain widget.metadata.name"),
    same("kubectl explain nosuch"),
    same("kubectl explain widget.spec.nosuch"),
    // Apply, in all its forms.
    same("kubectl apply -f widgets.yaml"),
    same("kubectl apply -f widgets.yaml"),
    same("kubectl diff -f changed.yaml | grep -E '^[+-] '"),
    same("kubectl diff --server-side -f changed.yaml | grep -E '^[+-] ' | grep colour"),
    same("kubectl apply -f changed.yaml --dry-run=server"),
    same("kubectl apply -f changed.yaml --dry-run=client -o name"),
    same("kubectl apply -f changed.yaml"),
    same("kubectl apply view-last-applied widget a"),
    same("kubectl apply --server-side -f applied.yaml"),
    same("kubectl apply --server-side --field-manager=another -f applied-again.yaml"),
    same("kubectl apply --server-side --field-manager=another --force-conflicts -f applied-again.yaml"),
    same("kubectl apply -f bad-schema.yaml"),
    same("kubectl apply -f unknown-field.yaml"),
    same("kubectl apply -f unknown-field.yaml --validate=warn"),
    same("kubectl apply -f unknown-field.yaml --validate=false"),
    same("kubectl apply -f dup-key.yaml"),
    same("kubectl apply -k kustomize"),
    same("kubectl apply -f config.yaml"),
    same("kubectl apply -f config.yaml"),
    same("kubectl apply --prune -l set=one -f config.yaml --prune-allowlist=core/v1/ConfigMap"),
    same("kubectl replace -f config.yaml"),
    same("kubectl replace --force -f config.yaml"),
    same("kubectl create -f config.yaml"),
    // Tables and lists.
    same("kubectl get widgets"),
    same("kubectl get wd -A -o wide"),
    same("kubectl get widget a -o yaml"),
    same("kubectl get widget a -o json"),
    same("kubectl get widgets -o name"),
    same("kubectl get widgets -o jsonpath='{.items[*].spec.colour}'"),
    same("kubectl get widgets -o custom-columns=NAME:.metadata.name,PARTS:.spec.parts[*].name"),
    same("kubectl get widgets --show-labels -L app"),
    same("kubectl get widgets -l app=x"),
    same("kubectl get widgets -l 'app in (x,z),app!=x'"),
    same("kubectl get widgets --field-selector metadata.name=b"),
    same("kubectl get widgets --sort-by=.spec.replicas"),
    same("kubectl get widget nosuch"),
    same("kubectl get widget nosuch --ignore-not-found"),
    same("kubectl get widgets --chunk-size=1"),
    same("kubectl get nosuchkind"),
    same("timeout 2 kubectl get widget a --watch; true"),
    same("timeout 2 kubectl get widgets --watch --output-watch-events; true"),
    same("kubectl get widgets,secrets"),
    same("kubectl get configmaps c settings"),
    same("kubectl get all"),
    same("kubectl get roles,rolebindings"),
    same("kubectl get serviceaccounts x"),
    same("kubectl describe widget a"),
    same("kubectl describe secret s"),
    same("kubectl describe configmap settings"),
    same("kubectl describe namespace t"),
    // Imperative changes.
    same("kubectl label widget a x=y"),
    same("kubectl label widget a x=z"),
    same("kubectl label widget a x=z --overwrite"),
    same("kubectl label widget a x-"),
    same("kubectl annotate widget a note=one"),
    same("kubectl patch widget a --type=merge -p '{\"spec\":{\"replicas\":2}}'"),
    same("kubectl patch widget a --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":4}]'"),
    same("kubectl patch widget a --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":9}]'"),
    same("kubectl patch configmap settings --type=strategic -p '{\"data\":{\"speed\":\"slow\"}}'"),
    same("kubectl patch widget a --type=merge -p '{\"spec\":{\"maker\":\"bob\"}}'"),
    same("kubectl patch widget a --type=merge -p '{\"spec\":{\"replicas\":12}}'"),
    same(
        "kubectl patch widget a --subresource=status --type=merge -p '{\"status\":{\"replicas\":1,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'",
    ),
    same("kubectl get widget a --subresource=status -o jsonpath='{.status}'"),
    same("kubectl scale widget a --replicas=5"),
    same("kubectl get widget a -o jsonpath='{.spec.replicas}'"),
    same("KUBE_EDITOR=\"sed -i 's/replicas: 5/replicas: 6/'\" kubectl edit widget a"),
    same("KUBE_EDITOR=true kubectl edit widget a"),
    // Waits.
    same("kubectl wait widget/a --for=condition=Ready --timeout=5s"),
    same("kubectl wait widget/b --for=condition=Ready --timeout=1s"),
    same("kubectl wait widget/a --for=jsonpath='{.spec.replicas}'=6 --timeout=5s"),
    same("kubectl wait widget/a --for=create --timeout=5s"),
    // Events.
    same(
        "kubectl create -f - <<E\napiVersion: v1\nkind: Event\nmetadata: {name: e1}\ninvolvedObject: {apiVersion: compare.example/v1, kind: Widget, name: a, namespace: t}\nreason: Painted\nmessage: it is green now\ntype: Normal\nsource: {component: painter}\nfirstTimestamp: 2026-01-01T00:00:00Z\nlastTimestamp: 2026-01-01T00:00:00Z\ncount: 3\nE",
    ),
    same("kubectl get events"),
    same("kubectl get events -o wide"),
    same("kubectl get events.v1.events.k8s.io e1 -o jsonpath='{.note} {.regarding.name} {.deprecatedCount}'"),
    same("kubectl events --for widget/a"),
    same("kubectl get events --field-selector involvedObject.name=a,reason=Painted -o name"),
    same("kubectl get events --field-selector involvedObject.nosuch=a"),
    same("kubectl describe widget b"),
    // Authorization.
    same("kubectl auth can-i create widgets"),
    same("kubectl auth reconcile -f rbac.yaml"),
    same("kubectl auth can-i create secrets --as=nobody"),
    same("kubectl auth can-i list configmaps --as=system:serviceaccount:t:x"),
    same("kubectl get configmaps c --as=system:serviceaccount:t:x"),
    same("kubectl delete configmap c --as=system:serviceaccount:t:x"),
    exits_alike("kubectl auth can-i --list", "a real server knows more paths that are no resources"),
    exits_alike("kubectl auth whoami", "each has names of its own"),
    // Deletion.
    same("kubectl patch widget b --type=merge -p '{\"metadata\":{\"finalizers\":[\"compare.example/kept\"]}}'"),
    same("kubectl delete widget b --wait=false"),
    same("kubectl get widget b -o jsonpath='{.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}'"),
    exits_alike("kubectl delete widget b --timeout=1s", "it is a race who ends the watch, and one of the two warns"),
    same("kubectl patch widget b --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'"),
    same("kubectl wait widget/b --for=delete --timeout=5s"),
    same("kubectl delete widget nosuch"),
    same("kubectl delete widgets -l app=x"),
    same("kubectl delete widgets --all"),
    same("kubectl delete configmap c --cascade=orphan"),
    same("kubectl delete crd widgets.compare.example"),
    same("kubectl get widgets"),
    same("kubectl delete namespace t --timeout=30s"),
    same("kubectl get namespace t"),
    same("kubectl delete clusterrole,clusterrolebinding compare-cr compare-crb --ignore-not-found"),
];
