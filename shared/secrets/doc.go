// Package secrets keeps credentials out of what is stored: it finds
// credential-like values in agent data and refuses or redacts them, as the
// tenant's settings say.
//
// # What counts
//
//   - a value of a known form: keys of cloud and model providers, tokens of code
//     hosts and chat services, bearer and basic authorization, JSON Web Tokens,
//     private keys, URLs and connection strings that hold a password
//     (docs/SECURITY.md lists them);
//   - a string under a name that only credentials have (password, api_key,
//     client_secret ...), unless it is a placeholder or a reference;
//   - whatever stands under a name that the tenant's settings list
//     (secret_fields), references excepted.
//
// Names are compared without case, '_' and '-'. A reference is an object
// {"secret_ref": ...}, or a string that names a place in a secret store (an ARN of
// Secrets Manager or Parameter Store, {{resolve:...}}, vault:..., op://..., ${...}):
// it stays as it is. Paths in settings.allowed, which start at the request, and
// everything below them are not looked at.
//
// It is a net, not a wall: a password in a sentence looks like any other word.
// What is stored is sealed in any case. Artifacts are not looked at.
//
// # Evidence
//
// Outcomes, signals and what resolvers answer are redacted whatever the mode
// (but allow): a refusal would lose what happened. Everything else is refused
// with SecretRefused, which names the path and the kind of value, never the
// value; in mode redact it is replaced by "[redacted]". Arguments of an operation
// are part of its identity: two operations that differ only in what is redacted
// are the same one, unless they have keys.
//
// # Concurrency
//
// All of it is safe for concurrent use.
package secrets
