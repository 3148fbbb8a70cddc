package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// How often the garbage collector looks for new kinds. An instance of a new CRD is collected no
// sooner than this after the CRD; the real default of 30 s would make a test wait.
const discoveryPeriod = 5 * time.Second

// startControllers runs what a control plane's clients rely on: ownerReferences are collected,
// deleted namespaces are emptied, each namespace has its default service account.
func startControllers(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "testcluster-controllers"))
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	sharedMetadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})

	ignored := map[schema.GroupResource]struct{}{}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper, ignored,
		informerfactory.NewInformerFactory(shared, sharedMetadata), started)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(ctx, client, metadataClient,
		client.Discovery().ServerPreferredNamespacedResources, shared.Core().V1().Namespaces(),
		5*time.Minute, v1.FinalizerKubernetes)
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx),
		shared.Core().V1().ServiceAccounts(), shared.Core().V1().Namespaces(), client,
		serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	aggregation := clusterroleaggregation.NewClusterRoleAggregation(shared.Rbac().V1().ClusterRoles(), client.RbacV1())
	go aggregation.Run(ctx, 2)
	go collector.Run(ctx, 5, 30*time.Second)
	go collector.Sync(ctx, discovery.ServerResourcesInterface(client.Discovery()), discoveryPeriod)
	go namespaces.Run(ctx, 5)
	go accounts.Run(ctx, 1)
	shared.Start(ctx.Done())
	sharedMetadata.Start(ctx.Done())
	close(started)
	return nil
}
