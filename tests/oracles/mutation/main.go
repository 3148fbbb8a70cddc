// Program mutation answers with the real Gatekeeper what its mutators make of an object, and what
// its ExpansionTemplates make of one, one JSON line each way. The tests compare the answers with
// those of our own code.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sort"
	"sync"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	externaldata "github.com/open-policy-agent/frameworks/constraint/pkg/apis/externaldata/unversioned"
	providers "github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/open-policy-agent/gatekeeper/v3/apis"
	expansions "github.com/open-policy-agent/gatekeeper/v3/apis/expansion/unversioned"
	mutations "github.com/open-policy-agent/gatekeeper/v3/apis/mutations/unversioned"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/expansion"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators/assign"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators/assignimage"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators/assignmeta"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators/modifyset"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/path/parser"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/schema"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/types"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

type question struct {
	Location        *string                       `json:"location"` // parse this, and no more
	Mutators        []json.RawMessage             `json:"mutators"`
	Remove          []string                      `json:"remove"`
	Templates       []json.RawMessage             `json:"templates"`
	RemoveTemplates []string                      `json:"removeTemplates"`
	Object          json.RawMessage               `json:"object"`
	Namespace       json.RawMessage               `json:"namespace"`
	Operation       string                        `json:"operation"`
	Username        string                        `json:"username"`
	Source          string                        `json:"source"`
	Annotations     bool                          `json:"annotations"`
	Providers       map[string]providers.Response `json:"providers"`
	Expand          bool                          `json:"expand"`
}

type resultant struct {
	Template string `json:"template"`
	Action   string `json:"action"`
	Object   any    `json:"object"`
}

type node struct {
	Field *string `json:"field,omitempty"`
	Key   *string `json:"key,omitempty"`
	Value any     `json:"value,omitempty"`
	Glob  bool    `json:"glob,omitempty"`
}

type answer struct {
	Nodes      []node              `json:"nodes"`
	Canonical  string              `json:"canonical"`
	Load       []string            `json:"load"`
	Conflicts  [][]string          `json:"conflicts"` // of each mutator when it was loaded
	Cyclic     []string            `json:"cyclic"`
	After      any                 `json:"after"`
	Mutated    bool                `json:"mutated"`
	Iterations int                 `json:"iterations"`
	Asked      map[string][]string `json:"asked"`
	Resultants []resultant         `json:"resultants"`
	Error      string              `json:"error"`
}

var (
	scheme  = runtime.NewScheme()
	decoder runtime.Decoder
	bundle  string
)

func main() {
	log.SetLogger(logr.Discard())
	if err := apis.AddToScheme(scheme); err != nil {
		panic(err)
	}
	decoder = serializer.NewCodecFactory(scheme).UniversalDeserializer()
	bundle = selfSigned()
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		if err := encoder.Encode(reply(line)); err != nil {
			panic(err)
		}
	}
}

