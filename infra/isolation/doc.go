// Package isolation proves, with an engine that evaluates IAM, what the stack's
// policies keep apart: its tests put the roles' policies, as the template has
// them, into the engine and try what must and what must not be allowed.
//
// The local engine knows some condition keys and not others. Proved here: who
// may take a tenant's session and with which tags, the tenants' prefixes of the
// bucket, and that a caller may use its own alias only. Not known to the engine,
// and so only asserted on the template (package cairncdk): dynamodb:LeadingKeys,
// kms:EncryptionContext, and the value of the variable ${aws:PrincipalTag/tenant},
// which the tests put in themselves.
//
// The tests run when CAIRN_AUTH_ENDPOINT names an engine that was started with
// AUTH=true; `make isolation-test` starts one.
package isolation
