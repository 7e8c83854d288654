package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cairnstate/cairn/infra/synth"
)

// page is the document as it grows.
type page struct {
	strings.Builder
	template synth.Template
	// described are the logical ids that have been written about.
	described map[string]bool
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// section writes a heading, an introduction unless it is empty, and a paragraph for every resource
// of the type in the order of their names.
func (p *page) section(heading, intro, kind string, write func(r *reader)) {
	p.line("\n## %s\n", heading)
	if intro != "" {
		p.line("%s\n", intro)
	}
	p.each(kind, write)
}

func (p *page) each(kind string, write func(r *reader)) {
	logical := slices.SortedFunc(maps.Keys(p.template.Resources), func(a, b string) int {
		return strings.Compare(synth.Short(a), synth.Short(b))
	})
	for _, id := range logical {
		if p.template.Resources[id].Type == kind {
			p.described[id] = true
			r := &reader{page: p, name: synth.Short(id), resource: p.template.Resources[id], read: map[string]bool{}}
			write(r)
			r.rest()
		}
	}
}

// reader remembers which properties of a resource were put into words.
type reader struct {
	*page
	name     string
	resource synth.Resource
	read     map[string]bool
}

// value is a property.
func (r *reader) value(path ...string) any {
	r.read[path[0]] = true
	return r.resource.Properties.At(path...)
}

// text is a property as text, "-" where it is not set.
func (r *reader) text(path ...string) string {
	if text := plain(synth.Text(r.value(path...))); text != "" {
		return text
	}
	return "-"
}

// rest lists the properties that had no words.
func (r *reader) rest() {
	for _, key := range slices.Sorted(maps.Keys(r.resource.Properties)) {
		if !r.read[key] && key != "Description" {
			r.line("  - %s: %s", key, plain(synth.Text(r.resource.Properties[key])))
		}
	}
}

// stays says what becomes of a resource without the stack.
func (r *reader) stays() string {
	if r.resource.DeletionPolicy == r.resource.UpdateReplacePolicy {
		return fmt.Sprintf("On deletion and replacement: %s.", r.resource.DeletionPolicy)
	}
	return fmt.Sprintf("On deletion: %s; on replacement: %s.", r.resource.DeletionPolicy, r.resource.UpdateReplacePolicy)
}

// plain writes references as people do and keeps tables of the document whole.
func plain(text string) string {
	return strings.NewReplacer("${AWS::", "${", "|", `\|`, "\n", " ").Replace(text)
}

const preface = `<!-- Written by "make stack-doc"; a test compares it with the template. Do not edit. -->
# The stack in words

What the CDK makes of the default settings. ${Name} is a resource of the stack, ${Name.Arn} an attribute of it.
The local engine ignores several of these properties (localstack/DIVERGENCES.md), so they are proved by tests on the
template (infra/cairncdk).`

// describe writes the document: the standard template, and of the one with the
// tenant role what differs in roles.
func describe(standard, walled synth.Template) string {
	p := &page{template: standard, described: map[string]bool{}}
	p.line("%s", preface)
	p.storage()
	p.functions()
	p.observation()
	p.section("Roles of the functions", "All permissions there are. No role has a wildcard action, may scan a table or manage a key.", "AWS::IAM::Role", (*reader).role)
	p.each("AWS::IAM::Policy", func(r *reader) { r.value("PolicyDocument"); r.value("PolicyName"); r.value("Roles") }) // written with their roles
	p.suppressions()
	p.outputs()
	p.remainder()

	w := &page{template: walled, described: map[string]bool{}}
	w.section("Roles with the tenant role on", "With `cairn:tenantRole=true` a function reaches tenants' data only under a session of its tenant role that is tagged with the tenant.", "AWS::IAM::Role", (*reader).role)
	p.WriteString(w.String())
	return p.String()
}

// role lists what a role may do, its attached policies included.
func (r *reader) role() {
	r.line("### %s\n", r.name)
	r.value("Policies")
	for _, s := range synth.Statements(r.value("AssumeRolePolicyDocument")) {
		r.line("May be assumed (%s) by %s%s.", plain(strings.Join(s.Actions, ", ")), plain(strings.Join(s.Principals, ", ")), under(s.Conditions))
	}
	if limit := r.text("MaxSessionDuration"); limit != "-" {
		r.line("A session lasts at most %s s.", limit)
	}
	r.statements(r.template.RoleStatements(r.name))
}

func (p *page) statements(list []synth.Statement) {
	p.line("\n| statement | effect | actions | on | under |\n|---|---|---|---|---|")
	for _, s := range list {
		who := ""
		if len(s.Principals) > 0 {
			who = " to " + strings.Join(s.Principals, ", ")
		}
		p.line("| %s | %s%s | %s | %s | %s |", s.Sid, s.Effect, plain(who), plain(strings.Join(s.Actions, ", ")), plain(strings.Join(s.Resources, ", ")), plain(s.Conditions))
	}
	p.line("")
}

func under(conditions string) string {
	if conditions == "" {
		return ""
	}
	return " under " + plain(conditions)
}

// suppressions lists what cdk-nag would report and why it is accepted.
func (p *page) suppressions() {
	p.line("\n## Accepted findings of cdk-nag (AwsSolutions)\n\nNo other finding is left.\n\n| resource | rule | why |\n|---|---|---|")
	for _, id := range slices.Sorted(maps.Keys(p.template.Resources)) {
		rules, _ := p.template.Resources[id].Metadata.At("cdk_nag", "rules_to_suppress").([]any)
		for _, element := range rules {
			rule, _ := element.(map[string]any)
			p.line("| %s | %s %s | %s |", synth.Short(id), rule["id"], plain(strings.Join(synth.Texts(rule["applies_to"]), ", ")), plain(synth.Text(rule["reason"])))
		}
	}
}

func (p *page) outputs() {
	p.line("\n## Outputs\n")
	for _, id := range slices.Sorted(maps.Keys(p.template.Outputs)) {
		p.line("- %s: %s", synth.Short(id), plain(synth.Text(p.template.Outputs[id].Value)))
	}
}

// remainder lists the resources that no section wrote about.
func (p *page) remainder() {
	var types []string
	for id, r := range p.template.Resources {
		if !p.described[id] && !slices.Contains(types, r.Type) {
			types = append(types, r.Type)
		}
	}
	if len(types) == 0 {
		return
	}
	slices.Sort(types)
	p.line("\n## Everything else\n")
	for _, kind := range types {
		p.each(kind, func(r *reader) { r.line("- **%s** (%s)", r.name, kind) })
	}
}
