package synth

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Template is a CloudFormation template as far as anybody here looks.
type Template struct {
	Resources map[string]Resource
	Outputs   map[string]struct{ Value any }
}

// Resource is one resource of a template.
type Resource struct {
	Type                                string
	Properties                          Object
	DeletionPolicy, UpdateReplacePolicy string
	Metadata                            Object
}

// Object is a JSON object of a template, before its intrinsics are evaluated.
type Object map[string]any

// generated matches the logical ids that the CDK makes for what is below the
// construct Cairn.
var generated = regexp.MustCompile(`^Cairn(.+?)(Resource)?[0-9A-F]{8}$`)

// Short is a logical id as people write it: without the construct's name before
// it and the hash behind it.
func Short(logical string) string {
	if m := generated.FindStringSubmatch(logical); m != nil {
		return m[1]
	}
	return logical
}

// OfType lists the short names of the resources of a type, sorted.
func (t Template) OfType(kind string) []string {
	var names []string
	for logical, r := range t.Resources {
		if r.Type == kind {
			names = append(names, Short(logical))
		}
	}
	slices.Sort(names)
	return names
}

// Get is the resource of a type with a short name; false when there is none.
func (t Template) Get(kind, short string) (Resource, bool) {
	for logical, r := range t.Resources {
		if r.Type == kind && Short(logical) == short {
			return r, true
		}
	}
	return Resource{}, false
}

// At is the value at a path of object keys; nil when there is none.
func (o Object) At(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// Text writes a value with its intrinsics as people read them: a reference is
// ${Name}, an attribute ${Name.Attribute}, a join its parts side by side, and
// anything else compact JSON with sorted keys.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if text, ok := intrinsic(name, argument); ok {
					return text
				}
			}
		}
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+"="+Text(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		return "[" + strings.Join(Texts(v), ", ") + "]"
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
}

// Texts is Text of each element; of a single value, that one.
func Texts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		if value == nil {
			return nil
		}
		return []string{Text(value)}
	}
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = Text(element)
	}
	return texts
}

func intrinsic(name string, argument any) (string, bool) {
	switch name {
	case "Ref":
		return "${" + Short(Text(argument)) + "}", true
	case "Fn::GetAtt":
		if parts := Texts(argument); len(parts) == 2 {
			return "${" + Short(parts[0]) + "." + parts[1] + "}", true
		}
	case "Fn::Join":
		if parts, ok := argument.([]any); ok && len(parts) == 2 {
			return strings.Join(Texts(parts[1]), Text(parts[0])), true
		}
	case "Fn::Sub":
		if text, ok := argument.(string); ok {
			return text, true
		}
	}
	return "", false
}

// Statement is one statement of a policy.
type Statement struct {
	Sid, Effect string
	Actions     []string
	Resources   []string
	Principals  []string
	Conditions  string
}

// Statements reads a policy document.
func Statements(document any) []Statement {
	object, _ := document.(map[string]any)
	list, _ := object["Statement"].([]any)
	statements := make([]Statement, 0, len(list))
	for _, element := range list {
		s, _ := element.(map[string]any)
		statement := Statement{
			Sid: Text(s["Sid"]), Effect: Text(s["Effect"]), Conditions: Text(s["Condition"]),
			Actions: Texts(s["Action"]), Resources: Texts(s["Resource"]),
		}
		switch p := s["Principal"].(type) {
		case string:
			statement.Principals = []string{p}
		case map[string]any:
			for _, kind := range slices.Sorted(maps.Keys(p)) {
				for _, who := range Texts(p[kind]) {
					statement.Principals = append(statement.Principals, kind+" "+who)
				}
			}
		}
		statements = append(statements, statement)
	}
	return statements
}

// RoleStatements is all that a role may do: its inline policies and the policies
// attached to it, in that order.
func (t Template) RoleStatements(role string) []Statement {
	var statements []Statement
	r, _ := t.Get("AWS::IAM::Role", role)
	inline, _ := r.Properties["Policies"].([]any)
	for _, p := range inline {
		statements = append(statements, Statements(Object(p.(map[string]any)).At("PolicyDocument"))...)
	}
	for _, logical := range slices.Sorted(maps.Keys(t.Resources)) {
		p := t.Resources[logical]
		if p.Type == "AWS::IAM::Policy" && slices.Contains(Texts(p.Properties["Roles"]), "${"+role+"}") {
			statements = append(statements, Statements(p.Properties["PolicyDocument"])...)
		}
	}
	return statements
}
