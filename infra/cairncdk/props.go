package cairncdk

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
)

// The functions, by the names that their code, the stream mappings and the
// callers know them by.
const (
	Checkpoint = "checkpoint"
	Recover    = "recover"
	Retention  = "retention"
)

// Functions is all of them in a fixed order.
var Functions = []string{Checkpoint, Recover, Retention}

// Props configures NewCairn. The zero value is made for production; every field
// says what its own zero means.
type Props struct {
	// Dist is the directory with the built functions: <Dist>/<function>/bootstrap
	// (make dist). "" is "dist" in the working directory.
	Dist string
	// Architecture must be the one that Dist was built for. nil is arm64.
	Architecture awslambda.Architecture
	// FunctionPrefix comes before the functions' names; a pointer to "" gives them
	// their plain names. nil lets CloudFormation make names up.
	FunctionPrefix *string
	// MemoryMB is the memory of each function, 128 to 10,240. 0 is 512.
	MemoryMB int
	// ReservedConcurrency by function name. A function that is missing has none
	// of its own.
	ReservedConcurrency map[string]int
	// LogRetention of the functions' log groups. "" is one month.
	LogRetention awslogs.RetentionDays

	// Vpc puts the functions into a network, which then needs ways to DynamoDB,
	// S3, KMS, STS and Lambda. nil is no network of one's own. VpcSubnets nil is
	// the private ones; SecurityGroups nil is a new one.
	Vpc            awsec2.IVpc
	VpcSubnets     *awsec2.SubnetSelection
	SecurityGroups []awsec2.ISecurityGroup

	// StorageKey encrypts the main table, the bucket and the dead-letter queue.
	// nil makes one.
	StorageKey awskms.IKey
	// DataKey wraps the tenants' data keys. The policy of a key of your own must
	// refuse what names no tenant, as DataKeyPolicyStatement does. nil makes one.
	DataKey awskms.IKey
	// TenantKeys are ARNs of tenants' own keys (settings.kms_key) that the
	// functions may use. nil is none.
	TenantKeys []string

	// RemovalPolicy of tables, bucket, keys and logs when the stack goes. "" is
	// RETAIN, with deletion protection on the tables. DESTROY is for tests; a
	// bucket that is not empty still stays.
	RemovalPolicy awscdk.RemovalPolicy
	// RecoveryDays is how far back the main table can be restored, 1 to 35. 0 is 35.
	RecoveryDays int
	// KeyRecoveryDays is the same for the key table, 1 to 35. 0 is 3. It bounds how
	// long a shredded tenant's wrapped keys could still be brought back.
	KeyRecoveryDays int
	// NoncurrentDays keeps overwritten and deleted versions of objects. 0 is 30.
	// (Retention removes all versions itself and does not wait for this.)
	NoncurrentDays int
	// ArchiveClass moves objects of 128 KB and more to another storage class after
	// ArchiveAfterDays. Only classes that can be read at once are allowed:
	// STANDARD_IA, ONEZONE_IA, GLACIER_IR, INTELLIGENT_TIERING. "" moves nothing.
	// (The class of an archived execution is its policy's and needs no rule.)
	ArchiveClass     string
	ArchiveAfterDays int
	// AccessLogs receives the bucket's server access logs. nil writes none.
	AccessLogs awss3.IBucket
	// IndexAttributes are copied to the indexes besides the keys; all of
	// IndexNeeds must be among them. nil copies whole heads.
	IndexAttributes []string

	// Epoch is raised by one after the main table was restored from a backup, so
	// that new fences outrank all older ones. At most 2^31 - 1.
	Epoch int
	// TenantRole makes each function work on a tenant's data under a role session
	// that is tagged with the tenant and can reach no other's.
	TenantRole bool
	// Targets is what recovery may start and ask. The zero value is nothing.
	Targets Targets
	// AlarmTopic is told about alarms. nil leaves them without action.
	AlarmTopic awssns.ITopic
}

// Targets lists (by ARN where it says no other) what the recover function may reach: nothing else, so a
// workflow that names another target gets a definite refusal from IAM.
type Targets struct {
	// StateMachines may be started, and their task tokens answered.
	StateMachines []string
	// Functions may be invoked: resume targets, resolvers, migrations. An alias
	// or a version is its own ARN.
	Functions []string
	// EventBuses may be sent hand-overs.
	EventBuses []string
	// OperatorBus is told what operators should hear of: parked executions,
	// contradictions. "" is nobody; metrics and logs tell it too.
	OperatorBus string
	// ResolverHosts are the hosts on which https resolvers may be asked, and
	// ResolverKey (base64, at least 16 bytes) signs the questions: both or none.
	// Take the key from Secrets Manager, then the template holds only where it is.
	ResolverHosts []string
	ResolverKey   awscdk.SecretValue
}

