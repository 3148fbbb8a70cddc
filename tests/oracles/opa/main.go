// Program opa answers questions about Rego with the real OPA, one JSON line each way: how a module
// parses and is laid out, and what a query gives, or many queries of modules that are compiled once. The tests
// compare the answers with those of our own engine.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util"
)

type request struct {
	Op           string            `json:"op"` // parse, format, query, eval or many
	Modules      []string          `json:"modules"`
	Version      string            `json:"version"` // v0 or v1
	Target       string            `json:"target"`  // of format: v0, v1 or v0v1
	Query        string            `json:"query"`
	Queries      []string          `json:"queries"` // of many: each gets one of the answers
	Input        json.RawMessage   `json:"input"` // absent for none; null is an input
	InputTerm    *string           `json:"input_term"`
	Data         *json.RawMessage  `json:"data"`
	Strict       bool              `json:"strict"` // strict built-in errors
	TimeNs       int64             `json:"time_ns"`
	Seconds      float64           `json:"seconds"`
	Env          map[string]string `json:"env"`
	Capabilities []string          `json:"without_builtins"`
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Row     int    `json:"row,omitempty"`
	Col     int    `json:"col,omitempty"`
}

type answer struct {
	Modules []*ast.Module     `json:"modules,omitempty"`
	Body    ast.Body          `json:"body,omitempty"`
	Results *[]map[string]any `json:"results,omitempty"`
	Answers []answer          `json:"answers,omitempty"`
	Stage   string            `json:"stage,omitempty"`
	Errors  []fault           `json:"errors,omitempty"`
	Text    string            `json:"text,omitempty"`
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		if err := encoder.Encode(reply(line)); err != nil { // as of a number written `.5`
			if err := encoder.Encode(failed("encode", err)); err != nil {
				panic(err)
			}
		}
	}
}

func reply(line []byte) (found answer) {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return failed("request", err)
	}
	defer func() {
		if p := recover(); p != nil {
			found = failed("panic", fmt.Errorf("%v", p))
		}
	}()
	for name, value := range asked.Env {
		os.Setenv(name, value)
	}
	options := ast.ParserOptions{RegoVersion: ast.RegoV1}
	if asked.Version == "v0" {
		options.RegoVersion = ast.RegoV0
	}
	if asked.Op == "query" {
		body, err := ast.ParseBodyWithOpts(asked.Query, ast.ParserOptions{SkipRules: true, RegoVersion: options.RegoVersion})
		if err != nil {
			return failed("parse", err)
		}
		return answer{Body: body}
	}
	if asked.Op == "format" {
		return formatted(asked, options)
	}
	modules := map[string]*ast.Module{}
	var order []*ast.Module
	for i, source := range asked.Modules {
		name := fmt.Sprintf("test-%d.rego", i)
		module, err := ast.ParseModuleWithOpts(name, source, options)
		if err != nil {
			return failed("parse", err)
		}
		modules[name] = module
		order = append(order, module)
	}
	if asked.Op == "parse" {
		return answer{Modules: order}
	}
	return evaluate(asked, modules)
}

func formatted(asked request, options ast.ParserOptions) answer {
	targets := map[string]ast.RegoVersion{"v0": ast.RegoV0, "v1": ast.RegoV1, "v0v1": ast.RegoV0CompatV1}
	text, err := format.SourceWithOpts("test-0.rego", []byte(asked.Modules[0]), format.Opts{
		RegoVersion: targets[asked.Target], ParserOptions: &options,
	})
	if err != nil {
		return answer{Stage: "format", Text: err.Error()}
	}
	return answer{Text: string(text)}
}

func evaluate(asked request, modules map[string]*ast.Module) answer {
	compiler := ast.NewCompiler().WithDefaultRegoVersion(ast.RegoV1)
	if asked.Version == "v0" {
		compiler = ast.NewCompiler().WithDefaultRegoVersion(ast.RegoV0)
	}
	compiler = compiler.WithEnablePrintStatements(true)
	if asked.Op == "many" {
		compiler = compiler.SetErrorLimit(0) // every rule that is refused is to be known
	}
	if len(asked.Capabilities) > 0 {
		compiler = compiler.WithCapabilities(without(asked.Capabilities))
	}
	if compiler.Compile(modules); compiler.Failed() {
		return failed("compile", compiler.Errors)
	}
	store := inmem.New()
	if asked.Data != nil {
		var data map[string]any
		if err := util.UnmarshalJSON(*asked.Data, &data); err != nil {
			return failed("request", err)
		}
		store = inmem.NewFromObject(data)
	}
	var input *ast.Term
	if asked.InputTerm != nil {
		term, err := ast.ParseTerm(*asked.InputTerm)
		if err != nil {
			return failed("request", err)
		}
		input = term
	} else if len(asked.Input) > 0 {
		var value any
		if err := util.UnmarshalJSON(asked.Input, &value); err != nil {
			return failed("request", err)
		}
		input = ast.NewTerm(ast.MustInterfaceToValue(value))
	}
	if asked.Op != "many" {
		return ask(asked, compiler, store, input, asked.Query)
	}
	answers := []answer{}
	for _, query := range asked.Queries {
		answers = append(answers, ask(asked, compiler, store, input, query))
	}
	return answer{Answers: answers}
}