func reply(line []byte) (found answer) {
	defer func() {
		if p := recover(); p != nil {
			found.Error = fmt.Sprintf("panic: %v", p)
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		found.Error = "question: " + err.Error()
		return
	}
	if asked.Location != nil {
		parse(*asked.Location, &found)
		return
	}
	run(&asked, &found)
	return
}

func parse(text string, found *answer) {
	path, err := parser.Parse(text)
	if err != nil {
		found.Error = err.Error()
		return
	}
	found.Canonical = path.String()
	for _, item := range path.Nodes {
		switch one := item.(type) {
		case *parser.Object:
			found.Nodes = append(found.Nodes, node{Field: &one.Reference})
		case *parser.List:
			found.Nodes = append(found.Nodes, node{Key: &one.KeyField, Value: one.KeyValue, Glob: one.Glob})
		}
	}
}

type iterations struct{ count int }

func (i *iterations) ReportIterationConvergence(_ mutation.SystemConvergenceStatus, count int) error {
	i.count = count
	return nil
}

func run(asked *question, found *answer) {
	counted := &iterations{}
	found.Asked = map[string][]string{}
	*mutation.MutationAnnotationsEnabled = asked.Annotations
	system := mutation.NewSystem(mutation.SystemOpts{
		Reporter:                          counted,
		NewUUID:                           func() uuid.UUID { return uuid.UUID{} },
		ProviderCache:                     cache(asked.Providers),
		ClientCertWatcher:                 &certwatcher.CertWatcher{},
		SendRequestToExternalDataProvider: send(asked.Providers, found.Asked),
	})
	for _, document := range asked.Mutators {
		load(system, document, found)
	}
	for _, name := range asked.Remove {
		for _, kind := range []string{"Assign", "AssignImage", "AssignMetadata", "ModifySet"} {
			id := types.ID{Group: "mutations.gatekeeper.sh", Kind: kind, Name: name}
			if err := system.Remove(id); err != nil {
				panic(err)
			}
		}
	}
	expander := expansion.NewSystem(system)
	known := map[string]*expansions.ExpansionTemplate{}
	for _, document := range asked.Templates {
		template := &expansions.ExpansionTemplate{}
		err := decode(document, template)
		if err == nil {
			err = expander.UpsertTemplate(template)
		}
		found.Load = append(found.Load, text(err))
		known[template.Name] = template
	}
	for _, name := range asked.RemoveTemplates {
		if template, ok := known[name]; ok {
			if err := expander.RemoveTemplate(template); err != nil {
				panic(err)
			}
		}
	}
	for id := range expander.GetConflicts() {
		found.Cyclic = append(found.Cyclic, string(id))
	}
	sort.Strings(found.Cyclic)
	if asked.Object == nil {
		return
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asked.Object); err != nil {
		found.Error = "object: " + err.Error()
		return
	}
	mutable := &types.Mutable{
		Object:    object,
		Username:  asked.Username,
		Source:    types.SourceType(asked.Source),
		Operation: admissionv1.Operation(asked.Operation),
	}
	if len(asked.Namespace) != 0 && string(asked.Namespace) != "null" {
		mutable.Namespace = &corev1.Namespace{}
		if err := json.Unmarshal(asked.Namespace, mutable.Namespace); err != nil {
			found.Error = "namespace: " + err.Error()
			return
		}
	}
	if asked.Expand {
		made, err := expander.Expand(mutable)
		found.Error = text(err)
		for _, one := range made {
			if err == nil {
				found.Resultants = append(found.Resultants, resultant{one.TemplateName, one.EnforcementAction, one.Obj.Object})
			}
		}
		return
	}
	own, lent := object.GetNamespace(), mutable.Namespace != nil && object.GroupVersionKind().Kind != "Namespace"
	if lent {
		object.SetNamespace(mutable.Namespace.Name)
	}
	mutated, err := system.Mutate(context.Background(), mutable)
	found.Mutated, found.Iterations, found.Error = mutated, counted.count, text(err)
	if lent {
		object.SetNamespace(own)
	}
	if err == nil {
		found.After = object.Object
	}
}

func load(system *mutation.System, document json.RawMessage, found *answer) {
	mutator, err := read(document)
	if err == nil {
		err = system.Upsert(mutator)
	}
	var names []string
	conflict := schema.ErrConflictingSchema{}
	if errors.As(err, &conflict) {
		for id := range system.GetConflicts(mutator.ID()) {
			names = append(names, id.Kind+"/"+id.Name)
		}
		sort.Strings(names)
	}
	found.Load = append(found.Load, text(err))
	found.Conflicts = append(found.Conflicts, names)
}

func read(document json.RawMessage) (types.Mutator, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "Assign":
		it := &mutations.Assign{}
		if err := decode(document, it); err != nil {
			return nil, err
		}
		return assign.MutatorForAssign(it)
	case "AssignImage":
		it := &mutations.AssignImage{}
		if err := decode(document, it); err != nil {
			return nil, err
		}
		return assignimage.MutatorForAssignImage(it)
	case "AssignMetadata":
		it := &mutations.AssignMetadata{}
		if err := decode(document, it); err != nil {
			return nil, err
		}
		return assignmeta.MutatorForAssignMetadata(it)
	case "ModifySet":
		it := &mutations.ModifySet{}
		if err := decode(document, it); err != nil {
			return nil, err
		}
		return modifyset.MutatorForModifySet(it)
	}
	return nil, fmt.Errorf("no such kind of mutators: %s", head.Kind)
}

func decode(document json.RawMessage, into any) error {
	versioned, _, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return scheme.Convert(versioned, into, nil)
}

func cache(given map[string]providers.Response) *providers.ProviderCache {
	known := providers.NewCache()
	for name := range given {
		provider := &externaldata.Provider{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       externaldata.ProviderSpec{URL: "https://provider", Timeout: 1, CABundle: bundle},
		}
		if err := known.Upsert(provider); err != nil {
			panic(err)
		}
	}
	return known
}

func send(given map[string]providers.Response, asked map[string][]string) providers.SendRequestToProvider {
	var lock sync.Mutex // providers are asked beside each other
	return func(
		_ context.Context, provider *externaldata.Provider, keys []string, _ *tls.Certificate,
	) (*providers.ProviderResponse, int, error) {
		sort.Strings(keys)
		lock.Lock()
		asked[provider.Name] = keys
		lock.Unlock()
		return &providers.ProviderResponse{Response: given[provider.Name]}, 200, nil
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func selfSigned() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