// Defaults and bounds of Props.
const (
	defaultMemoryMB       = 512
	defaultRecoveryDays   = 35
	defaultKeyRecovery    = 3
	defaultNoncurrentDays = 30
	maxRecoveryDays       = 35
	minMemoryMB           = 128
	maxMemoryMB           = 10240
)

// instantClasses are the storage classes that a reader never has to wait for.
var instantClasses = []string{"STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "INTELLIGENT_TIERING"}

// filled gives a copy with every zero replaced by what it stands for.
func (p Props) filled() Props {
	if p.Dist == "" {
		p.Dist = "dist"
	}
	if p.Architecture == nil {
		p.Architecture = awslambda.Architecture_ARM_64()
	}
	p.MemoryMB = orDefault(p.MemoryMB, defaultMemoryMB)
	p.RecoveryDays = orDefault(p.RecoveryDays, defaultRecoveryDays)
	p.KeyRecoveryDays = orDefault(p.KeyRecoveryDays, defaultKeyRecovery)
	p.NoncurrentDays = orDefault(p.NoncurrentDays, defaultNoncurrentDays)
	if p.LogRetention == "" {
		p.LogRetention = awslogs.RetentionDays_ONE_MONTH
	}
	if p.RemovalPolicy == "" {
		p.RemovalPolicy = awscdk.RemovalPolicy_RETAIN
	}
	return p
}

func orDefault(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}

// problems says in words what is wrong with filled Props; nil when nothing is.
func (p Props) problems() []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, "cairn: "+fmt.Sprintf(format, args...)) }
	within := func(field string, n, low, high int) {
		if n < low || n > high {
			report("%s is %d, not within %d to %d", field, n, low, high)
		}
	}
	within("MemoryMB", p.MemoryMB, minMemoryMB, maxMemoryMB)
	within("RecoveryDays", p.RecoveryDays, 1, maxRecoveryDays)
	within("KeyRecoveryDays", p.KeyRecoveryDays, 1, maxRecoveryDays)
	within("Epoch", p.Epoch, 0, math.MaxInt32)
	within("NoncurrentDays", p.NoncurrentDays, 1, 36500)
	if p.IndexAttributes != nil {
		for _, name := range IndexNeeds {
			if !slices.Contains(p.IndexAttributes, name) {
				report("IndexAttributes lacks %q, which sweeps and listings read from the indexes", name)
			}
		}
	}
	for _, name := range sortedKeys(p.ReservedConcurrency) {
		if !slices.Contains(Functions, name) {
			report("ReservedConcurrency names %q, which is no function", name)
		}
		within("ReservedConcurrency of "+name, p.ReservedConcurrency[name], 1, 100000)
	}
	switch {
	case p.ArchiveClass == "" && p.ArchiveAfterDays != 0:
		report("ArchiveAfterDays is set without ArchiveClass")
	case p.ArchiveClass != "":
		if !slices.Contains(instantClasses, p.ArchiveClass) {
			report("ArchiveClass %q is none of %s: objects must stay readable at once", p.ArchiveClass, strings.Join(instantClasses, ", "))
		}
		within("ArchiveAfterDays", p.ArchiveAfterDays, 30, 36500)
	}
	if p.Vpc == nil && (p.VpcSubnets != nil || p.SecurityGroups != nil) {
		report("VpcSubnets and SecurityGroups need a Vpc")
	}
	if (len(p.Targets.ResolverHosts) == 0) != (p.Targets.ResolverKey == nil) {
		report("Targets.ResolverHosts and Targets.ResolverKey belong together: only one is set")
	}
	arns := slices.Concat(p.TenantKeys, p.Targets.StateMachines, p.Targets.Functions, p.Targets.EventBuses)
	if p.Targets.OperatorBus != "" {
		arns = append(arns, p.Targets.OperatorBus)
	}
	for _, arn := range arns {
		if strings.Contains(arn, "*") || !isToken(arn) && !strings.HasPrefix(arn, "arn:") {
			report("%q is not the ARN of one resource", arn)
		}
	}
	return found
}

func isToken(s string) bool { return *awscdk.Token_IsUnresolved(s) }
