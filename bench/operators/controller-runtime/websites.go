package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Who it is to the API server, as a manager of fields and a reporter of events.
	owner     = "example.org/websites"
	finalizer = "example.org/registered"
	// The ConfigMap that has a line for each website.
	registry   = "websites"
	secretName = "spec.secretName"
)

var bucketClaims = schema.GroupVersionKind{Group: "broker.stowage.io", Version: "v1alpha1", Kind: "BucketClaim"}

// Websites reconciles them.
type Websites struct {
	client.Client
	// Past the cache.
	reader    client.Reader
	recorder  events.EventRecorder
	before    record.EventRecorder
	namespace string
}

func (r *Websites) setUp(ctx context.Context, manager ctrl.Manager) error {
	byName := func(object client.Object) []string { return []string{object.(*Website).Spec.SecretName} }
	if err := manager.GetFieldIndexer().IndexField(ctx, &Website{}, secretName, byName); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&Website{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(claim("", "")).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// ofSecret names the websites on whose page a Secret stands.
func (r *Websites) ofSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var websites WebsiteList
	err := r.List(ctx, &websites, client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretName: secret.GetName()})
	if err != nil {
		klog.ErrorS(err, "websites can't be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range websites.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&websites.Items[i])})
	}
	return requests
}

func (r *Websites) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var website Website
	if err := r.Get(ctx, request.NamespacedName, &website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !website.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, &website)
	}
	if controllerutil.AddFinalizer(&website, finalizer) {
		// The update wakes nobody: metadata has no generation.
		if err := r.Update(ctx, &website); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.register(ctx, &website, &website.Spec.Title); err != nil {
		return ctrl.Result{}, err
	}
	page, err := r.page(ctx, &website)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.apply(ctx, &website, page); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.tell(ctx, &website, page)
}

// remove takes away what no garbage collector does.
func (r *Websites) remove(ctx context.Context, website *Website) error {
	if !controllerutil.ContainsFinalizer(website, finalizer) {
		return nil
	}
	if err := r.register(ctx, website, nil); err != nil {
		return err
	}
	before := website.DeepCopyObject().(*Website)
	controllerutil.RemoveFinalizer(website, finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Patch(ctx, website, patch))
}

// register has the registry tell this title of a website, or nothing of it. Others write there, so conflicts are
// tried again.
func (r *Websites) register(ctx context.Context, website *Website, title *string) error {
	line := website.Namespace + "." + website.Name
	backoff := retry.DefaultBackoff
	backoff.Steps, backoff.Duration, backoff.Factor = 100, 5*time.Millisecond, 1
	conflicts := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(backoff, conflicts, func() error {
		var lines corev1.ConfigMap
		err := r.reader.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: registry}, &lines)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		told, isTold := lines.Data[line]
		if title == nil && !isTold || title != nil && isTold && told == *title {
			return nil
		}
		if lines.Data == nil {
			lines.Data = map[string]string{}
		}
		delete(lines.Data, line)
		if title != nil {
			lines.Data[line] = *title
		}
		if err != nil {
			lines.Namespace, lines.Name = r.namespace, registry
			return r.Create(ctx, &lines)
		}
		return r.Update(ctx, &lines)
	})
}

// page says what is to stand on the page.
func (r *Websites) page(ctx context.Context, website *Website) (string, error) {
	if website.Spec.SecretName == "" {
		return website.Spec.Title, nil
	}
	var secret corev1.Secret
	err := r.Get(ctx, types.NamespacedName{Namespace: website.Namespace, Name: website.Spec.SecretName}, &secret)
	if apierrors.IsNotFound(err) {
		// Its watch wakes the website.
		return website.Spec.Title, nil
	}
	return website.Spec.Title + ": " + string(secret.Data["motto"]), err
}

// apply makes what a website owns as it is to be.
func (r *Websites) apply(ctx context.Context, website *Website, page string) error {
	force := []client.ApplyOption{client.FieldOwner(owner), client.ForceOwnership}
	reference := applymetav1.OwnerReference().WithAPIVersion(group.String()).WithKind("Website").
		WithName(website.Name).WithUID(website.UID).WithController(true).WithBlockOwnerDeletion(true)
	config := applycorev1.ConfigMap(website.Name+"-page", website.Namespace).
		WithOwnerReferences(reference).WithData(map[string]string{"page": page})
	if err := r.Apply(ctx, config, force...); err != nil {
		return err
	}
	bucket := claim(website.Namespace, website.Name)
	if err := unstructured.SetNestedField(bucket.Object, website.Spec.Backend, "spec", "backendRef", "name"); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(website, bucket, r.Scheme()); err != nil {
		return err
	}
	return r.Apply(ctx, client.ApplyConfigurationFromUnstructured(bucket), force...)
}

// tell has status and events say how it stands.
func (r *Websites) tell(ctx context.Context, website *Website, page string) error {
	bucket := claim(website.Namespace, website.Name)
	err := r.Get(ctx, client.ObjectKeyFromObject(bucket), bucket)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "BucketPending",
		Message: "its bucket is not there yet", ObservedGeneration: website.Generation}
	if isReady(bucket) {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, "Published", "page and bucket are there"
	}
	isNews := website.Status.Page != page
	isSame := !meta.SetStatusCondition(&website.Status.Conditions, ready)
	if isSame && !isNews && website.Status.ObservedGeneration == website.Generation {
		return nil
	}
	website.Status.ObservedGeneration, website.Status.Page = website.Generation, page
	if err := r.Status().Update(ctx, website); err != nil {
		// The queue tries again, as after a conflict.
		return err
	}
	if isNews {
		// Of the website at any version, so that one that is told again is counted.
		website.ResourceVersion = ""
		r.recorder.Eventf(website, nil, corev1.EventTypeNormal, "Published", "Publish", "the page is published")
		r.before.Event(website, corev1.EventTypeNormal, "Updated", "the page is another")
	}
	return nil
}

func claim(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(bucketClaims)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func isReady(bucket *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(bucket.Object, "status", "conditions")
	for _, it := range conditions {
		if condition, ok := it.(map[string]any); ok && condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}
	return false
}
