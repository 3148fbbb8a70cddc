// The type checks of ValidatingAdmissionPolicies by kube-controller-manager's own code.
//
// Reads lines of JSON: {"policy": a ValidatingAdmissionPolicy, "schemas": {"GROUP/VERSION, Kind=KIND":
// {"ref": name, "definitions": the components' schemas of an OpenAPI v3 document}}, and answers
// that name of a kind}}, and answers each with a line of JSON: its expressionWarnings.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const refPrefix = "#/components/schemas/"

type kindSchema struct {
	Ref         string                  `json:"ref"`
	Definitions map[string]*spec.Schema `json:"definitions"`
}

type question struct {
	Policy  v1.ValidatingAdmissionPolicy `json:"policy"`
	Schemas map[string]kindSchema        `json:"schemas"`
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