func ask(asked request, compiler *ast.Compiler, store storage.Store, input *ast.Term, text string) answer {
	seconds := asked.Seconds
	if seconds == 0 {
		seconds = 10
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer stop()
	body, err := ast.ParseBody(text)
	if err != nil {
		return failed("query", err)
	}
	compiled, err := compiler.QueryCompiler().Compile(body)
	if err != nil {
		return failed("query", err)
	}
	txn := storage.NewTransactionOrDie(ctx, store)
	defer store.Abort(ctx, txn)
	cancel := topdown.NewCancel()
	go func() { <-ctx.Done(); cancel.Cancel() }()
	query := topdown.NewQuery(compiled).WithCompiler(compiler).WithStore(store).WithTransaction(txn).
		WithStrictBuiltinErrors(asked.Strict).WithCancel(cancel).WithSeed(rand.New(rand.NewSource(1)))
	if asked.TimeNs != 0 {
		query = query.WithTime(time.Unix(0, asked.TimeNs))
	}
	if input != nil {
		query = query.WithInput(input)
	}
	results := []map[string]any{}
	err = query.Iter(ctx, func(found topdown.QueryResult) error {
		bindings := map[string]any{}
		for name, term := range found {
			bindings[string(name)] = tagged(term.Value)
		}
		results = append(results, bindings)
		return nil
	})
	if err != nil {
		return failed("eval", err)
	}
	return answer{Results: &results}
}

func without(names []string) *ast.Capabilities {
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	capabilities := ast.CapabilitiesForThisVersion()
	kept := capabilities.Builtins[:0:0]
	for _, builtin := range capabilities.Builtins {
		if !gone[builtin.Name] {
			kept = append(kept, builtin)
		}
	}
	capabilities.Builtins = kept
	return capabilities
}

// tagged turns a value into JSON that keeps what JSON has not: sets are {"$set": [...]}, objects
// with keys that are no strings {"$object": [[key, value], ...]}, numbers keep their text.
func tagged(value ast.Value) any {
	switch value := value.(type) {
	case ast.Null:
		return nil
	case ast.Boolean:
		return bool(value)
	case ast.Number:
		return json.Number(value)
	case ast.String:
		return string(value)
	case *ast.Array:
		items := []any{}
		value.Foreach(func(item *ast.Term) { items = append(items, tagged(item.Value)) })
		return items
	case ast.Set:
		items := []any{}
		value.Foreach(func(item *ast.Term) { items = append(items, tagged(item.Value)) })
		return map[string]any{"$set": items}
	case ast.Object:
		plain, pairs, strings := map[string]any{}, []any{}, true
		value.Foreach(func(key, item *ast.Term) {
			name, isString := key.Value.(ast.String)
			strings = strings && isString
			plain[string(name)] = tagged(item.Value)
			pairs = append(pairs, []any{tagged(key.Value), tagged(item.Value)})
		})
		if strings {
			return plain
		}
		return map[string]any{"$object": pairs}
	}
	return map[string]any{"$term": value.String()}
}

func failed(stage string, err error) answer {
	found := answer{Stage: stage, Text: err.Error()}
	var many ast.Errors
	var one *ast.Error
	var stopped *topdown.Error
	switch {
	case errors.As(err, &stopped): // first: it may wrap what a built-in met
		each := fault{Code: stopped.Code, Message: stopped.Message}
		if stopped.Location != nil {
			each.File, each.Row, each.Col = stopped.Location.File, stopped.Location.Row, stopped.Location.Col
		}
		found.Errors = append(found.Errors, each)
	case errors.As(err, &many):
		for _, each := range many {
			found.Errors = append(found.Errors, ofLoading(each))
		}
	case errors.As(err, &one):
		found.Errors = append(found.Errors, ofLoading(one))
	default:
		found.Errors = append(found.Errors, fault{Code: "unknown", Message: err.Error()})
	}
	return found
}

func ofLoading(err *ast.Error) fault {
	found := fault{Code: err.Code, Message: err.Message}
	if err.Location != nil {
		found.File, found.Row, found.Col = err.Location.File, err.Location.Row, err.Location.Col
	}
	return found
}
