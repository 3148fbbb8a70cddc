// The type checks of ValidatingAdmissionPolicies by kube-controller-manager's own code, and
// expressions in the environment of a version of Kubernetes.
//
// Reads lines of JSON: {"policy": a ValidatingAdmissionPolicy, "schemas": {"GROUP/VERSION, Kind=KIND":
// {"ref": name, "definitions": the components' schemas of an OpenAPI v3 document}}}, and answers
// each with a line of JSON: its expressionWarnings.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const refPrefix = "#/components/schemas/"

type kindSchema struct {
	Ref         string                  `json:"ref"`
	Definitions map[string]*spec.Schema `json:"definitions"`
}

type question struct {
	// An expression over `object`, at a version of Kubernetes: its value or its error is the answer.
	Expression string                       `json:"expression"`
	Version    string                       `json:"version"`
	Object     any                          `json:"object"`
	Policy     v1.ValidatingAdmissionPolicy `json:"policy"`
	Schemas    map[string]kindSchema        `json:"schemas"`
}

type given struct{ schemas map[string]kindSchema }

func (g given) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	found, ok := g.schemas[gvk.String()]
	if !ok {
		return nil, resolver.ErrSchemaNotFound
	}
	return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		name := strings.TrimPrefix(ref, refPrefix)
		definition, ok := found.Definitions[name]
		// As the built-in types are defined, which the controller reads before what is served.
		if ok && strings.HasSuffix(name, ".Quantity") {
			return spec.StringProperty(), true
		}
		return definition, ok
	}, found.Ref)
}

func mapperOf(schemas map[string]kindSchema) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for name := range schemas {
		version, kind, _ := strings.Cut(name, ", Kind=")
		group, version, _ := strings.Cut(version, "/")
		mapper.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, meta.RESTScopeNamespace)
	}
	return mapper
}

type result struct {
	Value any    `json:"value"`
	Error string `json:"error"`
	Cost  uint64 `json:"cost"`
}

func evaluated(asked question) result {
	environment, err := environment.MustBaseEnvSet(version.MustParse(asked.Version)).Env(environment.NewExpressions)
	if err == nil {
		environment, err = environment.Extend(cel.Variable("object", cel.DynType))
	}
	if err != nil {
		panic(err)
	}
	ast, issues := environment.Compile(asked.Expression)
	if issues.Err() != nil {
		return result{Error: issues.Err().Error()}
	}
	program, err := environment.Program(ast, cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		panic(err)
	}
	value, details, err := program.Eval(map[string]any{"object": asked.Object})
	if err != nil {
		return result{Error: err.Error()}
	}
	return result{Value: value.Value(), Cost: *details.ActualCost()}
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		if asked.Expression != "" {
			if err := answers.Encode(evaluated(asked)); err != nil {
				panic(err)
			}
			continue
		}
		checker := validating.TypeChecker{
			SchemaResolver: given{asked.Schemas},
			RestMapper:     mapperOf(asked.Schemas),
		}
		warnings := checker.Check(&asked.Policy)
		if warnings == nil {
			warnings = []v1.ExpressionWarning{}
		}
		if err := answers.Encode(warnings); err != nil {
			panic(err)
		}
	}
}
