package cairncdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// suppression is a finding of cdk-nag that is accepted, and why. Findings names
// the parts of a rule with several (IAM5 has one per wildcard), so that any
// other is still found; nil is the rule as a whole.
type suppression struct {
	Rule     string
	Findings []string
	Reason   string
}

// suppress records suppressions on a resource, once per resource, in the form
// that cdk-nag reads. (By hand, so that users of the construct need no cdk-nag.)
func suppress(on constructs.IConstruct, list ...suppression) {
	if len(list) == 0 {
		return
	}
	rules := make([]any, len(list))
	for i, s := range list {
		rule := map[string]any{"id": s.Rule, "reason": s.Reason}
		if s.Findings != nil {
			rule["applies_to"] = s.Findings
		}
		rules[i] = rule
	}
	resource := on.Node().DefaultChild().(awscdk.CfnResource)
	resource.AddMetadata(jsii.String("cdk_nag"), map[string]any{"rules_to_suppress": rules})
}
