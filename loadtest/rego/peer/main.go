// Peer times the real OPA and Gatekeeper's Rego driver for loadtest/rego/bench.py.
//
// It reads one JSON request a line and answers each with one line. "load" keeps a
// case: a template, its constraint, a review and the synced data. "opa" and
// "driver" evaluate it: OPA's prepared query over input parsed beforehand, and the
// driver's Query as Gatekeeper calls it for each admission.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "github.com/open-policy-agent/frameworks/constraint/pkg/apis/templates/v1"
	"github.com/open-policy-agent/frameworks/constraint/pkg/client/drivers/rego"
	"github.com/open-policy-agent/frameworks/constraint/pkg/core/templates"
	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const target = "admission.k8s.gatekeeper.sh"

type request struct {
	Op         string          `json:"op"`
	Name       string          `json:"name"`
	Iterations int             `json:"iterations"`
	Template   json.RawMessage `json:"template"`
	Constraint map[string]any  `json:"constraint"`
	Review     map[string]any  `json:"review"`
	Inventory  map[string]any  `json:"inventory"`
	Modules    []string        `json:"modules"`
	Query      string          `json:"query"`
	Version    string          `json:"version"`
}

type answer struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Results     int     `json:"results"`
	Error       string  `json:"error,omitempty"`
}

type loaded struct {
	query      opa.PreparedEvalQuery
	input      ast.Value
	driver     *rego.Driver
	constraint *unstructured.Unstructured
	review     map[string]any
}

func main() {
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	cases := map[string]*loaded{}
	for scanner.Scan() {
		reply, err := serve(cases, scanner.Bytes())
		if err != nil {
			reply.Error = err.Error()
		}
		if err := out.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func serve(cases map[string]*loaded, line []byte) (answer, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return answer{}, err
	}
	ctx := context.Background()
	if r.Op == "load" {
		c, err := load(ctx, &r)
		cases[r.Name] = c
		return answer{}, err
	}
	c := cases[r.Name]
	if c == nil {
		return answer{}, fmt.Errorf("no case %q", r.Name)
	}
	run := c.opa
	if r.Op == "driver" {
		run = c.violations
	}
	results := 0
	started := time.Now()
	for range r.Iterations {
		n, err := run(ctx)
		if err != nil {
			return answer{}, err
		}
		results = n
	}
	elapsed := float64(time.Since(started).Nanoseconds())
	return answer{Nanoseconds: elapsed / float64(r.Iterations), Results: results}, nil
}

func load(ctx context.Context, r *request) (*loaded, error) {
	version := ast.RegoV0
	if r.Version == "v1" {
		version = ast.RegoV1
	}
	options := []func(*opa.Rego){
		opa.Query(r.Query),
		opa.SetRegoVersion(version),
		opa.Store(inmem.NewFromObject(map[string]any{"inventory": r.Inventory})),
	}
	for i, source := range r.Modules {
		options = append(options, opa.Module(fmt.Sprintf("module%d.rego", i), source))
	}
	prepared, err := opa.New(options...).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	constraint := &unstructured.Unstructured{Object: r.Constraint}
	parameters, found, _ := unstructured.NestedFieldNoCopy(r.Constraint, "spec", "parameters")
	if !found {
		parameters = map[string]any{}
	}
	input, err := ast.InterfaceToValue(map[string]any{"review": r.Review, "parameters": parameters})
	if err != nil {
		return nil, err
	}
	driver, err := makeDriver(ctx, r, constraint)
	if err != nil {
		return nil, err
	}
	return &loaded{prepared, input, driver, constraint, r.Review}, nil
}

func makeDriver(ctx context.Context, r *request, constraint *unstructured.Unstructured) (*rego.Driver, error) {
	driver, err := rego.New(rego.Externs("inventory"))
	if err != nil {
		return nil, err
	}
	var versioned v1.ConstraintTemplate
	if err := json.Unmarshal(r.Template, &versioned); err != nil {
		return nil, err
	}
	var template *templates.ConstraintTemplate
	if template, err = versioned.ToVersionless(); err != nil {
		return nil, err
	}
	if err := driver.AddTemplate(ctx, template); err != nil {
		return nil, err
	}
	for scope, data := range r.Inventory {
		if err := driver.AddData(ctx, target, []string{scope}, data); err != nil {
			return nil, err
		}
	}
	return driver, driver.AddConstraint(ctx, constraint)
}

func (c *loaded) opa(ctx context.Context) (int, error) {
	results, err := c.query.Eval(ctx, opa.EvalParsedInput(c.input))
	if err != nil || len(results) == 0 {
		return 0, err
	}
	violations, _ := results[0].Expressions[0].Value.([]any)
	return len(violations), nil
}

func (c *loaded) violations(ctx context.Context) (int, error) {
	response, err := c.driver.Query(ctx, target, []*unstructured.Unstructured{c.constraint}, c.review)
	if err != nil {
		return 0, err
	}
	return len(response.Results), nil
}
