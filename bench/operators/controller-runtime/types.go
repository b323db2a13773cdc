package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The group of websites, whose definition is in ../websites.yaml.
var group = schema.GroupVersion{Group: "example.org", Version: "v1"}

type WebsiteSpec struct {
	Title      string `json:"title"`
	SecretName string `json:"secretName,omitempty"`
	Backend    string `json:"backend,omitempty"`
}

type WebsiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Page               string             `json:"page,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

func (it *Website) DeepCopyInto(out *Website) {
	*out = *it
	it.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = nil
	for i := range it.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *it.Status.Conditions[i].DeepCopy())
	}
}

func (it *Website) DeepCopyObject() runtime.Object {
	out := new(Website)
	it.DeepCopyInto(out)
	return out
}

func (it *WebsiteList) DeepCopyObject() runtime.Object {
	out := &WebsiteList{TypeMeta: it.TypeMeta, Items: make([]Website, len(it.Items))}
	it.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range it.Items {
		it.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// addToScheme has clients know websites.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(group, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, group)
}
