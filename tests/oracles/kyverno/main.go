// Program kyverno answers with the real Kyverno what its policies say of admission requests, one JSON
// line each way. Tests compare the answers with those of what rules are converted to; the benchmark
// has it review in a loop, and takes its CPU time.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"github.com/go-logr/logr"
	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	kyvernov2 "github.com/kyverno/kyverno/api/kyverno/v2"
	celengine "github.com/kyverno/kyverno/pkg/cel/engine"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	vpolcompiler "github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/engine"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	"github.com/kyverno/kyverno/pkg/engine/factories"
	"github.com/kyverno/kyverno/pkg/engine/jmespath"
	"github.com/kyverno/kyverno/pkg/engine/policycontext"
	imageverifycache "github.com/kyverno/kyverno/pkg/image/verification/cache"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

type question struct {
	Policies   []json.RawMessage            `json:"policies"`
	Exceptions []*kyvernov2.PolicyException `json:"exceptions"` // of ClusterPolicies
	// Exceptions of policies in CEL.
	Excusing   []*policiesv1beta1.PolicyException `json:"excusing"`
	Requests   []json.RawMessage                  `json:"requests"`
	Namespaces map[string]map[string]string       `json:"namespaces"` // their labels
	Loops      int                                `json:"loops"`      // review so often; once where it is 0
}

type verdict struct {
	Request int    `json:"request"`
	Policy  string `json:"policy"`
	Rule    string `json:"rule"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Error    string    `json:"error,omitempty"`
	Verdicts []verdict `json:"verdicts"`
	CPU      float64   `json:"cpu"` // seconds of the process in the loops
}

type exceptions []*kyvernov2.PolicyException

func (known exceptions) Find(policy, rule string) ([]*kyvernov2.PolicyException, error) {
	var found []*kyvernov2.PolicyException
	for _, one := range known {
		if one.Contains(policy, rule) {
			found = append(found, one)
		}
	}
	return found, nil
}

type reviewer struct {
	configuration config.Configuration
	jp            jmespath.Interface
	rules         engineapi.Engine
	policies      []kyvernov1.PolicyInterface
	cel           vpolengine.Engine
	world         libs.Context
	labels        map[string]map[string]string
}

func main() {
	ctrllog.SetLogger(logr.Discard())
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		said, err := answered(line)
		if err != nil {
			said = answer{Error: err.Error()}
		}
		if err := out.Encode(said); err != nil {
			panic(err)
		}
	}
}

func answered(line []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{}, err
	}
	r, err := newReviewer(asked)
	if err != nil {
		return answer{}, err
	}
	requests := make([]admissionv1.AdmissionRequest, len(asked.Requests))
	for at, raw := range asked.Requests {
		if err := json.Unmarshal(raw, &requests[at]); err != nil {
			return answer{}, err
		}
	}
	var said answer
	for at := range requests {
		verdicts, err := r.review(requests[at])
		if err != nil {
			return answer{}, fmt.Errorf("request %d: %w", at, err)
		}
		for _, one := range verdicts {
			one.Request = at
			said.Verdicts = append(said.Verdicts, one)
		}
	}
	before := seconds()
	for range asked.Loops {
		for _, raw := range asked.Requests { // read each time, as a webhook reads it
			var request admissionv1.AdmissionRequest
			if err := json.Unmarshal(raw, &request); err != nil {
				return answer{}, err
			}
			if _, err := r.review(request); err != nil {
				return answer{}, err
			}
		}
	}
	said.CPU = seconds() - before
	return said, nil
}

func newReviewer(asked question) (*reviewer, error) {
	r := &reviewer{configuration: config.NewDefaultConfiguration(false), labels: asked.Namespaces}
	r.jp = jmespath.New(r.configuration)
	isCluster := false
	r.rules = engine.NewEngine(
		r.configuration, r.jp, nil, factories.DefaultRegistryClientFactory(nil, nil),
		imageverifycache.DisabledImageVerifyCache(), factories.DefaultContextLoaderFactory(nil),
		exceptions(asked.Exceptions), &isCluster,
	)
	var ofCEL []policiesv1beta1.ValidatingPolicyLike
	for _, raw := range asked.Policies {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(raw, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "ClusterPolicy":
			policy := &kyvernov1.ClusterPolicy{}
			if err := json.Unmarshal(raw, policy); err != nil {
				return nil, err
			}
			r.policies = append(r.policies, policy)
		case "ValidatingPolicy":
			policy := &policiesv1beta1.ValidatingPolicy{}
			if err := json.Unmarshal(raw, policy); err != nil {
				return nil, err
			}
			ofCEL = append(ofCEL, policy)
		default:
			return nil, fmt.Errorf("no policy is a %s", kind.Kind)
		}
	}
	if len(ofCEL) == 0 {
		return r, nil
	}
	provider, err := vpolengine.NewProvider(vpolcompiler.NewCompiler(), ofCEL, asked.Excusing)
	if err != nil {
		return nil, err
	}
	// Compiled once, as Kyverno's controller keeps what it compiled.
	compiled, err := provider.Fetch(context.Background())
	if err != nil {
		return nil, err
	}
	kept := vpolengine.ProviderFunc(func(context.Context) ([]vpolengine.Policy, error) {
		return compiled, nil
	})
	r.cel = vpolengine.NewEngine(kept, r.namespace, matching.NewMatcher())
	r.world = libs.NewFakeContextProvider()
	return r, nil
}

func (r *reviewer) namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: r.labels[name]}}
}

func (r *reviewer) review(request admissionv1.AdmissionRequest) ([]verdict, error) {
	var said []verdict
	kind := schema.GroupVersionKind(request.Kind)
	info := kyvernov2.RequestInfo{AdmissionUserInfo: request.UserInfo}
	for _, policy := range r.policies {
		asked, err := policycontext.NewPolicyContextFromAdmissionRequest(
			r.jp, request, info, kind, r.configuration,
		)
		if err != nil {
			return nil, err
		}
		asked = asked.WithPolicy(policy).WithNamespaceLabels(r.labels[request.Namespace])
		response := r.rules.Validate(context.Background(), asked)
		for _, rule := range response.PolicyResponse.Rules {
			said = append(said, verdict{
				Policy: policy.GetName(), Rule: rule.Name(), Status: string(rule.Status()), Message: rule.Message(),
			})
		}
	}
	if r.cel == nil {
		return said, nil
	}
	response, err := r.cel.Handle(
		context.Background(), celengine.RequestFromAdmission(r.world, request), nil,
	)
	if err != nil {
		return nil, err
	}
	for _, policy := range response.Policies {
		for _, rule := range policy.Rules {
			said = append(said, verdict{
				Policy: policy.Policy.GetName(), Status: string(rule.Status()), Message: rule.Message(),
			})
		}
	}
	return said, nil
}

// seconds is the CPU time of the process so far.
func seconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
