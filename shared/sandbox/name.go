package sandbox

import "regexp"

// Where the sandbox pretends to be.
const (
	region  = "us-east-1"
	account = "000000000000"
)

// functionName is Lambda's own pattern of FunctionName: a name, a partial or a
// whole ARN, each with or without a qualifier.
var functionName = regexp.MustCompile(`^(arn:(?:aws[a-zA-Z-]*)?:lambda:)?((?:eusc-)?[a-z]{2}(?:(?:-gov)|(?:-iso[a-z]?))?-[a-z]+-\d:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(?::(\$LATEST|[a-zA-Z0-9-_]+))?$`)

var (
	aliasName    = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,128}$`)
	versionNames = regexp.MustCompile(`^[0-9]+$`)
)

// invoked is which function an invocation is for.
type invoked struct {
	Name      string
	Qualifier string // alias or $LATEST; "" when none was given
}

// ARN is the invoked ARN as Lambda gives it to the function.
func (i invoked) ARN() string {
	arn := "arn:aws:lambda:" + region + ":" + account + ":function:" + i.Name
	if i.Qualifier != "" {
		arn += ":" + i.Qualifier
	}
	return arn
}

// parseInvoked reads the FunctionName of an Invoke call and its Qualifier.
// Region and account in an ARN are not compared: there is only one of each here.
func parseInvoked(name, qualifier string) (invoked, *lambdaError) {
	m := functionName.FindStringSubmatch(name)
	if m == nil || len(name) > 170 {
		return invoked{}, badRequest("ValidationException", "1 validation error detected: Value at 'functionName' failed to satisfy constraint: Member must satisfy regular expression pattern: "+functionName.String())
	}
	in := invoked{Name: m[5], Qualifier: m[6]}
	if qualifier != "" {
		if qualifier != "$LATEST" && !aliasName.MatchString(qualifier) {
			return invoked{}, badRequest("ValidationException", "1 validation error detected: Value at 'qualifier' failed to satisfy constraint: Member must satisfy regular expression pattern: (|[a-zA-Z0-9$_-]+)")
		}
		if in.Qualifier != "" && in.Qualifier != qualifier {
			return invoked{}, badRequest("InvalidParameterValueException", "The derived qualifier from the function name does not match the specified qualifier.")
		}
		in.Qualifier = qualifier
	}
	// Any alias may be invoked: each tenant has one, and the function checks it.
	// Versions are not published here.
	if versionNames.MatchString(in.Qualifier) {
		return invoked{}, notFound(in)
	}
	return in, nil
}

// executed is the version that runs behind every alias.
const executed = "$LATEST"
